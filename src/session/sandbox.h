/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_SANDBOX_H
#define STET_SESSION_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "call/ctx.h"
#include "call/verb.h"
#include "host/observer.h"
#include "runner/runner.h"
#include "session/judge.h"
#include "session/policy_files.h"
#include "snap/view.h"

/*
 * The part that run, exec and explore share: the wishes for a sandbox, and the view of its
 * command.
 */

/* As options of a verb; part of the requests that take them. */
struct sandbox_opts {
	const char *workspace, *policy;
	char **env, **hide, **sockets;
	bool clean_env, no_policy, no_network;
};

/* Their rows in a table of options; @at: where the struct lies in the request. */
#define SANDBOX_ROW(at, name, letter, type, value, text, field, arg)           \
	{                                                                      \
		name, letter, type, value, text,                               \
			(at) + offsetof(struct sandbox_opts, field), NULL, arg \
	}
#define SANDBOX_ROWS(at)                                                                     \
	SANDBOX_ROW(at, "workspace", 'w', OPT_STRING, "DIR",                                 \
		    "the project (default: current directory)", workspace, ARG_DIR),         \
		SANDBOX_ROW(                                                                 \
			at, "env", 'e', OPT_LIST, "NAME[=VALUE]",                            \
			"set a variable for the command, or pass ours on; repeatable",       \
			env, ARG_ENV),                                                       \
		SANDBOX_ROW(                                                                 \
			at, "clean-env", 0, OPT_FLAG, NULL,                                  \
			"start from HOME, USER, LOGNAME, PATH, SHELL, TERM, LANG, LC_* and " \
			"TZ alone; STET_TXN and, for git, GIT_DISCOVERY_ACROSS_FILESYSTEM "  \
			"are set all the same",                                              \
			clean_env, 0),                                                       \
		SANDBOX_ROW(                                                                 \
			at, "hide", 0, OPT_LIST, "PATH",                                     \
			"make it invisible inside; a commit asks before it touches what "    \
			"the host has there; repeatable",                                    \
			hide, ARG_PATH),                                                     \
		SOCKET_ROW((at) + offsetof(struct sandbox_opts, sockets)),                   \
		SANDBOX_ROW(at, "no-network", 0, OPT_FLAG, NULL,                             \
			    "give it no network but a loopback of its own", no_network,      \
			    0),                                                              \
		SANDBOX_ROW(                                                                 \
			at, "policy", 0, OPT_STRING, "FILE",                                 \
			"judge by FILE and the built-in policy, not by the ones that lie "   \
			"around",                                                            \
			policy, ARG_PATH),                                                   \
		SANDBOX_ROW(at, "no-policy", 0, OPT_FLAG, NULL,                              \
			    "let every command run, whatever it is", no_policy, 0)

/* Wishes that are recorded with the transaction, so that it can be entered again. */
struct sandbox_wish {
	char *cwd;
	bool host_tmp, offline;
	char **read_only, **write_through, **hide,
		**sockets; /* absolute, resolved; NULL-ended or NULL */
};
void sandbox_wish_free(struct sandbox_wish *w);

/* To and from the options column of the journal. The text is to be freed. */
char *sandbox_wish_encode(const struct sandbox_wish *w);
int sandbox_wish_decode(const char *text, struct sandbox_wish *w, struct err *e);

/*
 * The sockets that --allow-socket names, as paths (absolute, resolved). ERR_USAGE for another
 * path.
 */
int sandbox_sockets(struct op_ctx *ctx, char *const *names, char ***out, struct err *e);

/* The row of the option. */
#define SOCKET_ROW(at)                                                                \
	{                                                                             \
		"allow-socket", 0, OPT_LIST, "PATH|ssh-agent|gpg-agent",              \
			"let it connect to this Unix socket of the host's, which is " \
			"beyond undo; repeatable",                                    \
			at, NULL, ARG_PATH                                            \
	}

/* ERR_USAGE for an entry of --env without a name. */
int sandbox_env_check(char *const *add, struct err *e);

/*
 * The environment of a command inside transaction @id, as the options @o (or NULL) ask for it:
 * the caller's (or, with --clean-env, the few variables that say who and where the user is) as
 * far as @p (or NULL) lists them, then --env ("NAME=VALUE", or "NAME" for the caller's own
 * value), then ours. NULL-ended, to be freed with strv_free().
 */
char **sandbox_env(const struct op_ctx *ctx, const struct policy *p,
		   const struct sandbox_opts *o, int64_t id);

/* A sandbox as it is asked for on a command line; paths as typed. */
struct sandbox_ask {
	const char *workspace; /* NULL: the current directory */
	const char *name;      /* or NULL */
	char *const *argv;     /* what is recorded as the transaction's command */
	bool host_tmp;
	bool offline;	    /* no network */
	bool atomic;	    /* see struct txn_record */
	bool ask_socket;    /* another program is asked: stet consent */
	bool headless;	    /* nobody is asked anything */
	int points;	    /* enum judge_points and 1; 0: the default */
	int64_t every_ms;   /* a checkpoint after each such time; 0: none */
	const char *policy; /* a file in place of those that lie around, or NULL */
	bool no_policy;	    /* nothing is judged */
	bool in_place;	    /* the workspace itself is written to (inplace/inplace.h) */
	char *const *read_only, *const *write_through,
					*const *hide,
						*const *sockets; /* NULL-ended or NULL */
};

/* Our own program, started to answer who knocks from inside: state, transaction, socket. */
#define VISITOR_OPTION "--visitor"

/* A sandbox that can be run in, with the transaction that captures the changes. */
struct sandbox {
	struct op_ctx *ctx;
	struct home *h;
	struct txn t;
	struct view v;
	struct op_policy policy;
	struct judge judge;
	struct inside_calls door;
	struct observer observer; /* to be ended before its transaction is */
	uint64_t untouched;	  /* idle_layers_untouched() of the last command */
	bool used;
	/* Until it is planned, which is put off to the first run: */
	const struct sandbox_ask *ask;
	struct sandbox_wish wish;
	char *workspace;
};

/*
 * Looks at what is wished for; nothing is made or recorded yet, and @ask has to outlive it.
 * sandbox_close() is due if it returns 0.
 */
int sandbox_open(struct op_ctx *ctx, const struct sandbox_ask *ask, struct sandbox *s,
		 struct err *e);

/*
 * The view of the command of @rec, as far as its parts still exist; for txn_resume() or
 * txn_again().
 */
int sandbox_view_like(struct op_ctx *ctx, const struct home *h,
		      const struct txn_record *rec, struct view *v, struct err *e);

/* With the wishes of a transaction that there is, and its beginning. The new transaction is
 * prepared, but not recorded. */
int sandbox_open_like(struct op_ctx *ctx, const struct txn_record *rec, const char *name,
		      char *const *argv, struct sandbox *s, struct err *e);

/* Records it as one that has ended, without running anything. */
int sandbox_end(struct sandbox *s, const char *reason, struct err *e);

/*
 * Runs a command in it. Of @spec the view, the directory, the lock and what is to be done
 * while the sandbox is built are filled in here. The first run records the transaction; if it
 * fails, nothing was executed and nothing is left of the transaction. A later run sees what
 * those before it did; if it fails the transaction is as it was before.
 */
int sandbox_run(struct sandbox *s, struct run_spec *spec, struct run_result *res,
		struct err *e);

void sandbox_close(struct sandbox *s);

#endif
