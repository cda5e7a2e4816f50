/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_TXN_H
#define STET_TXN_TXN_H

#include <stdbool.h>

#include "audit/audit.h"
#include "base/err.h"
#include "diff/change.h"
#include "journal/journal.h"
#include "snap/view.h"

/*
 * Transactions: states, begin, end, rollback, prune. Never sees a process.
 *
 * Invariants, asserted by txn_check():
 *  1. The host tree is unchanged in every state that exists before a commit.
 *  2. Whoever drives an OPEN or ACTIVE transaction holds the flock on its directory; a
 *     transaction in these states whose lock is free was interrupted.
 *  3. A transaction that is not PRUNED has its directory and every layer directory.
 *  4. Data in a store that belongs to no journal row is garbage (prune removes it).
 */

/* The user's state directory and journal; opened once per command. */
struct home {
	char *dir; /* $STET_STATE_DIR, $XDG_STATE_HOME/stet, ~/.local/state/stet */
	struct journal *journal;
	struct audit *audit; /* opened when something is first noted */
};
/* Creates the directory (0700) and the journal where they are missing. */
int home_open(struct home *h, struct err *e);
/* The same in two steps: the directory, then (if that is not done yet) the journal. */
int home_find(struct home *h, struct err *e);
int home_connect(struct home *h, struct err *e);
void home_close(struct home *h);

/* The books, for whoever has something to note; NULL if they cannot be kept: nothing that is
 * done to transactions waits for that. */
struct audit *home_books(struct home *h);

struct txn {
	struct txn_record rec;
	int lock;	 /* the flock, or -1 */
	int guard;	 /* between txn_prepare() and txn_record(); else -1 */
	int64_t came_ns; /* when it was prepared, by the fine clock */
	bool exact;	 /* its beginning can be told from what was written just before */
};
void txn_close(struct txn *t); /* gives the lock up */

/* How it looks to a person: a state, or what the lock says about it. */
enum txn_look {
	TXN_RUNNING,
	TXN_INTERRUPTED, /* nobody drives it any more */
	TXN_PENDING,
	TXN_GONE,    /* rolled back */
	TXN_EMPTY,   /* pruned */
	TXN_KEPT,    /* committed */
	TXN_HALFWAY, /* a commit or undo that did not end; recovery goes on with it */
};
enum txn_look txn_look(const struct txn_record *r);
const char *txn_look_name(enum txn_look l); /* "running", "interrupted", … */

/*
 * Makes the directories of a new transaction in the stores and takes its lock; @v gets the
 * layer directories filled in. On failure nothing is left behind. Needs no journal: what
 * it makes is known to none until txn_record().
 */
int txn_prepare(struct home *h, struct view *v, const char *name, char *const argv[],
		const char *options, struct txn *t, struct err *e);

/*
 * Fixes the moment at which it begins: what was changed on the host before is older. False if its
 * layers hold something already, which is to be its first checkpoint (timeline_record()).
 */
bool txn_start(struct txn *t);

/* Records it: from here on it exists. After txn_start(). On failure what was prepared is gone. */
int txn_record(struct home *h, struct txn *t, struct err *e);

/* Takes back what was prepared and never recorded. */
void txn_abandon(struct txn *t);

/*
 * Takes an ended (or interrupted) one up again, for explore: PENDING -> ACTIVE. @v was
 * made with view_request.resume; its layers are made ready to be mounted again.
 */
int txn_resume(struct home *h, struct view *v, struct txn *t, struct err *e);

/* For another command in the same run: makes the layers of @v, which nothing mounts now, ready
 * to be mounted once more. All of @r that hold something must be among them. */
int txn_again(const struct txn_record *r, const struct view *v, struct err *e);

/* Ends and forgets a transaction that changed nothing (or never ran): ACTIVE -> PRUNED. Its data
 * is put aside for txn_clear(). One journal write instead of three. */
int txn_discard(struct home *h, struct txn *t, int exit_status, const char *reason,
		struct err *e);

/* ACTIVE -> FROZEN with the result of the run. The lock stays until txn_close(). */
int txn_end(struct home *h, struct txn *t, int exit_status, const char *reason,
	    struct err *e);

/* Is @cwd a directory that the transaction has taken away? Somebody stands in it, and a commit has
 * moved it out of its place: his shell has not noticed. */
bool txn_has_taken(const struct txn_record *r, const char *cwd);

/*
 * A command has ended, and nothing uses the layers any more. @untouched: a bit for each that holds
 * nothing, so that it may go away, or has gone already, with what it was on.
 */
void txn_note_idle(struct txn_record *r, uint64_t untouched);
/* Keeps that for who reads of the transaction later, and finds some of them gone. */
void txn_keep_idle(const struct txn_record *r);
/* Another command is to run in the layers: those that are there may be touched. True: some are
 * gone, and must not be part of its view. */
bool txn_use_again(struct txn_record *r);

/*
 * Finds a transaction: @ref is its number ("3", "t3"), its name, or NULL: then the newest
 * unpruned one whose workspace holds @cwd, pending and running ones first.
 * ERR_USAGE if there is none. Takes no lock.
 */
int txn_find(struct home *h, const char *ref, const char *cwd, struct txn *t,
	     struct err *e);

/* Layers in the form the change room wants, those that are away marked as such; free the
 * array (not what it points to). */
struct change_layer *txn_layers(const struct txn_record *r, size_t *n);

/* The directory that it works on in place (inplace/inplace.h), or NULL if it does not. */
const char *txn_in_place(const struct txn_record *r);

/*
 * Is what was decided about it final? The tree that it worked on in place went back to what the
 * snapshot is, or the snapshot is gone: nothing takes that back. What was committed beside the
 * tree can be undone.
 */
bool txn_is_final(const struct txn_record *r);

/*
 * Makes sure that it is PENDING and takes its lock; an interrupted one is ended first, and is then
 * pending like any other. ERR_STATE in any other state, or while it runs.
 */
int txn_pending(struct home *h, struct txn *t, struct err *e);

/* PENDING or interrupted -> ROLLED_BACK; ERR_STATE while it runs. Constant time: the data
 * stays where it is until it is pruned. */
int txn_rollback(struct home *h, struct txn *t, struct err *e);

struct prune_result {
	uint64_t transactions, orphans; /* removed */
	uint64_t bytes;			/* given back */
};
/*
 * Deletes the data of rolled-back transactions and whatever a crash left in the stores.
 * With @id > 0 only that one. @dry_run: counts only. Pending ones are never touched.
 */
int txn_prune(struct home *h, int64_t id, bool dry_run, struct prune_result *r,
	      struct err *e);

/* Are its layers on the disk? Else a power cut would cost the transaction. */
bool txn_on_disk(const struct txn_record *r);
/*
 * Writes them there (the whole filesystem: in the background) and notes it, if nobody has begun
 * to change them since txn_to_disk_begin(), for which the lock is ours; it may be given up then.
 * That gives a descriptor, to be closed, or -1.
 */
int txn_to_disk_begin(const struct txn_record *r);
void txn_to_disk(const struct txn_record *r, int ticket);

/* Deletes what txn_discard() has put aside: in the background. */
void txn_clear(struct home *h);

/* Asserts the invariants above for one record; ERR_CORRUPT says which is broken. */
int txn_check(const struct txn_record *r, struct err *e);

#endif
