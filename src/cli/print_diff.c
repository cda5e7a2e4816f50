/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "ops/diff.h"
#include "ops/status.h"

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
static void patch(struct buf *b, const struct cli *c, const char *s, size_t n)
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

static int conflict(const struct diff_res *res, size_t i, struct buf *out, struct err *e)
{
	AUTO_BUF struct buf name = BUF_INIT;

	patch_name(res->list.v[i].c.path, res->rec.workspace, &name);
	buf_adds(out, "# ");
	text_quote(out, buf_str(&name), name.len);
	buf_addf(out, ": %s\n", diff_conflict(res, i));
	return diff_sides(res, i, out, e);
}

static int print_patches(struct cli *c, const struct diff_res *res, struct err *e)
{
	AUTO_BUF struct buf raw = BUF_INIT, b = BUF_INIT;
	size_t i;

	/* A reader who has seen enough closes the pager, and with it the stream. */
	for (i = 0; i < res->list.n && !ferror(c->out); i++) {
		if (res->list.v[i].renamed_away)
			continue;
		buf_reset(&raw);
		if (res->known ? conflict(res, i, &raw, e) < 0
			       : diff_patch(res, i, &raw, NULL, e) < 0)
			return -1;
		patch(&b, c, buf_str(&raw), raw.len);
		show_flush(c, &b);
	}
	return 0;
}

static void print_names(struct cli *c, const struct diff_res *res, bool null)
{
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; i < res->list.n && !ferror(c->out); i++) {
		if (res->list.v[i].renamed_away)
			continue;
		patch_name_status(&res->list, &res->list.v[i], res->rec.workspace, null,
				  &b);
		show_flush(c, &b);
	}
}

struct stat_row {
	char *name;
	struct patch_stat st;
};

/* Bars are drawn to scale once the largest does not fit any more. */
static void stat_line(struct buf *b, const struct cli *c, const struct stat_row *r,
		      size_t name_width, uint64_t most, uint64_t bar)
{
	uint64_t plus = r->st.added, minus = r->st.removed, i;

	buf_addf(b, " %-*s | ", (int)name_width, r->name);
	if (r->st.binary) {
		buf_addf(b, "Bin %llu -> %llu bytes\n",
			 (unsigned long long)r->st.size_before,
			 (unsigned long long)r->st.size_after);
		return;
	}
	buf_addf(b, "%5llu ", (unsigned long long)(plus + minus));
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

	patch_name(path, res->rec.workspace, &name);
	text_quote(b, buf_str(&name), name.len);
}

static int gather_stats(const struct diff_res *res, struct stat_row *rows, size_t *n,
			struct err *e)
{
	size_t i;

	for (i = 0; i < res->list.n; i++) {
		const struct change_item *it = &res->list.v[i];
		struct buf name = BUF_INIT;

		if (it->renamed_away)
			continue;
		if (diff_patch(res, i, NULL, &rows[*n].st, e) < 0)
			return -1;
		if (it->renamed_from != SIZE_MAX) {
			add_name(&name, res, change_item_from(&res->list, it));
			buf_adds(&name, " => ");
		}
		add_name(&name, res, it->c.path);
		rows[(*n)++].name = buf_take(&name);
	}
	return 0;
}

static int print_stat(struct cli *c, const struct diff_res *res, struct err *e)
{
	struct stat_row *rows = xcalloc(res->list.n + 1, sizeof(*rows));
	uint64_t added = 0, removed = 0, most = 0;
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i, n = 0, wide = 0;
	int r;

	r = gather_stats(res, rows, &n, e);
	for (i = 0; i < n; i++) {
		uint64_t both = rows[i].st.added + rows[i].st.removed;

		added += rows[i].st.added;
		removed += rows[i].st.removed;
		most = both > most ? both : most;
		wide = strlen(rows[i].name) > wide ? strlen(rows[i].name) : wide;
	}
	for (i = 0; i < n; i++) {
		if (r == 0)
			stat_line(&b, c, &rows[i], wide < 60 ? wide : 60, most, 40);
		free(rows[i].name);
	}
	free(rows);
	if (r == 0 && n)
		buf_addf(&b, " %zu path%s changed, %llu line%s added, %llu removed\n", n,
			 n == 1 ? "" : "s", (unsigned long long)added,
			 added == 1 ? "" : "s", (unsigned long long)removed);
	show_flush(c, &b);
	return r;
}

int print_diff(struct cli *c, const void *req, const void *result, struct err *e)
{
	const struct diff_req *rq = req;
	const struct diff_res *res = result;

	if (rq->name_status || rq->null) {
		print_names(c, res, rq->null);
		return 0;
	}
	return rq->stat ? print_stat(c, res, e) : print_patches(c, res, e);
}
