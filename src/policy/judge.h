/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_JUDGE_H
#define STET_POLICY_JUDGE_H

#include "base/err.h"
#include "policy/policy.h"

/*
 * Judges one program that is to run or has just been started. Wrappers (sudo, env, timeout,
 * find -exec, sh -c with its text …) are looked into, and the strictest verdict about what
 * they would run counts. VERDICT_DEFER is given only for a command that is not yet executed.
 */
void policy_judge_exec(const struct policy *p, const struct exec_facts *f,
		       struct verdict *v);

enum { POLICY_TEXT_MAX = 1 << 20 };

/*
 * Judges shell text before it runs. What the text does not tell for certain is VERDICT_DEFER,
 * unless a part that is certain has a stricter verdict. Text that is not well-formed is
 * deferred. Fails only if the text is longer than POLICY_TEXT_MAX (ERR_USAGE).
 */
int policy_judge_text(const struct policy *p, const char *text, size_t len,
		      const struct text_facts *f, struct verdict *v, struct err *e);

/* Judges one change of a transaction by the rules for commits. */
void policy_judge_change(const struct policy *p, const struct change_facts *f,
			 struct verdict *v);

#endif
