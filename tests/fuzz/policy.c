/* SPDX-License-Identifier: Apache-2.0 */
/* A user's policy and then a project's: loaded or refused with a reason; what loads judges. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "policy/judge.h"
#include "policy/load.h"
#include "policy/policy.h"
#include "policy/tests.h"

static void use(struct policy *p)
{
	static const char text[] = "sudo rm -rf ~/x && git push -f > /etc/passwd";
	static const char *const argv[] = { "rm", "-rf", "/etc/x" };
	const struct exec_facts f = { .exe = "/bin/rm",
				      .argv = argv,
				      .argc = 3,
				      .cwd = "/home/me/project",
				      .workspace = "/home/me/project",
				      .home = "/home/me" };
	const struct change_facts c = { .path = "/home/me/project/a",
					.what = CHANGED_WRITTEN,
					.workspace = "/home/me/project",
					.home = "/home/me" };
	struct policy_rule rule;
	struct verdict v;
	struct err e;

	policy_judge_exec(p, &f, &v);
	policy_judge_change(p, &c, &v);
	if (policy_judge_text(p, text, strlen(text), &policy_test_facts, &v, &e) < 0)
		abort();
	for (size_t i = 0; policy_rule_at(p, i, &rule); i++)
		if (rule.origin != CONF_BUILTIN)
			free(policy_rule_text(p, rule.id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_source s = { CONF_USER, "fuzz.yaml", (const char *)data, size };
	struct policy *p;
	struct err e;

	for (int round = 0; round < 2; round++) {
		if (policy_load(&s, 1, &p, &e) == 0) {
			use(p);
			policy_free(p);
		} else if (strncmp(e.msg, "fuzz.yaml:", 10) != 0) {
			abort(); /* a refusal without a place */
		}
		s.origin = CONF_PROJECT;
	}
	return 0;
}
