/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/paths.h"

#include <fnmatch.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/mountinfo.h"

#define SPECIAL "*?["

void op_paths_free(struct op_paths *p)
{
	strv_free(p->v);
	strv_free(p->typed);
	free(p->word);
	*p = (struct op_paths){ 0 };
}

/* A pattern that matches @path and nothing else. */
static void add_literal(struct buf *b, const char *path)
{
	for (; *path; path++) {
		if (strchr(SPECIAL "\\", *path))
			buf_addc(b, '\\');
		buf_addc(b, *path);
	}
}

static void push(struct op_paths *p, char *path)
{
	size_t n = strv_len(p->v);

	strv_push(&p->v, path);
	p->word = xrealloc(p->word, (n + 1) * sizeof(*p->word));
	p->word[n] = strv_len(p->typed) - 1;
}

/* The directory in which the pattern begins is a name; what follows it is not. */
static int push_pattern(struct op_ctx *ctx, const char *typed, struct op_paths *p,
			struct err *e)
{
	const char *rest = typed + strcspn(typed, SPECIAL);
	AUTO_FREE char *inside = NULL, *path = NULL;
	struct buf b = BUF_INIT;

	while (rest > typed && rest[-1] != '/')
		rest--;
	inside = xasprintf("%.*s%s-", (int)(rest - typed), typed,
			   rest == typed ? "./" : "");
	if (op_ctx_path(ctx, inside, &path, e) < 0)
		return -1;
	path[strlen(path) - 1] = '\0';
	add_literal(&b, path);
	buf_adds(&b, rest);
	/* A slash at the end asks for a directory; matching one takes what is below. */
	while (b.len > 1 && b.data[b.len - 1] == '/')
		buf_truncate(&b, b.len - 1);
	push(p, buf_take(&b));
	return 0;
}

int op_paths_make(struct op_ctx *ctx, char *const *typed, struct op_paths *out,
		  struct err *e)
{
	for (; typed && *typed; typed++) {
		struct buf b = BUF_INIT;
		char *path;

		if (op_ctx_path(ctx, *typed, &path, e) < 0)
			return -1;
		strv_push(&out->typed, xstrdup(*typed));
		if (!strpbrk(path, SPECIAL)) {
			push(out, path);
			continue;
		}
		add_literal(&b, path);
		free(path);
		push(out, buf_take(&b));
		if (strpbrk(*typed, SPECIAL) && push_pattern(ctx, *typed, out, e) < 0)
			return -1;
	}
	return 0;
}

struct search {
	const struct op_paths *p;
	bool *found; /* by word */
	size_t missing;
};

static int compare(void *arg, const struct change *c, struct err *e)
{
	struct search *s = arg;
	size_t i;

	(void)e;
	for (i = 0; s->p->v[i]; i++) {
		const char *want = s->p->v[i];

		if (s->found[s->p->word[i]])
			continue;
		if (strpbrk(want, SPECIAL)
			    ? fnmatch(want, c->path, FNM_PATHNAME | FNM_LEADING_DIR) != 0
			    : !path_within(c->path, want))
			continue;
		s->found[s->p->word[i]] = true;
		s->missing--;
	}
	return s->missing ? 0 : 1;
}

int op_paths_check(const struct op_paths *p, const struct txn_record *rec, struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	AUTO_FREE bool *found = NULL;
	struct search s = { p, NULL, strv_len(p->typed) };
	size_t n, i;

	if (!p->v)
		return 0;
	s.found = found = xcalloc(s.missing, sizeof(*found));
	layers = txn_layers(rec, &n);
	if (change_walk(layers, n, compare, &s, e) < 0)
		return -1;
	for (i = 0; s.missing && found[i]; i++)
		;
	if (!s.missing)
		return 0;
	err_set(e, ERR_USAGE, "t%lld changed nothing at '%s'", (long long)rec->id,
		p->typed[i]);
	return err_hint(e, "see: stet status t%lld", (long long)rec->id);
}
