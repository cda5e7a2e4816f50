/* SPDX-License-Identifier: Apache-2.0 */
#include "call/paths.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "commit/undo.h"
#include "diff/walk.h"
#include "txn/chosen.h"
#include "txn/find.h"

#define SPECIAL "*?["

void op_paths_free(struct op_paths *p)
{
	strv_free(p->v);
	strv_free(p->typed);
	strv_free(p->names);
	free(p->word);
	*p = (struct op_paths){ 0 };
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
	const char *rest = typed + strcspn(typed, SPECIAL), *s;
	AUTO_FREE char *inside = NULL, *path = NULL;
	struct buf b = BUF_INIT;

	while (rest > typed && rest[-1] != '/')
		rest--;
	inside = xasprintf("%.*s%s-", (int)(rest - typed), typed,
			   rest == typed ? "./" : "");
	if (op_ctx_path(ctx, inside, &path, e) < 0)
		return -1;
	path[strlen(path) - 1] = '\0';
	for (s = path; *s; s++) {
		if (strchr(SPECIAL "\\", *s))
			buf_addc(&b, '\\');
		buf_addc(&b, *s);
	}
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
		AUTO_FREE char *path = NULL, *name = NULL;

		if (op_ctx_path(ctx, *typed, &path, e) < 0 ||
		    op_ctx_name(ctx, *typed, &name, e) < 0)
			return -1;
		strv_push(&out->typed, xstrdup(*typed));
		strv_push(&out->names, chosen_literal(name));
		push(out, chosen_literal(path));
		if (strpbrk(*typed, SPECIAL) && push_pattern(ctx, *typed, out, e) < 0)
			return -1;
	}
	return 0;
}

/* Of a word that may be a name or a pattern there are two entries, the name first. */
static bool is_second(const struct op_paths *p, size_t i)
{
	return i > 0 && p->word[i - 1] == p->word[i];
}

struct search {
	const struct op_paths *p;
	bool *met; /* by entry */
	size_t missing;
};

static int compare(void *arg, const char *path, struct err *e)
{
	struct search *s = arg;

	(void)e;
	for (size_t i = 0; s->p->v[i]; i++) {
		const char *const one[] = { s->p->v[i], NULL };

		if (s->met[i] || !chosen_has(one, path))
			continue;
		s->met[i] = true;
		s->missing--;
	}
	return s->missing ? 0 : 1;
}

static int compare_change(void *arg, const struct change *c, struct err *e)
{
	return compare(arg, c->path, e);
}

/*
 * If an operand is the exact name of a changed path, only that path is meant; otherwise it is
 * a pattern.
 */
static void decide(struct op_paths *p, bool *met)
{
	size_t w = 0;

	for (size_t i = 0; p->v[i]; i++) {
		if (is_second(p, i) && met[w - 1]) {
			free(p->v[i]);
			continue;
		}
		if (is_second(p, i))
			free(p->v[--w]);
		met[w] = met[i];
		p->word[w] = p->word[i];
		p->v[w++] = p->v[i];
	}
	p->v[w] = NULL;
}

/*
 * A change is at its path without any link: if one is at or below a name as it was typed, the
 * transaction has directories all the way, whatever the host has.
 */
static int take_name(void *arg, const struct change *c, struct err *e)
{
	struct op_paths *p = arg;

	(void)e;
	for (size_t i = 0; p->v[i]; i++) {
		const char *const one[] = { p->names[p->word[i]], NULL };

		if (is_second(p, i) || strcmp(p->v[i], one[0]) == 0 ||
		    !chosen_has(one, c->path))
			continue;
		free(p->v[i]);
		p->v[i] = xstrdup(one[0]);
	}
	return 0;
}

/* Was any link of the host's followed? Mostly not. */
static bool is_resolved(const struct op_paths *p)
{
	for (size_t i = 0; p->v[i]; i++)
		if (!is_second(p, i) && strcmp(p->v[i], p->names[p->word[i]]) != 0)
			return true;
	return false;
}

int op_paths_check(struct op_paths *p, const struct txn_record *rec, struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	AUTO_FREE bool *met = NULL;
	struct search s = { p, NULL, strv_len(p->v) };
	size_t n, i;

	if (!p->v)
		return 0;
	s.met = met = xcalloc(s.missing, sizeof(*met));
	layers = txn_layers(rec, &n);
	if (is_resolved(p) && change_walk(layers, n, take_name, p, e) < 0)
		return -1;
	if (change_walk(layers, n, compare_change, &s, e) < 0)
		return -1;
	decide(p, met);
	for (i = 0; p->v[i] && met[i]; i++)
		;
	if (!p->v[i])
		return 0;
	err_set(e, ERR_USAGE, "t%lld changed nothing at '%s'", (long long)rec->id,
		p->typed[p->word[i]]);
	return err_hint(e, "see: stet status t%lld", (long long)rec->id);
}

int op_paths_settle(struct op_paths *p, struct home *h, const struct txn *t, int64_t op,
		    bool redo, struct err *e)
{
	AUTO_FREE bool *met = NULL;
	struct search s = { p, NULL, strv_len(p->v) };

	/* Every word is a name: there is nothing to decide. */
	if (strv_len(p->v) == strv_len(p->typed))
		return 0;
	s.met = met = xcalloc(s.missing, sizeof(*met));
	if (txn_op_paths(h, t, op, redo, compare, &s, e) < 0)
		return -1;
	decide(p, met);
	return 0;
}

bool op_paths_name(struct op_ctx *ctx, const char *typed, const struct path_notes *n)
{
	AUTO_FREE char *word = xstrdup(typed);
	char *const one[] = { word, NULL };
	struct op_paths p = { 0 };
	struct err ignored;
	bool found = false;

	if (op_paths_make(ctx, one, &p, &ignored) == 0)
		for (size_t i = 0; i < n->n && !found; i++) {
			AUTO_FREE char *path = chosen_literal(n->v[i].path);

			for (char **v = p.v; *v && !found; v++)
				found = path_within(*v, path);
			found = found || path_within(p.names[0], path);
		}
	op_paths_free(&p);
	return found;
}
