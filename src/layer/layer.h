/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_LAYER_H
#define STET_LAYER_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One tree of the host and the upper over it. Paths are absolute and clean. */
struct change_layer {
	const char *host;  /* the tree as the host has it: "/home/u" */
	const char *upper; /* the upper directory that lies over it */
	const char *base;  /* a directory to be read instead of @host; NULL: none */
	/*
	 * Set if only the user's own ids are mapped in the sandbox (one-uid map). Then an
	 * object whose owner in the upper is @uid, or whose group is @gid, while the host's
	 * has another, is not CHANGE_OWNER. The owner's mode bits of a directory that belongs
	 * to somebody else on the host are not compared either: the sandbox shows there what
	 * the user may do.
	 */
	bool lax_owner;
	uid_t uid;
	gid_t gid;
	/*
	 * Copies that were put into the upper before the command ran have an older ctime than
	 * this (nanoseconds). As long as a copy has, the command has not changed it, whatever
	 * the host did since. 0: there were no copies.
	 */
	int64_t copied_ns;
	/* Report objects of the upper that do not differ, too (what == 0). */
	bool every;
	/*
	 * If the content of a file differs, CHANGE_XATTR is left out and the host's attributes
	 * are not read.
	 */
	bool brief;
	/*
	 * A large file whose mtime differs counts as changed in its content without being
	 * read: for callers that must not wait and may list one file too many.
	 */
	bool rough;
	/* Stores of ours: nothing at or below these paths is a change. NULL-ended or NULL. */
	const char *const *never;
	/*
	 * away: the upper is missing, since the filesystem that holds it is not mounted, or
	 * may be missing at any moment. untouched: nothing was changed in it; then a walk goes
	 * past the layer.
	 */
	bool away, untouched;
	bool unmounted; /* another filesystem is mounted on @host now, or none */
	/* Paths inside (absolute) that were hidden from the sandbox; NULL-ended or NULL. */
	const char *const *hidden;
	/* Paths that the sandbox saw and could not change; the same form. */
	const char *const *closed;
};

#endif
