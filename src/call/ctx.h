/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_CTX_H
#define STET_CALL_CTX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "commit/commit.h"
#include "policy/policy.h"

/* A command that only a person may allow. */
struct consent_question {
	const struct exec_facts *facts;
	const struct verdict *verdict;
	int64_t txn;
	int64_t until; /* CLOCK_MONOTONIC in ms: nobody waits longer; 0: no limit */
};
enum consent { CONSENT_NO, CONSENT_YES, CONSENT_ALWAYS /* to this rule, this time */ };

/* State that the verbs of one command share; each part is opened when it is first asked for. */
struct op_ctx {
	struct home home;
	bool have_home, recovered;
	int64_t only; /* we speak for the inside of this transaction: no other exists; or 0 */
	char *cwd;
	char *const *env; /* the caller's environment */
	mode_t umask;	  /* and mode mask: for what we start in the caller's name */
	/* Told of the steps of a commit or undo, for a front end to show; or NULL. */
	commit_progress *progress;
	void *progress_arg;
	/* Asks a person; NULL if there is none, and what needs one is denied. */
	enum consent (*consent)(void *arg, const struct consent_question *q);
	void *consent_arg;
	int report; /* descriptor to which a command's result goes when it has ended; 0: none */
	bool mid_line; /* what the command wrote last to the same place is no whole line */
};

/* From here to the close the process makes files with the modes that it names: a mask like 0777
 * or 0277 would leave us a state directory in which we may do nothing. */
void op_ctx_init(struct op_ctx *ctx, char *const *env);
void op_ctx_close(struct op_ctx *ctx);

/* The state directory alone; the journal is not opened yet. */
int op_ctx_dir(struct op_ctx *ctx, struct home **h, struct err *e);

/*
 * The user's state; owned by the context. What a crash left is finished or reversed first.
 * For verbs that change the host that has to succeed (op_ctx_home). Others go on if it
 * does not (op_ctx_look): one transaction that cannot be finished must not keep people from
 * looking, from working elsewhere, and from making room on a full disk. op_ctx_open() does
 * nothing of the kind.
 */
int op_ctx_home(struct op_ctx *ctx, struct home **h, struct err *e);
int op_ctx_look(struct op_ctx *ctx, struct home **h, struct err *e);
int op_ctx_open(struct op_ctx *ctx, struct home **h, struct err *e);

/* Current directory, absolute and resolved; owned by the context. */
int op_ctx_cwd(struct op_ctx *ctx, const char **cwd, struct err *e);

/* A variable of the caller's environment, or NULL; empty counts as absent. */
const char *op_ctx_env(const struct op_ctx *ctx, const char *name);

/* txn_find() with the context's state and current directory. */
int op_ctx_txn(struct op_ctx *ctx, const char *ref, struct txn *t, struct err *e);

/*
 * Operands "[TX] [PATH...]": a @first that names no transaction is a path of the one that
 * is meant here. @paths gets those that are paths, as typed: a list to be freed.
 */
int op_ctx_operands(struct op_ctx *ctx, const char *first, char *const *rest,
		    struct txn *t, char ***paths, struct err *e);

/*
 * @path, relative to the current directory, as an absolute clean one. Directories on the
 * way are resolved as far as they exist, the last component never: it may name a link, or
 * something that exists only in a transaction. To be freed.
 */
int op_ctx_path(struct op_ctx *ctx, const char *path, char **out, struct err *e);
/* op_ctx_path() without following any link. */
int op_ctx_name(struct op_ctx *ctx, const char *path, char **out, struct err *e);

/* op_ctx_path() of a path that must exist, with all links resolved. To be freed. */
int op_ctx_realpath(struct op_ctx *ctx, const char *path, char **out, struct err *e);

/* NULL-ended lists of strings. */
void strv_push(char ***v, char *s); /* takes @s over */
size_t strv_len(char *const *v);    /* NULL has none */
void strv_free(char **v);	    /* with the strings */

#endif
