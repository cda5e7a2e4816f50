/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "diff/change.h"
#include "diff/list.h"
#include "diff/walk.h"

void change_totals_add(struct change_totals *t, const struct change *c)
{
	if (!change_counts(c))
		return;
	switch (c->kind) {
	case CHANGE_ADD:
		if (c->before.st_mode) /* hidden from the command, but there */
			t->modified++;
		else
			t->added++;
		break;
	case CHANGE_DELETE:
		t->deleted++;
		return;
	case CHANGE_MODIFY:
	case CHANGE_TYPE:
		t->modified++;
		break;
	}
	if (S_ISREG(c->after.st_mode))
		t->bytes += (uint64_t)c->after.st_size;
}

static int count_one(void *arg, const struct change *c, struct err *e)
{
	(void)e;
	change_totals_add(arg, c);
	return 0;
}

bool change_counts(const struct change *c)
{
	return c->kind != CHANGE_MODIFY || (c->what & ~(unsigned)CHANGE_TIMES);
}

int change_count(const struct change_layer *layers, size_t n, struct change_totals *t,
		 struct err *e)
{
	*t = (struct change_totals){ 0 };
	return change_walk(layers, n, count_one, t, e);
}

void change_list_add(struct change_list *l, const struct change *c)
{
	struct change_item *it;
	char *path;

	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap + l->cap / 2 : 64;
		l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	/* One string for both: the relative path is the tail of the absolute one. */
	path = xstrdup(c->path);
	it = &l->v[l->n++];
	*it = (struct change_item){ .c = *c, .renamed_from = SIZE_MAX };
	it->c.path = path;
	it->c.rel = path + (c->rel - c->path);
}

static int add_one(void *arg, const struct change *c, struct err *e)
{
	(void)e;
	change_list_add(arg, c);
	return 0;
}

int change_collect_paths(const struct change_layer *layers, size_t n,
			 const char *const *paths, struct change_list *l, struct err *e)
{
	*l = (struct change_list){ 0 };
	if (change_walk_paths(layers, n, paths, add_one, l, e) == 0)
		return 0;
	change_list_free(l);
	return -1;
}

int change_collect(const struct change_layer *layers, size_t n, struct change_list *l,
		   struct err *e)
{
	return change_collect_paths(layers, n, NULL, l, e);
}

static void free_string(const char *s)
{
	union {
		const char *in;
		char *out;
	} u = { s };

	free(u.out);
}

void change_list_free(struct change_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free_string(l->v[i].c.path);
	free(l->v);
	*l = (struct change_list){ 0 };
}

char change_letter_alone(const struct change *c)
{
	return c->kind == CHANGE_MODIFY && (c->what & ~CHANGE_TIMES) == CHANGE_MODE
		       ? 'X'
		       : (char)c->kind;
}

char change_letter(const struct change_item *it)
{
	return it->renamed_from != SIZE_MAX ? 'R' : change_letter_alone(&it->c);
}
