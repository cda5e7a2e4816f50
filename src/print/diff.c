/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/print.h"
#include "print/show.h"
#include "print/term.h"
#include "review/diff.h"

/* A line of somebody's file, harmless on a terminal; tabs are kept. */
static void safe_line(struct buf *b, const char *s, size_t n)
{
	while (n) {
		const char *tab = memchr(s, '\t', n);
		size_t k = tab ? (size_t)(tab - s) : n;

		text_escape(b, s, k);
		if (tab)
			buf_addc(b, '\t');
		s += k + (tab != NULL);
		n -= k + (tab != NULL);
	}
}

static const char *line_color(char first, bool in_hunk)
{
	if (!in_hunk)
		return first == '#' ? "36" : "1";
	switch (first) {
	case '+':
		return "32";
	case '-':
		return "31";
	case '@':
		return "36";
	default:
		return NULL;
	}
}

/* One file's patch, line by line. */
static void patch(struct buf *b, const struct console *c, const char *s, size_t n)
{
	bool in_hunk = false;

	while (n) {
		const char *nl = memchr(s, '\n', n);
		size_t len = nl ? (size_t)(nl - s) : n;
		const char *color;

		in_hunk |= len >= 3 && memcmp(s, "@@ ", 3) == 0;
		color = c->color && len ? line_color(s[0], in_hunk) : NULL;
		if (color)
			show_color(b, c, color);
		if (c->tty)
			safe_line(b, s, len);
		else
			buf_add(b, s, len);
		if (color)
			show_color(b, c, NULL);
		if (nl)
			buf_addc(b, '\n');
		s += len + (nl != NULL);
		n -= len + (nl != NULL);
	}
}

/* What is being printed; @b is for use by one line. */
struct printing {
	struct console *c;
	const struct diff_res *res;
	bool null;
	struct buf raw, b;
	/* --stat */
	size_t wide;
	uint64_t n, added, removed, most;
	struct stat_row *rows; /* unless there are many */
};

/* A reader who has seen enough closes the pager, and with it the stream. */
static int enough(const struct printing *p)
{
	return ferror(p->c->out) ? 1 : 0;
}

static int print_patch(void *arg, const struct change_item *it, struct err *e)
{
	struct printing *p = arg;

	if (it->renamed_away)
		return 0;
	buf_reset(&p->raw);
	if (diff_text(p->res, it, &p->raw, e) < 0)
		return -1;
	patch(&p->b, p->c, buf_str(&p->raw), p->raw.len);
	show_flush(p->c, &p->b);
	return enough(p);
}

static int print_name(void *arg, const struct change_item *it, struct err *e)
{
	struct printing *p = arg;

	(void)e;
	if (it->renamed_away)
		return 0;
	patch_name_status(&p->res->changes.list, it, p->res->txn.rec.workspace, p->null,
			  &p->b);
	show_flush(p->c, &p->b);
	return enough(p);
}

struct stat_row {
	char *name;
	struct patch_stat st;
};

/* Bars are drawn to scale once the largest does not fit any more. */
static void stat_line(struct buf *b, const struct console *c, const struct stat_row *r,
		      size_t name_width, uint64_t most, uint64_t bar)
{
	uint64_t plus = r->st.added, minus = r->st.removed, i;
	size_t wide = show_width(r->name);

	buf_addf(b, " %s%*s | ", r->name,
		 (int)(wide < name_width ? name_width - wide : 0), "");
	if (r->st.binary) {
		buf_addf(b, "Bin %llu -> %llu bytes\n",
			 (unsigned long long)r->st.size_before,
			 (unsigned long long)r->st.size_after);
		return;
	}
	buf_addf(b, "%5llu%s", (unsigned long long)(plus + minus),
		 plus + minus ? " " : "");
	if (most > bar) {
		plus = plus ? 1 + plus * (bar - 1) / most : 0;
		minus = minus ? 1 + minus * (bar - 1) / most : 0;
	}
	show_color(b, c, "32");
	for (i = 0; i < plus; i++)
		buf_addc(b, '+');
	show_color(b, c, "31");
	for (i = 0; i < minus; i++)
		buf_addc(b, '-');
	show_color(b, c, NULL);
	buf_addc(b, '\n');
}

static void add_name(struct buf *b, const struct diff_res *res, const char *path)
{
	AUTO_BUF struct buf name = BUF_INIT;

	patch_name(path, res->txn.rec.workspace, &name);
	text_quote(b, buf_str(&name), name.len);
}

static void add_names(const struct printing *p, const struct change_item *it,
		      struct buf *name)
{
	const struct change *from = changes_from(&p->res->changes, it);

	if (from) {
		add_name(name, p->res, from->path);
		buf_adds(name, " => ");
	}
	add_name(name, p->res, it->c.path);
}

static int measure(void *arg, const struct change_item *it, struct err *e)
{
	AUTO_BUF struct buf name = BUF_INIT;
	struct printing *p = arg;
	size_t wide;

	(void)e;
	if (it->renamed_away)
		return 0;
	add_names(p, it, &name);
	wide = show_width(buf_str(&name));
	p->wide = wide > p->wide ? wide : p->wide;
	return 0;
}

enum { NAME_MAX_WIDTH = 60, BAR_WIDTH = 40 };

/* Kept until the longest bar is known; of many, each has a scale of its own. */
static int gather_stat(void *arg, const struct change_item *it, struct err *e)
{
	struct printing *p = arg;
	AUTO_BUF struct buf name = BUF_INIT;
	struct stat_row row = { 0 };
	uint64_t both;

	if (it->renamed_away)
		return 0;
	if (diff_lines(p->res, it, &row.st, e) < 0)
		return -1;
	add_names(p, it, &name);
	both = row.st.added + row.st.removed;
	p->n++;
	p->added += row.st.added;
	p->removed += row.st.removed;
	p->most = both > p->most ? both : p->most;
	if (p->rows) {
		row.name = buf_take(&name);
		p->rows[p->n - 1] = row;
		return 0;
	}
	row.name = name.data;
	stat_line(&p->b, p->c, &row, p->wide, both, BAR_WIDTH);
	show_flush(p->c, &p->b);
	return enough(p);
}

static int print_stat(struct printing *p, struct err *e)
{
	const struct changes *ch = &p->res->changes;
	int r;

	if (!ch->many)
		p->rows = xcalloc(ch->list.n + 1, sizeof(*p->rows));
	r = changes_each(ch, measure, p, e);
	p->wide = p->wide < NAME_MAX_WIDTH ? p->wide : NAME_MAX_WIDTH;
	if (r == 0)
		r = changes_each(ch, gather_stat, p, e);
	for (uint64_t i = 0; p->rows && i < p->n; i++) {
		if (r == 0)
			stat_line(&p->b, p->c, &p->rows[i], p->wide, p->most, BAR_WIDTH);
		free(p->rows[i].name);
	}
	free(p->rows);
	if (r == 0 && p->n)
		buf_addf(&p->b, " %llu path%s changed, %llu line%s added, %llu removed\n",
			 (unsigned long long)p->n, p->n == 1 ? "" : "s",
			 (unsigned long long)p->added, p->added == 1 ? "" : "s",
			 (unsigned long long)p->removed);
	show_flush(p->c, &p->b);
	return r;
}

int print_diff(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct diff_req *rq = req;
	const struct diff_res *res = result;
	struct printing p = { .c = c, .res = res, .null = rq->null };
	int r;

	if (rq->name_status || rq->null)
		r = changes_each(&res->changes, print_name, &p, e);
	else
		r = rq->stat ? print_stat(&p, e)
			     : changes_each(&res->changes, print_patch, &p, e);
	buf_free(&p.raw);
	buf_free(&p.b);
	return r < 0 ? -1 : 0;
}
