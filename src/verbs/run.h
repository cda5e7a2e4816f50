/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_RUN_H
#define STET_VERBS_RUN_H

#include "call/facts.h"
#include "call/verb.h"
#include "commit/commit.h"
#include "diff/change.h"
#include "runner/runner.h"
#include "session/limits.h"
#include "session/policy_files.h"
#include "session/sandbox.h"

enum run_action {
	RUN_ACTION_NONE,
	RUN_ACTION_COMMIT,
	RUN_ACTION_KEEP,
	RUN_ACTION_ROLLBACK,
};

struct run_req {
	struct verb_common common;
	struct sandbox_opts sandbox;
	int ask; /* 1 terminal, 2 socket, 3 nobody */
	const char *name;
	int on_success, on_failure; /* enum run_action */
	struct limit_opts limits;
	bool accept_risky;
	int tmp;		/* 1 private, 2 host */
	int backend;		/* 1 overlay, 2 btrfs */
	const char *checkpoint; /* every-call, risky, none or a time; NULL: every-call */
	char **read_only, **write_through;
	char **argv;
};

/* A change that is not implied by another, with the number of files below it. */
struct run_top {
	char letter; /* change_letter_alone() */
	char *path;
	bool dir;
	bool hidden; /* from the command; the host has one */
	uint64_t below;
};

enum { RUN_TOPS = 10 };

struct run_path {
	enum change_kind kind;
	char *path;
};

/* Exit status if we failed before or around the command. */
enum { RUN_STATUS_AROUND = 125 };

enum run_fate {
	RUN_PENDING,	 /* a decision is due */
	RUN_COMMITTED,	 /* as the options asked */
	RUN_ROLLED_BACK, /* as the options asked */
	RUN_DROPPED,	 /* nothing was changed: nothing is kept */
};
const char *run_fate_name(enum run_fate f);

struct run_res {
	struct txn_facts txn;
	struct run_result run;
	enum run_fate fate;
	bool decided; /* the options said what to do: nobody need be asked */
	struct change_totals totals;
	struct run_top tops[RUN_TOPS];
	size_t ntops;		/* of all, not only of those kept above */
	struct run_path *paths; /* all changes, up to as many as were asked for */
	size_t npaths;
	struct commit_result commit;
	enum project_policy project; /* whether there is one that is not in force */
	char no_point[768];	     /* why a rule's checkpoint is missing; or empty */
	/* After a failed command: an object of another owner or group that could not be written
	 * inside, or NULL. */
	char *not_copied;
	bool in_between; /* nothing was changed in the end, but states before it are kept */
	struct err refusal; /* of the commit that the options asked for; kind 0: none */
};

/* Rows of a result, about a struct run_res, … */
extern const struct field run_fate_fields[], run_op_fields[], run_refusal_fields[],
	run_not_copied_fields[];
/* … and about a struct run_result. */
extern const struct field run_end_fields[], run_limit_fields[], run_exec_fields[],
	run_lost_fields[];

void run_res_free(struct run_res *res);

/* What is to become of a transaction whose commands have ended. */
struct run_decision {
	int action; /* enum run_action */
	bool accept_risky;
	const struct policy *policy; /* whose diff rules hold; NULL: none */
	bool all_or_nothing; /* a refused commit is rolled back, nothing is left pending */
	size_t list;	     /* how many changed paths are wanted */
	bool brief;	     /* nobody wants to know how many there are in all */
};

/*
 * After the command, of which res->run tells: sums up what it did, and decides. The record of
 * @t goes over to @res. On failure *res is empty.
 */
int run_conclude(struct op_ctx *ctx, struct home *h, struct txn *t,
		 const struct run_decision *d, struct run_res *res, struct err *e);

/* The parts of it that fork shares: a name for a transaction; the command and what
 * becomes of the transaction, in a sandbox that is open. */
int run_check_name(const char *name, struct err *e);
int run_execute(struct op_ctx *ctx, struct sandbox *sb, const struct run_req *rq,
		struct run_res *res, struct err *e);
int run_status(const void *req, const void *res);

#endif
