/* SPDX-License-Identifier: Apache-2.0 */
/* Shell text, and the same bytes as the words of a command. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "policy/judge.h"
#include "policy/policy.h"
#include "policy/tests.h"

enum { WORDS = 64 };

static void words(const char *text, size_t size)
{
	const char *argv[WORDS];
	struct exec_facts f = { .exe = "/usr/bin/env",
				.argv = argv,
				.cwd = "/home/me/project",
				.workspace = "/home/me/project",
				.home = "/home/me" };
	char *copy = calloc(1, size + 1), *at = copy;
	struct verdict v;

	if (!copy)
		abort();
	memcpy(copy, text, size);
	while (f.argc < WORDS && at < copy + size) {
		argv[f.argc++] = at;
		at += strcspn(at, " \n");
		*at++ = 0;
	}
	if (f.argc)
		f.exe = argv[0];
	policy_judge_exec(policy_builtin(), &f, &v);
	if (v.kind == VERDICT_DEFER)
		abort(); /* an exec is never deferred */
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verdict v;
	struct err e;

	if (policy_judge_text(policy_builtin(), (const char *)data, size,
			      &policy_test_facts, &v, &e) == 0 &&
	    (v.from > v.to || v.to > size || v.kind > VERDICT_KILL))
		abort();
	words((const char *)data, size);
	return 0;
}
