/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_MODEL_RECORD_H
#define STET_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Transactions, their layers, their checkpoints and the operations on them, as plain values.
 * The journal keeps them (journal/journal.h); nothing here reads or writes.
 */

/* States of a transaction; txn/move.h says which may follow which. Stored by name. */
enum txn_state {
	TXN_ACTIVE,	 /* processes run in it (or did, until stet was killed) */
	TXN_FROZEN,	 /* ended, pending: a decision is due */
	TXN_ROLLED_BACK, /* thrown away; data kept until pruned */
	TXN_PRUNED,	 /* record only */
	TXN_COMMITTING,	 /* the change list is durable; recovery goes forward */
	TXN_COMMITTED,	 /* done; holds what it replaced, until pruned */
	TXN_UNDOING,	 /* a commit is being taken back; recovery goes on with that */
	TXN_STATES
};
extern const char *const txn_state_names[TXN_STATES];
const char *txn_state_name(enum txn_state s);

enum layer_kind {
	LAYER_OVERLAY, /* dir/up lies over host */
	LAYER_SCRATCH, /* dir itself is all there is: private /tmp and the like */
	LAYER_KINDS
};
extern const char *const layer_kind_names[LAYER_KINDS];
const char *layer_kind_name(enum layer_kind k);

struct layer_record {
	enum layer_kind kind;
	char *host; /* absolute path it is seen at */
	char *dir;  /* absolute path of its directory in a store: up/, wk/ */
	bool lax_owner;
	bool idle; /* not recorded: it held nothing when the command had ended */
};

/* An effect outside the transaction, which cannot be undone. */
struct effect_record {
	char *kind; /* "write-through", "socket", "network", … */
	char *what; /* path or text */
};

struct txn_record {
	int64_t id; /* assigned by journal_txn_add; 1, 2, … per journal, never reused */
	char *name; /* given by --name, or NULL; unique among unpruned transactions */
	enum txn_state state;
	char *workspace; /* absolute, resolved */
	char *dir;	 /* its directory in the first store; flocked while it runs */
	char **argv;	 /* NULL-ended */
	/*
	 * Paths that were hidden from the inside; '!' before a store of ours; '=' before a
	 * path that was read-only. NULL-ended or NULL.
	 */
	char **hidden;
	char *options;	  /* JSON object: how to build the sandbox again (explore) */
	int64_t begin_ns; /* CLOCK_REALTIME_COARSE, nanoseconds */
	int64_t end_ns;	  /* 0 while not ended */
	int exit_status;  /* as the shell would see it; -1 while not known */
	char *reason; /* why it ended: "exit", "signal", "timeout", "error"; or NULL */
	struct layer_record *layers;
	size_t nlayers;
	struct effect_record *effects;
	size_t neffects;
	/*
	 * The transaction is never left pending for a person: if the process that runs it
	 * dies, it is rolled back. Cleared by the first decision: what an undo brings back is
	 * an ordinary transaction.
	 */
	bool atomic;
	char *policy; /* hash of the policy that judged its commands; NULL: none did */
};
void txn_record_free(struct txn_record *r); /* the contents, not r itself */

/*
 * Operations on transactions: what undo takes back, newest first. An operation that
 * touches the host has a change list, the file `plan` in the transaction's directory.
 */
enum op_kind { OP_COMMIT, OP_ROLLBACK, OP_UNDO, OP_REDO, OP_KINDS };
enum op_state {
	OP_APPLYING,  /* under way; recovery goes on with it */
	OP_REVERSING, /* met a conflict; being taken back */
	OP_DONE,
	OP_REVERSED, /* it never happened */
	OP_STATES
};
extern const char *const op_kind_names[OP_KINDS];
extern const char *const op_state_names[OP_STATES];
const char *op_kind_name(enum op_kind k);
const char *op_state_name(enum op_state s);

/* What became of an operation later. Stored by number. */
enum op_mark {
	OP_STANDS,
	OP_TAKEN_BACK,
	OP_SUPERSEDED, /* the data has changed since: it can be neither redone nor undone */
	OP_MARKS
};

struct op_record {
	int64_t id; /* assigned by journal_op_add */
	int64_t txn;
	enum op_kind kind;
	enum op_state state;
	int64_t target; /* UNDO, REDO: the operation it is about */
	bool part;	/* UNDO, REDO: of some paths only; the target stays what it is */
	enum op_mark undone; /* COMMIT, ROLLBACK: by an undo */
	enum op_mark redone; /* UNDO: by a redo */
	char *plan;	     /* file name, or NULL */
	uint64_t changes;
	enum txn_state before, after; /* of the transaction */
	int64_t begun_ns, done_ns;
	char *message; /* or NULL */
};
void op_record_free(struct op_record *r);

/* A checkpoint of a transaction; its data lies in the stores (ckpt/ckpt.h). */
struct ckpt_record {
	int64_t seq; /* 1, 2, … within its transaction */
	int64_t time_ns;
	char *cause;	/* "request", "call", "rollback", … */
	int64_t target; /* the checkpoint it is about (rollback, restore); -1: none */
	bool named;	/* a user has asked for it: it is never thinned out */
	char *command;	/* the command that was about to run, or NULL */
	char *note;	/* a note of the user, or NULL */
	uint64_t added, modified, deleted, bytes; /* against the one before it */
};
void ckpt_record_free(struct ckpt_record *r); /* the contents */

struct ckpt_records {
	struct ckpt_record *v; /* oldest first */
	size_t n;
};
void ckpt_records_free(struct ckpt_records *r);

#endif
