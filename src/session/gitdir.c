/* SPDX-License-Identifier: Apache-2.0 */
#include "session/gitdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* Reads one line of a small file, without its end. False: there is no such file. */
static bool read_line(const char *path, char line[PATH_MAX])
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, line, PATH_MAX - 1);
	line[n < 0 ? 0 : n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return n > 0;
}

static bool has(const char *dir, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Takes "." and ".." out of @path, which is absolute. By name alone: a link on the way makes it
 * another directory than that of the changes, which are known by their real paths. */
static void clean(char *path)
{
	char *out = path;
	const char *in = path;

	while (*in) {
		size_t n = strcspn(in, "/");

		if (n == 2 && in[0] == '.' && in[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (n && !(n == 1 && in[0] == '.')) {
			*out++ = '/';
			memmove(out, in, n);
			out += n;
		}
		in += n;
		in += *in == '/';
	}
	*out = '\0';
}

/* The directory that the file @path, the .git of a work tree, stands for. */
static char *follow(const char *path)
{
	static const char key[] = "gitdir: ";
	char line[PATH_MAX], back[PATH_MAX];
	AUTO_FREE char *dir = NULL, *own = NULL;
	char *end;

	if (!read_line(path, line) || strncmp(line, key, strlen(key)) != 0)
		return NULL;
	dir = line[strlen(key)] == '/' ? xstrdup(line + strlen(key))
				       : xasprintf("%s/../%s", path, line + strlen(key));
	clean(dir);
	own = xasprintf("%s/gitdir", dir);
	end = strrchr(dir, '/');
	if (read_line(own, back)) {
		if (strcmp(back, path) != 0 || !end || end - dir < 10 ||
		    strncmp(end - 10, "/worktrees", 10) != 0)
			return NULL;
		end[-10] = '\0';
	} else if (!strstr(dir, "/.git/modules/")) {
		return NULL;
	}
	return has(dir, "HEAD") ? TAKE_PTR(dir) : NULL;
}

char *gitdir_of(const char *workspace)
{
	AUTO_FREE char *top = xstrdup(workspace);

	for (;;) {
		AUTO_FREE char *path = xasprintf("%s/.git", top);
		struct stat st;
		char *end;

		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			return follow(path);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && has(path, "HEAD"))
			return TAKE_PTR(path);
		end = strrchr(top, '/');
		if (!end || !*top)
			return NULL;
		*end = '\0';
	}
}
