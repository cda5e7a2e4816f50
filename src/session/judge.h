/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_JUDGE_H
#define STET_SESSION_JUDGE_H

#include "call/ctx.h"
#include "runner/runner.h"
#include "session/checkpoint_rate.h"

/* Before which execs a checkpoint is made. */
enum judge_points { POINTS_RISKY, POINTS_CALLS, POINTS_NONE };

/* How the commands of one transaction are judged: a policy, and a person if there is one. */
struct judge {
	struct op_ctx *ctx;
	const struct policy *policy; /* NULL: nothing is judged */
	struct gate_calls calls;
	const struct txn_record *rec; /* in question */
	bool by_socket;		      /* another program is asked: asking.h */
	char *refused;		      /* the command that was last said no to, */
	int64_t refused_at;	      /* and when, ms */
	char **always;		      /* rules that a person has agreed to for good */
	/* The first of those that were not simply allowed, and how many execs there were. */
	struct judged *seen;
	size_t nseen;
	uint64_t execs, more; /* more: not kept */
	enum judge_points points;
	struct checkpoint_rate pace; /* PID 1's */
	int64_t label_of;	     /* the checkpoint that we gave its name last, */
	int label_rank;		     /* how much that says, */
	bool label_text;	     /* and is it shell text? */
	char no_point[768]; /* why one that a rule wanted was not made, the first time */
	int64_t credit, at; /* ms that checkpoints of calls may take; as of then */
};

/* An exec that matched a rule. */
struct judged {
	enum verdict_kind verdict;
	enum exec_outcome outcome;
	char *rule, *why, *hint; /* or NULL */
	char **argv;		 /* NULL-ended; secrets covered up */
};
void judged_free(struct judged *v, size_t n);

void judge_open(struct judge *j, struct op_ctx *ctx, const struct policy *p,
		const struct txn_record *rec);
void judge_close(struct judge *j);

/* From here on another program is asked. */
void judge_by_socket(struct judge *j);

/* From here on nobody is asked: what asks is denied. */
void judge_headless(struct judge *j);

/* Has @spec judged by it; @j must outlive the run. */
void judge_attach(struct judge *j, struct run_spec *spec);

#endif
