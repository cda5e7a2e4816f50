/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_EXEC_H
#define STET_VERBS_EXEC_H

#include "session/capture.h"
#include "session/limits.h"
#include "verbs/run.h"

struct exec_req {
	struct verb_common common;
	struct sandbox_opts sandbox;
	int ask; /* 1 nobody, 2 socket */
	char **checks;
	struct limit_opts limits;
	uint64_t output; /* how much of each stream the result holds */
	bool keep_on_failure, accept_risky;
	char **argv;
};

/* Why it was committed, or not. */
enum exec_reason {
	EXEC_DONE,
	EXEC_EXIT,	   /* the command's exit status */
	EXEC_SIGNAL,	   /* it was ended by a signal */
	EXEC_NOT_EXECUTED, /* it could not be executed */
	EXEC_CHECK,	   /* a check's exit status, or signal */
	EXEC_TIMEOUT,
	EXEC_LIMIT,
	EXEC_POLICY,   /* a rule refused it or its changes */
	EXEC_CONFLICT, /* the host changed meanwhile */
	EXEC_ERROR,    /* we failed */
};
const char *exec_reason_name(enum exec_reason r);

struct exec_check {
	const char *command; /* the request's */
	struct run_result run;
	struct capture output;
};

struct exec_res {
	struct run_res run; /* run.run is of the command, or of the check that failed */
	struct run_result command;
	enum exec_reason reason;
	struct exec_check *checks; /* those that were run */
	size_t nchecks;
	struct capture output;
	struct judged *verdicts; /* of what was not simply allowed */
	size_t nverdicts;
	uint64_t execs;
	int64_t total_us, overhead_us; /* of the whole call; of it, not the commands' */
};

#endif
