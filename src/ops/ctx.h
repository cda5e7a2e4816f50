/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_CTX_H
#define STET_OPS_CTX_H

#include <stdbool.h>

#include "base/err.h"
#include "txn/commit.h"

/* What the verbs of one command share; opened when first asked for. */
struct op_ctx {
	struct home home;
	bool have_home, recovered;
	char *cwd;
	char *const *env; /* the caller's environment */
	/* Told of the steps of a commit or undo, for a front end to show; or NULL. */
	commit_progress *progress;
	void *progress_arg;
};

void op_ctx_init(struct op_ctx *ctx, char *const *env);
void op_ctx_close(struct op_ctx *ctx);

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

/* The same for something that must exist, links resolved throughout. To be freed. */
int op_ctx_realpath(struct op_ctx *ctx, const char *path, char **out, struct err *e);

/* NULL-ended lists of strings. */
void strv_push(char ***v, char *s); /* takes @s over */
size_t strv_len(char *const *v);    /* NULL has none */
void strv_free(char **v);	    /* with the strings */

#endif
