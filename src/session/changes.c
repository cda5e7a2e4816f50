/* SPDX-License-Identifier: Apache-2.0 */
#include "session/changes.h"

#include <stdlib.h>

#include "diff/list.h"
#include "diff/rename.h"

/* Some twenty MiB of them. */
enum { KEEP_MAX = 50000 };

static size_t keep_max(void)
{
	const char *text = getenv("STET_CHANGES_MAX");
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 ? (size_t)n : KEEP_MAX;
}

struct find {
	struct changes *c;
	size_t max;
	change_fn *also;
	void *arg;
};

static int find(void *arg, const struct change *c, struct err *e)
{
	struct find *f = arg;

	if (!change_counts(c))
		return 0;
	f->c->n++;
	if (f->c->n > f->max && !f->c->many) {
		change_list_free(&f->c->list);
		f->c->many = true;
	}
	if (!f->c->many)
		change_list_add(&f->c->list, c);
	return f->also ? f->also(f->arg, c, e) : 0;
}

int changes_find(struct changes *c,
		 int (*source)(const void *from, change_fn *fn, void *arg, struct err *e),
		 const void *from, change_fn *also, void *arg, struct err *e)
{
	struct find f = { c, keep_max(), also, arg };

	*c = (struct changes){ .source = source, .from = from };
	if (source(from, find, &f, e) == 0)
		return 0;
	changes_free(c);
	return -1;
}

void changes_free(struct changes *c)
{
	change_list_free(&c->list);
	*c = (struct changes){ 0 };
}

int changes_renames(struct changes *c, const struct change_layer *layers, struct err *e)
{
	return c->many ? 0 : change_find_renames(layers, &c->list, e);
}

struct pass {
	changes_fn *fn;
	void *arg;
};

static int pass_on(void *arg, const struct change *c, struct err *e)
{
	const struct pass *p = arg;
	const struct change_item it = { .c = *c, .renamed_from = SIZE_MAX };

	return change_counts(c) ? p->fn(p->arg, &it, e) : 0;
}

int changes_each(const struct changes *c, changes_fn *fn, void *arg, struct err *e)
{
	struct pass p = { fn, arg };
	int r = 0;

	if (c->many)
		return c->source(c->from, pass_on, &p, e);
	for (size_t i = 0; i < c->list.n && r == 0; i++)
		r = fn(arg, &c->list.v[i], e);
	return r;
}

const struct change *changes_from(const struct changes *c, const struct change_item *it)
{
	return it->renamed_from == SIZE_MAX ? NULL : &c->list.v[it->renamed_from].c;
}
