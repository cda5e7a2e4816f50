/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/verdict.h"

#include "base/cleanup.h"
#include "shell/cmd.h"

const char *verdict_name(enum verdict_kind kind)
{
	static const char *const names[] = {
		[VERDICT_ALLOW] = "allow",
		[VERDICT_DEFER] = "defer",
		[VERDICT_CHECKPOINT] = "checkpoint",
		[VERDICT_ASK] = "ask",
		[VERDICT_DENY] = "deny",
		[VERDICT_KILL] = "kill",
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}
