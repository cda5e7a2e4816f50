/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/cwd.h"

#include <string.h>

/*
 * The path behind /proc/self/root or /proc/self/cwd, which are other names for the same
 * files. In the second case *base becomes @cwd.
 */
static const char *through_proc(const char *path, const char **base, const char *cwd)
{
	const char *p = path;
	size_t n;

	for (;;) {
		if (strncmp(p, "/proc/", 6) != 0)
			return p;
		n = strcspn(p + 6, "/");
		if (!(strncmp(p + 6, "self/", 5) == 0 ||
		      strncmp(p + 6, "thread-self/", 12) == 0 ||
		      (n && strspn(p + 6, "0123456789") == n)))
			return p;
		if (strncmp(p + 6 + n, "/root", 5) == 0 &&
		    (p[n + 11] == '/' || !p[n + 11])) {
			p += n + 11;
			if (!*p)
				return "/";
		} else if (strncmp(p + 6, "self/cwd", 8) == 0 &&
			   (p[14] == '/' || !p[14])) {
			*base = cwd;
			return p + 14 + (p[14] == '/');
		} else {
			return p;
		}
	}
}

const char cwd_later[] = "";

const char *cwd_known(struct context *ctx, const char *cwd)
{
	return cwd == cwd_later ? ctx->events->find_cwd(ctx) : cwd;
}

const char *cwd_resolve(struct context *ctx, const char *cwd, const char *path)
{
	const char *base = NULL, *whole;
	size_t len = 0;
	char *out;

	if (path[0] != '/' || strncmp(path, "/proc/", 6) == 0)
		cwd = cwd_known(ctx, cwd);
	if (path[0] != '/')
		base = cwd;
	path = through_proc(path, &base, cwd);
	if (path[0] != '/' && !base)
		return NULL;
	whole = base ? arena_printf(ctx->arena, "%s/%s", base, path) : path;
	out = arena_take(ctx->arena, strlen(whole) + 2);
	while (*whole) {
		size_t n = strcspn(whole, "/");

		if (n == 2 && whole[0] == '.' && whole[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && whole[0] == '.')) {
			out[len++] = '/';
			memcpy(out + len, whole, n);
			len += n;
		}
		whole += n;
		whole += *whole == '/';
	}
	if (!len)
		out[len++] = '/';
	out[len] = 0;
	return out;
}
