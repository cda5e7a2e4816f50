/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gate/agent.h"

/* Words with spaces between them, as arguments; the first is the program, too. */
static struct image image_of(const char *words, char *args)
{
	struct image i = { .exe = args, .args = args, .args_len = strlen(words) + 1 };

	memcpy(args, words, i.args_len);
	i.argc = 1;
	for (char *p = args; *p || p < args + i.args_len - 1; p++)
		if (*p == ' ') {
			*p = '\0';
			i.argc++;
		}
	return i;
}

static void ran(struct agents *a, pid_t pid, pid_t parent, const char *words)
{
	char args[256];
	struct image i = image_of(words, args);

	agents_ran(a, pid, parent, &i);
}

/* The command, what it starts, and whether what that starts is a call. */
static const struct {
	const char *command, *child;
	bool agent;
} pairs[] = {
	/* What an agent does all day. */
	{ "node /x/qwen -p go", "bash -c make", false },
	{ "/x/codex", "bash -lc ls", false },
	{ "bash", "bash build.sh", false },
	{ "bash -c for", "bash -c for", false },
	{ "bash -c x", "sh -c y", false },
	{ "python3 agent.py", "python3 test.py", false },
	{ "node /x/qwen", "node server.js", false },
	{ "node --import x /x/qwen", "node --import x /x/qwen", false },
	{ "./build.sh all", "make all", false },
	{ "bash ./run.sh x test", "make x test more", false },
	/* Itself, once more. */
	{ "node /x/qwen -p go", "/usr/bin/node /x/qwen -p go", true },
	{ "node /x/qwen", "node --max-old-space-size=4096 /x/qwen", true },
	{ "/x/goose session", "/y/goose run", true },
	{ "node /x/codex.js", "/x/vendor/codex", true },
	/* What is around it. */
	{ "bash /x/wrap -p go", "node /y/cli.js -p go", true },
	{ "/x/wrap -p go", "/y/agent --yes -p go", true },
	{ "timeout 60 claude", "claude", true },
	{ "node /usr/bin/npx @x/y", "sh -c y", true },
	{ "node /usr/bin/npm exec y", "node /x/y", true },
	{ "uvx aider", "python3 /x/aider", true },
};

static void children(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct agents a = { 0 };

		ran(&a, 2, 1, pairs[i].command);
		assert_true(agents_has(&a, 2));
		ran(&a, 3, 2, pairs[i].child);
		if (agents_has(&a, 3) != pairs[i].agent)
			fail_msg("%s starts %s", pairs[i].command, pairs[i].child);
		agents_free(&a);
	}
}

/* Launchers of launchers, what takes their place, and who comes and goes. */
static void chains(void **state)
{
	struct agents a = { 0 };

	(void)state;
	ran(&a, 2, 1, "env node /usr/bin/npx agent");
	ran(&a, 2, 1, "node /usr/bin/npx agent");
	ran(&a, 3, 2, "sh -c agent");
	ran(&a, 4, 3, "node /x/agent");
	assert_true(agents_has(&a, 4));
	ran(&a, 5, 4, "sh -c ls");
	ran(&a, 6, 5, "ls");
	assert_false(agents_has(&a, 5));
	assert_false(agents_has(&a, 6));
	/* A shell that was the launcher's becomes the agent itself. */
	ran(&a, 3, 2, "node /x/agent");
	ran(&a, 7, 3, "sh -c ls");
	assert_false(agents_has(&a, 7));
	agents_drop(&a, 4);
	agents_drop(&a, 4);
	ran(&a, 8, 4, "node /x/agent");
	assert_false(agents_has(&a, 8));
	assert_true(agents_has(&a, 3));
	/* No more than there is room for. */
	for (pid_t pid = 10; pid < 100; pid++)
		ran(&a, pid, 2, "x");
	assert_true(agents_has(&a, 10));
	assert_false(agents_has(&a, 99));
	agents_free(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(children),
		cmocka_unit_test(chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
