/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_OPERATE_H
#define STET_COMMIT_OPERATE_H

#include "commit/commit.h"
#include "plan/apply.h"

/* Private to the room: carrying out a change list, in either direction. */

struct operation {
	struct op_record op;
	int dir; /* the transaction's directory */
	struct change_layer *layers;
	size_t nlayers;
	struct apply *apply;
	struct plan *plan;
	bool settled; /* what is staged is on the disk, if staging does not change it */
	uint64_t objects; /* files and directories concerned, as far as known */
	char where[512];  /* the path at which a conflict was met, */
	char why[192];	  /* and what happened there */
	bool stuck;	  /* see path_note */
	commit_progress *progress;
	void *progress_arg;
	uint64_t done;
	int64_t begun_ns; /* when drafting began, by the coarse clock */
	bool reversing;	  /* goes back to where it came from */
	bool own;	  /* the list was made for this operation: its decisions count */
};

/*
 * Takes the lock by which a user has one commit at a time. @wait: until the other commit is
 * done; else ERR_STATE. fd, or -1.
 */
int operate_guard(struct home *h, bool wait, struct err *e);

/* Opens layers and directory. @every: for drafting. */
int operate_open(const struct txn *t, bool every, struct operation *o, struct err *e);
void operate_close(struct operation *o);
/* Are the layers of all steps of @o->plan there? To be asked before anything is promised. */
int operate_reach(struct operation *o, struct err *e);
/* Before there is a list: is every layer that holds anything of what is mounted there? */
int operate_mounts(const struct operation *o, struct err *e);

/* Makes the staged data durable: file by file if it is little, else the filesystem. Nothing is
 * done if it is already (@o->settled, and staging has written nothing). */
int operate_sync_staged(struct operation *o, struct err *e);

/* Can the steps of @o->plan be done with the rights that are left? After staging. */
int operate_rights(const struct operation *o, struct txn *t, struct err *e);

/*
 * From OP_APPLYING or OP_REVERSING to OP_DONE or OP_REVERSED. A commit or redo goes through the
 * plan forwards, an undo backwards. Returns -1 with ERR_CONFLICT if it was reversed
 * because of one; with another kind if it could not be finished either way: then the
 * operation stays as it is in the journal and recovery goes on with it.
 */
int operate(struct home *h, struct txn *t, struct operation *o, struct err *e);

/* Tells of a conflict met half way: a note in @res, and in *e one line for the whole. */
void operate_conflict(const struct txn *t, const struct operation *o,
		      struct commit_result *res, const char *done, struct err *e);

/* Adds the conflict at o->where to the notes. */
void operate_tell(const struct operation *o, struct commit_result *res);

/* A name for a new change list. */
int operate_plan_name(char name[32], struct err *e);

/* Fills in where and why from the conflict that @r has just met. */
void operate_note(struct operation *o, const struct plan_rec *r);

int64_t operate_now(void);

/*
 * When an operation on @t, which is locked, begins: what is changed from now on bears no earlier
 * time, and what was changed before an earlier one. May wait for the clock's next tick.
 */
int64_t operate_begun(const struct txn *t);

#endif
