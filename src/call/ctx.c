/* SPDX-License-Identifier: Apache-2.0 */
#include "call/ctx.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "commit/recover.h"
#include "journal/txn_rows.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/home.h"

void op_ctx_init(struct op_ctx *ctx, char *const *env)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->env = env;
	ctx->umask = umask(022);
}

void op_ctx_close(struct op_ctx *ctx)
{
	if (ctx->have_home)
		home_close(&ctx->home);
	ctx->have_home = false;
	free(ctx->cwd);
	ctx->cwd = NULL;
	umask(ctx->umask);
}

int op_ctx_dir(struct op_ctx *ctx, struct home **h, struct err *e)
{
	if (!ctx->have_home && home_find(&ctx->home, e) < 0)
		return -1;
	ctx->have_home = true;
	*h = &ctx->home;
	return 0;
}

int op_ctx_open(struct op_ctx *ctx, struct home **h, struct err *e)
{
	return op_ctx_dir(ctx, h, e) < 0 ? -1 : home_connect(*h, e);
}

int op_ctx_home(struct op_ctx *ctx, struct home **h, struct err *e)
{
	if (op_ctx_open(ctx, h, e) < 0)
		return -1;
	if (!ctx->recovered && !ctx->only && txn_recover_if_needed(*h, e) < 0)
		return err_wrap(e, "what a crash left unfinished");
	ctx->recovered = true;
	return 0;
}

int op_ctx_look(struct op_ctx *ctx, struct home **h, struct err *e)
{
	struct err ignored;

	if (op_ctx_open(ctx, h, e) < 0)
		return -1;
	/* The inside may not touch what other transactions have left unfinished. */
	if (!ctx->recovered && !ctx->only)
		ctx->recovered = txn_recover_if_needed(*h, &ignored) == 0;
	return 0;
}

int op_ctx_cwd(struct op_ctx *ctx, const char **cwd, struct err *e)
{
	if (!ctx->cwd)
		ctx->cwd = getcwd(NULL, 0);
	if (!ctx->cwd) {
		err_sys(e, errno, "current directory");
		return err_hint(e, "cd to a directory that exists");
	}
	/* The kernel says so of a directory outside our root or a detached mount. */
	if (ctx->cwd[0] != '/')
		return err_set(e, ERR_USAGE,
			       "current directory cannot be reached from /");
	*cwd = ctx->cwd;
	return 0;
}

const char *op_ctx_env(const struct op_ctx *ctx, const char *name)
{
	size_t n = strlen(name);
	size_t i;

	for (i = 0; ctx->env && ctx->env[i]; i++)
		if (strncmp(ctx->env[i], name, n) == 0 && ctx->env[i][n] == '=')
			return ctx->env[i][n + 1] ? ctx->env[i] + n + 1 : NULL;
	return NULL;
}

/* For the inside there is one transaction, whatever it is called. */
static int own_txn(const struct op_ctx *ctx, struct home *h, const char *ref,
		   struct txn *t, struct err *e)
{
	AUTO_FREE char *own = xasprintf("t%lld", (long long)ctx->only);
	const char *digits = ref && *ref == 't' ? ref + 1 : ref;

	*t = (struct txn){ .lock = -1 };
	if (journal_txn_get(h->journal, ctx->only, &t->rec, e) < 0)
		return -1;
	if (!ref || strcmp(digits, own + 1) == 0 ||
	    (t->rec.name && strcmp(ref, t->rec.name) == 0))
		return 0;
	txn_close(t);
	if (*digits && strspn(digits, "0123456789") == strlen(digits)) {
		err_set(e, ERR_DENIED, "'%s' is out of reach from inside of %s", ref,
			own);
		return err_hint(e, "leave it out: %s is meant", own);
	}
	return err_set(e, ERR_USAGE, "no transaction is called '%s' in here", ref);
}

int op_ctx_txn(struct op_ctx *ctx, const char *ref, struct txn *t, struct err *e)
{
	const char *cwd;
	struct home *h;

	if (op_ctx_cwd(ctx, &cwd, e) < 0 || op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (ctx->only)
		return own_txn(ctx, h, ref, t, e);
	if (txn_find(h, ref, cwd, t, e) == 0)
		return 0;
	return e->kind == ERR_USAGE && !e->hint[0] ? err_hint(e, "see: stet list") : -1;
}

int op_ctx_operands(struct op_ctx *ctx, const char *first, char *const *rest,
		    struct txn *t, char ***paths, struct err *e)
{
	struct err none;
	size_t i;

	if (op_ctx_txn(ctx, first, t, e) < 0) {
		if (!first || e->kind != ERR_USAGE)
			return -1;
		/* Not one of ours by number or name: a path, of the transaction here. */
		if (op_ctx_txn(ctx, NULL, t, &none) < 0)
			return -1;
		strv_push(paths, xstrdup(first));
	}
	for (i = 0; rest && rest[i]; i++)
		strv_push(paths, xstrdup(rest[i]));
	return 0;
}

/* Removes empty, "." and ".." components of an absolute path, by text alone. */
static char *clean(const char *path)
{
	struct buf out = BUF_INIT;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && memcmp(path, "..", 2) == 0) {
			while (out.len && out.data[--out.len] != '/')
				;
			buf_truncate(&out, out.len);
		} else if (n && !(n == 1 && *path == '.')) {
			buf_addc(&out, '/');
			buf_add(&out, path, n);
		}
		path += n;
		path += strspn(path, "/");
	}
	if (!out.len)
		buf_addc(&out, '/');
	return buf_take(&out);
}

/* Resolves the longest leading part of absolute, clean @path that exists. */
static char *resolve_existing(const char *path)
{
	AUTO_FREE char *head = xstrdup(path);
	char real[PATH_MAX];
	char *slash;

	while ((slash = strrchr(head, '/')) && slash != head) {
		size_t n = (size_t)(slash - head);

		*slash = '\0';
		if (realpath(head, real))
			return xasprintf("%s%s", strcmp(real, "/") ? real : "", path + n);
	}
	return xstrdup(path);
}

int op_ctx_name(struct op_ctx *ctx, const char *path, char **out, struct err *e)
{
	AUTO_FREE char *abs = NULL;
	const char *cwd;

	if (!*path)
		return err_set(e, ERR_USAGE, "empty path");
	if (op_ctx_cwd(ctx, &cwd, e) < 0)
		return -1;
	abs = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
	*out = clean(abs);
	return 0;
}

int op_ctx_path(struct op_ctx *ctx, const char *path, char **out, struct err *e)
{
	AUTO_FREE char *flat = NULL;

	if (op_ctx_name(ctx, path, &flat, e) < 0)
		return -1;
	/* The inside's paths are not ours to follow. */
	*out = ctx->only ? TAKE_PTR(flat) : resolve_existing(flat);
	return 0;
}

int op_ctx_realpath(struct op_ctx *ctx, const char *path, char **out, struct err *e)
{
	AUTO_FREE char *abs = NULL;
	char real[PATH_MAX];
	const char *cwd;

	if (!*path)
		return err_set(e, ERR_USAGE, "empty path");
	if (op_ctx_cwd(ctx, &cwd, e) < 0)
		return -1;
	abs = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
	if (!realpath(abs, real)) {
		err_sys(e, errno, "%s", path);
		/* The user named it: his to correct. */
		if (e->sys != EIO && e->sys != ENOMEM)
			e->kind = ERR_USAGE;
		return -1;
	}
	*out = xstrdup(real);
	return 0;
}

size_t strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

void strv_push(char ***v, char *s)
{
	size_t n = strv_len(*v);

	/* Grows at powers of two: lists of a user's own making, short ones. */
	if (n == 0 || ((n + 1) & n) == 0)
		*v = xrealloc(*v, 2 * (n + 1) * sizeof(**v));
	(*v)[n] = s;
	(*v)[n + 1] = NULL;
}

void strv_free(char **v)
{
	size_t i;

	for (i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}
