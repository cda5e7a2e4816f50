/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_TOOL_H
#define STET_POLICY_TOOL_H

struct doc_tool;
struct policy;

/* How a program runs others, as the tables of tools say. */
enum policy_runs {
	RUNS_COMMAND = 1 << 0, /* its operands are a command: timeout, npx */
	RUNS_SCRIPT = 1 << 1,  /* its first operand is a file that it runs: python */
	RUNS_TEXT = 1 << 2,    /* shell text: it is a shell */
};

/* The flags of enum policy_runs for the program of that name; 0 if no table has it. */
unsigned policy_runs(const struct policy *p, const char *name);

/* The tool of that name, or NULL. Tools of later layers come before those of earlier ones. */
const struct doc_tool *tool_find(const struct policy *p, const char *name);

#endif
