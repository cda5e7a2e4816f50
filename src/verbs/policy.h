/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_POLICY_H
#define STET_VERBS_POLICY_H

#include "call/verb.h"
#include "session/policy_files.h"

struct policy_check_req {
	struct verb_common common;
	char **argv; /* one word: shell text; several: a command */
};

struct policy_check_res {
	struct op_policy policy;
	struct verdict verdict;
	char *text;	  /* NULL: it was a command */
	int64_t judge_ns; /* how long it took to judge, once all was loaded */
};

struct policy_show_req {
	struct verb_common common;
};

struct policy_show_res {
	struct op_policy policy;
};

struct policy_test_req {
	struct verb_common common;
	const char *file;
};

/* A test that came out differently. */
struct policy_failure {
	char *rule, *text;
	const char *want, *got;
};

struct policy_test_res {
	size_t run, failed;
	struct policy_failure *failures;
	size_t failures_count;
};

struct policy_explain_req {
	struct verb_common common;
	const char *rule;
};

struct policy_explain_res {
	struct op_policy policy;
	struct policy_rule rule;
	char *text;
};

struct allow_req {
	struct verb_common common;
	const char *dir;
	bool revoke;
};

struct allow_res {
	bool revoked;
	char *file;
	char hash[65];
};

#endif
