/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes a person should look at: a pure judgement on one change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "diff/risk.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define ROOT "/home/u/p"

#define A_FILE ROOT "/a"
#define A_HOOK ROOT "/.git/hooks/x"

/* Modes: a file, a program, a directory, a link. */
enum { F = S_IFREG | 0644, X = S_IFREG | 0755, D = S_IFDIR | 0755, L = S_IFLNK | 0777 };

/* A plain file that is new or changed is judged by its path alone. */
static void by_path(void **state)
{
	/* clang-format off */
	static const struct {
		const char *path, *why;
	} rows[] = {
		{ ROOT "/main.c",                              NULL },
		{ ROOT "/.git/hooks/pre-commit",               "git hook" },
		{ ROOT "/.git/hooks/pre-commit.sample",        NULL },
		{ ROOT "/sub/.git/hooks/update",               "git hook" },
		{ ROOT "/.git/modules/x/hooks/update",         "git hook" },
		{ ROOT "/.git/modules/x/hooks/update.sample",  NULL },
		{ ROOT "/.git/config",                         "git configuration" },
		{ ROOT "/.git/config.lock",                    NULL },
		{ "/home/u/.gitconfig",                        "git configuration" },
		{ ROOT "/.gitmodules",                         "git submodules" },
		{ ROOT "/node_modules/x/.gitmodules",          NULL },
		{ ROOT "/.github/workflows/ci.yml",            "CI file" },
		{ ROOT "/vendor/bundle/x/.github/workflows/a", NULL },
		{ ROOT "/Jenkinsfile",                         "CI file" },
		{ ROOT "/Jenkinsfile.txt",                     NULL },
		{ "/home/u/.bashrc",                           "shell start-up file" },
		{ "/home/u/.config/fish/conf.d/x.fish",        "shell start-up file" },
		{ ROOT "/.envrc",                              "shell start-up file" },
		{ "/home/u/.ssh/authorized_keys",              "SSH configuration or key" },
		{ "/home/u/.config/systemd/user/a.service",    "started at login" },
		{ ROOT "/.vscode/tasks.json",                  "run by the editor" },
		{ ROOT "/.vscode/launch.json",                 NULL },
		{ ROOT "/.mcp.json",                           "run by agents" },
		{ ROOT "/node_modules/x/.mcp.json",            "run by agents" },
		{ ROOT "/.stet.yaml",                          "stet's own policy" },
		{ "/etc/hosts",                                "system configuration" },
		{ "/srv/etc/hosts",                            NULL },
	};
	/* clang-format on */
	const enum change_kind kinds[] = { CHANGE_ADD, CHANGE_MODIFY, CHANGE_TYPE };

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++)
		for (size_t k = 0; k < LEN(kinds); k++) {
			struct change c = { .kind = kinds[k],
					    .path = rows[i].path,
					    .what = CHANGE_CONTENT,
					    .after.st_mode = F,
					    .after.st_nlink = 1 };
			const char *why = risk_of(&c, NULL, ROOT);

			if (!why != !rows[i].why || (why && strcmp(why, rows[i].why)))
				fail_msg("%s: %s", rows[i].path, why ? why : "no risk");
		}
}

/* A project that itself lies in a directory of packages is judged like any other. */
static void packaged_project(void **state)
{
	static const char root[] = "/home/u/node_modules/p";
	struct change c = { .kind = CHANGE_ADD, .after.st_mode = F };

	(void)state;
	c.path = "/home/u/node_modules/p/.gitlab-ci.yml";
	assert_string_equal(risk_of(&c, NULL, root), "CI file");
	c.path = "/home/u/node_modules/p/node_modules/q/.gitlab-ci.yml";
	assert_null(risk_of(&c, NULL, root));
}

/* The kind of the change and of the object count, wherever the path leads. */
static void by_kind(void **state)
{
	static const char setuid[] = "runs with its owner's rights (setuid, setgid)";
	static const char split[] =
		"has other names on the host, which keep the old content";
	/* clang-format off */
	static const struct {
		const char *name, *path;
		enum change_kind kind;
		unsigned what, before, before_links, after, after_links; /* modes and links */
		const char *why;
	} rows[] = {
		{ "deleted hook",       A_HOOK, 'D', 0,              F,         1, 0,         0, NULL },
		{ "times of a hook",    A_HOOK, 'M', CHANGE_TIMES,   F,         1, F,         1, NULL },
		{ "mode of a hook",     A_HOOK, 'M', CHANGE_MODE,    F,         1, X,         1, "git hook" },
		{ "directory of hooks", A_HOOK, 'A', 0,              0,         0, D,         2, NULL },
		{ "character device",   A_FILE, 'A', 0,              0,         0, S_IFCHR,   1, "device" },
		{ "block device",       A_FILE, 'T', 0,              F,         1, S_IFBLK,   1, "device" },
		{ "named pipe",         A_FILE, 'A', 0,              0,         0, S_IFIFO,   1, NULL },
		{ "new setuid",         A_FILE, 'A', 0,              0,         0, X | 04000, 1, setuid },
		{ "setgid is added",    A_FILE, 'M', CHANGE_MODE,    X,         1, X | 02000, 1, setuid },
		{ "setuid was there",   A_FILE, 'M', CHANGE_CONTENT, X | 04000, 1, X | 04000, 1, NULL },
		{ "setgid directory",   A_FILE, 'M', CHANGE_MODE,    D,         2, D | 02000, 2, NULL },
		{ "parted names",       A_FILE, 'M', CHANGE_CONTENT, F,         2, F,         1, split },
		{ "names linked anew",  A_FILE, 'M', CHANGE_CONTENT, F,         2, F,         2, NULL },
		{ "mode of one name",   A_FILE, 'M', CHANGE_MODE,    F,         2, X,         1, NULL },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct change c = { .kind = rows[i].kind,
				    .what = rows[i].what,
				    .path = rows[i].path,
				    .before.st_mode = rows[i].before,
				    .before.st_nlink = rows[i].before_links,
				    .after.st_mode = rows[i].after,
				    .after.st_nlink = rows[i].after_links };
		const char *why = risk_of(&c, NULL, ROOT);

		if (!why != !rows[i].why || (why && strcmp(why, rows[i].why)))
			fail_msg("%s: %s", rows[i].name, why ? why : "no risk");
	}
}

/* A path that the command could not see is a risk, whatever the object is. */
static void hidden(void **state)
{
	struct change c = { .kind = CHANGE_ADD, .path = A_FILE, .was_hidden = true };

	(void)state;
	c.after.st_mode = D;
	assert_string_equal(risk_of(&c, NULL, ROOT), "was hidden from the command");
	c.kind = CHANGE_DELETE;
	c.before.st_mode = D;
	c.after.st_mode = 0;
	assert_null(risk_of(&c, NULL, ROOT));
}

static void links(void **state)
{
	/* clang-format off */
	static const struct {
		const char *path, *target;
		bool leaves;
	} rows[] = {
		{ ROOT "/a",      "b",                    false },
		{ ROOT "/a",      "./b",                  false },
		{ ROOT "/a",      "..",                   true },
		{ ROOT "/a",      "../x",                 true },
		{ ROOT "/d/a",    "../x",                 false },
		{ ROOT "/d/a",    "../../x",              true },
		{ ROOT "/d/a",    "x/../../../y",         true },
		{ ROOT "/d/a",    "x/../../y",            false },
		{ ROOT "/d/a",    "..x/../y",             false },
		{ ROOT "/d/a",    ".//./../y",            false },
		{ ROOT "/d/a",    ".//./../../y",         true },
		{ ROOT "/a",      ROOT,                   false },
		{ ROOT "/a",      ROOT "/x",              false },
		{ ROOT "/a",      ROOT "x",               true },
		{ ROOT "/a",      ROOT "/../secret",      true },
		{ ROOT "/a",      "/etc/passwd",          true },
		{ "/home/u/a",    "../../etc/passwd",     false }, /* judged by its path */
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct change c = { .kind = CHANGE_ADD,
				    .path = rows[i].path,
				    .after.st_mode = L,
				    .after.st_nlink = 1 };
		bool leaves = risk_leaves(rows[i].path, rows[i].target, ROOT);

		if (leaves != rows[i].leaves)
			fail_msg("%s -> %s: %d", rows[i].path, rows[i].target, leaves);
		assert_int_equal(risk_of(&c, rows[i].target, ROOT) != NULL, leaves);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_path), cmocka_unit_test(packaged_project),
		cmocka_unit_test(by_kind), cmocka_unit_test(hidden),
		cmocka_unit_test(links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
