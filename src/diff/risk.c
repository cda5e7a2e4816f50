/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/risk.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"

/* Files that another program will run or obey, by the end of their path. */
static const struct {
	const char *pattern, *why;
	bool at_top; /* means something at the top of a project alone */
} watched[] = {
	{ "*/.git/hooks/*.sample", NULL }, /* the inert examples of `git init` */
	{ "*/.git/hooks/*", "git hook" },
	{ "*/.git/config", "git configuration" },
	{ "*/.git/config.worktree", "git configuration" },
	{ "*/.git/info/attributes", "git configuration" },
	{ "*/.git/modules/*/hooks/*.sample", NULL },
	{ "*/.git/modules/*/hooks/*", "git hook" },
	{ "*/.git/modules/*/config", "git configuration" },
	{ "*/.git/worktrees/*/config.worktree", "git configuration" },
	{ "*/.gitconfig", "git configuration" },
	{ "*/.config/git/config", "git configuration" },
	{ "*/.gitmodules", "git submodules", true },
	{ "*/.github/workflows/*", "CI file", true },
	{ "*/.github/actions/*", "CI file", true },
	{ "*/.gitlab-ci.yml", "CI file", true },
	{ "*/.circleci/*", "CI file", true },
	{ "*/.travis.yml", "CI file", true },
	{ "*/Jenkinsfile", "CI file", true },
	{ "*/azure-pipelines.yml", "CI file", true },
	{ "*/.drone.yml", "CI file", true },
	{ "*/.buildkite/*", "CI file", true },
	{ "*/.bashrc", "shell start-up file" },
	{ "*/.bash_profile", "shell start-up file" },
	{ "*/.bash_login", "shell start-up file" },
	{ "*/.bash_logout", "shell start-up file" },
	{ "*/.profile", "shell start-up file" },
	{ "*/.zshrc", "shell start-up file" },
	{ "*/.zshenv", "shell start-up file" },
	{ "*/.zprofile", "shell start-up file" },
	{ "*/.config/fish/*", "shell start-up file" },
	{ "*/.inputrc", "shell start-up file" },
	{ "*/.envrc", "shell start-up file" },
	{ "*/.ssh/*", "SSH configuration or key" },
	{ "*/.config/autostart/*", "started at login" },
	{ "*/.config/systemd/*", "started at login" },
	{ "*/.vscode/tasks.json", "run by the editor", true },
	{ "*/.vscode/settings.json", "obeyed by the editor", true },
	{ "*/.idea/*", "obeyed by the editor", true },
	{ "*/.mcp.json", "run by agents" },
	{ "*/.claude/settings*.json", "obeyed by agents" },
	{ "*/.claude/hooks/*", "run by agents" },
	{ "*/.stet.yaml", "stet's own policy" },
	{ "/etc/*", "system configuration" },
};

/* Where package managers unpack what others have written: nobody's CI or editor looks there. */
static const char *const packages[] = {
	"/node_modules/",    "/site-packages/", "/dist-packages/", "/vendor/bundle/",
	"/.cargo/registry/", "/go/pkg/mod/",	"/.cache/",
};

static bool is_packaged(const char *path, const char *root)
{
	size_t n = strlen(root);

	/* Where the project itself lies does not matter. */
	if (strncmp(path, root, n) == 0 && path[n] == '/')
		path += n;
	for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
		if (strstr(path, packages[i]))
			return true;
	return false;
}

/*
 * Most patterns are a star and the end of a path, and nearly none matches: a comparison of the
 * end is faster than fnmatch(). @dot: where the first name with a leading dot begins in @path,
 * or NULL.
 */
static bool matches(const char *pattern, const char *path, size_t len, const char *dot)
{
	size_t n;

	if (!dot && pattern[1] == '/' && pattern[2] == '.')
		return false;
	n = strlen(pattern + 1);
	if (pattern[0] == '*' && !strchr(pattern + 1, '*'))
		return len >= n && memcmp(path + len - n, pattern + 1, n) == 0;
	if (pattern[0] == '*') {
		n = strcspn(pattern + 1, "*");
		if (!memmem(path, len, pattern + 1, n))
			return false;
	}
	return fnmatch(pattern, path, 0) == 0;
}

static const char *by_path(const char *path, const char *root)
{
	const char *dot = strstr(path, "/.");
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		if (matches(watched[i].pattern, path, len, dot))
			return watched[i].at_top && is_packaged(path, root)
				       ? NULL
				       : watched[i].why;
	return NULL;
}

bool risk_leaves(const char *path, const char *target, const char *root)
{
	size_t n = strlen(root);
	int depth = 0;
	const char *p;

	if (target[0] == '/')
		return strncmp(target, root, n) != 0 || (target[n] && target[n] != '/') ||
		       strstr(target, "/../");
	if (strncmp(path, root, n) != 0)
		return false; /* outside of the workspace already: judged by its path */
	for (p = path + n + 1; *p; p++)
		depth += *p == '/';
	for (p = target; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			depth--;
		else if (*p && *p != '/' && !(p[0] == '.' && (p[1] == '/' || !p[1])))
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

/*
 * A change of one name of a file changes all its names without a sandbox; in a layer only this
 * name would change. A command that has linked the names anew meant that.
 */
static bool splits(const struct change *c)
{
	return c->kind == CHANGE_MODIFY && c->what & CHANGE_CONTENT &&
	       S_ISREG(c->after.st_mode) && c->before.st_nlink > 1 &&
	       c->after.st_nlink < c->before.st_nlink;
}

const char *risk_of(const struct change *c, const char *target, const char *root)
{
	const char *why;

	if (c->kind == CHANGE_DELETE || !c->after.st_mode)
		return NULL;
	if (c->kind == CHANGE_MODIFY && !(c->what & ~(unsigned)CHANGE_TIMES))
		return NULL;
	if (c->was_hidden)
		return "was hidden from the command";
	if (S_ISCHR(c->after.st_mode) || S_ISBLK(c->after.st_mode))
		return "device";
	if (S_ISREG(c->after.st_mode) && c->after.st_mode & (S_ISUID | S_ISGID) &&
	    (c->before.st_mode & 06000) != (c->after.st_mode & 06000))
		return "runs with its owner's rights (setuid, setgid)";
	if (S_ISDIR(c->after.st_mode))
		return NULL;
	why = by_path(c->path, root);
	if (why)
		return why;
	if (splits(c))
		return "has other names on the host, which keep the old content";
	if (S_ISLNK(c->after.st_mode) && target && risk_leaves(c->path, target, root))
		return "link that leaves the workspace";
	return NULL;
}
