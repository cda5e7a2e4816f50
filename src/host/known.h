/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_KNOWN_H
#define STET_HOST_KNOWN_H

#include "base/err.h"
#include "host/base.h"
#include "plan/apply.h"
#include "plan/plan.h"
#include "txn/txn.h"

/*
 * Which versions of host objects this transaction knows: what the host had when the command
 * ended (the base), and what our own commits and undos of it have left there. An
 * object that is none of these, and that changed after the transaction began, was changed
 * by somebody else.
 */
struct known;

/* In the directory of a transaction that began with the state of another: what that knew. */
#define INHERITED "known"
/* Both are of the time before the transaction began. */
#define KNOWN_BASES        \
	{                  \
		SEEN, BASE \
	}

/* For @t, which (like @h) must outlive it. They are read at the first question. */
int known_open(struct home *h, const struct txn *t, struct known **out, struct err *e);
void known_close(struct known *k);

/* Reads all at once: no question after this asks the journal. */
void known_read_all(struct known *k);

/* Fails if an answer until now was without what is known, for want of a place to keep that (it is
 * in a file if it is much): then none of them counts. */
int known_held(const struct known *k, struct err *e);

/*
 * A known that is filled by known_tell() alone: the host had @id there when @t, which must
 * outlive it, began.
 */
struct known *known_new(const struct txn_record *t);
void known_tell(struct known *k, uint32_t layer, const char *rel, const struct ident *id);
/* A list; false if there is none, or it is damaged. */
bool known_read(struct known *k, int dir, const char *name);
/* Is anything known of the path? */
bool known_has(struct known *k, uint32_t layer, const char *rel);

/* Does @rel lie in the directory that the command saw, or did it come with another one? */
enum known_place { PLACE_SAME, PLACE_OTHER, PLACE_UNKNOWN };
enum known_place known_place(struct known *k, struct apply *a, uint32_t layer,
			     const char *rel);
void known_place_again(
	struct known *k); /* forget what was found out about the last one */

/* Has an operation of this transaction been at this directory before, or made it, and are its mode,
 * owner and, as far as known, extended attributes what they were then? */
bool known_touched(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		   const struct ident *host);

/*
 * Has somebody else changed the host's object since the transaction saw it? Who it is comes first:
 * what the base does not name was not there, what it names with another inode was another. Only
 * then its ctime, against the coarse clock with which the kernel stamps. Where no name in its
 * directory, nor above, has changed since the beginning nobody else can have come.
 */
bool known_changed(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		   const struct ident *host);

/* Is what the upper has there, @ours, just what the host had when it was copied? A file that was
 * opened for writing, and never changed. */
struct stat;
bool known_untouched(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		     const struct stat *ours);

/* Is what the host has there known to hold the same? Not by its identity alone: by its ctime, or
 * by a digest of content and attributes. */
bool known_is(struct known *k, struct apply *a, uint32_t layer, const char *rel,
	      const struct ident *host);

/* The version known, whatever lies there now; false if there is none. */
bool known_ident(struct known *k, uint32_t layer, const char *rel, struct ident *out);

/* Has the host's object the mode and owner of the version known, or of @ours? */
bool known_attributes(struct known *k, uint32_t layer, const char *rel,
		      const struct ident *host, const struct stat *ours);

/* The directory of the transaction that it is of. */
int known_dir(const struct known *k);

#endif
