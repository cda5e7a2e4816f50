/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "diff/list.h"
#include "print/print.h"
#include "print/show.h"
#include "print/term.h"
#include "review/list.h"
#include "review/prune.h"
#include "review/rollback.h"
#include "review/status.h"

static int64_t seconds_since(int64_t ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - ns / 1000000000;
}

static void field(struct buf *b, const char *name)
{
	buf_addf(b, "  %-12s ", name);
}

static void began(struct buf *b, const struct txn_record *r)
{
	time_t sec = (time_t)(r->begin_ns / 1000000000);
	char text[64];
	struct tm tm;

	text_ago(b, seconds_since(r->begin_ns));
	if (localtime_r(&sec, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		buf_addf(b, " (%s)", text);
	if (r->end_ns > r->begin_ns) {
		buf_adds(b, ", took ");
		show_duration(b, (r->end_ns - r->begin_ns) / 1000);
	}
}

static void header(struct buf *b, const struct console *c, const struct status_res *res)
{
	const struct txn_record *r = &res->txn.rec;

	show_color(b, c, "1");
	buf_addf(b, "t%lld", (long long)r->id);
	show_color(b, c, NULL);
	buf_addf(b, " %s", res->txn.state);
	if (r->name) {
		buf_adds(b, ", called ");
		text_quote(b, r->name, strlen(r->name));
	}
	buf_addc(b, '\n');
	field(b, "workspace");
	show_path(b, c, NULL, r->workspace);
	buf_addc(b, '\n');
	field(b, "command");
	show_argv(b, r->argv);
	buf_addc(b, '\n');
	field(b, "began");
	began(b, r);
	buf_addc(b, '\n');
	if (r->end_ns) {
		field(b, "ended");
		show_end(b, r);
		buf_addc(b, '\n');
	}
	field(b, "holds");
	text_size(b, res->totals.bytes);
	if (!res->durable && res->txn.look == TXN_PENDING)
		buf_adds(b, ", not on the disk yet");
	buf_addc(b, '\n');
	if (res->held) {
		field(b, "history");
		text_size(b, res->held);
		buf_adds(b, " in all");
		buf_addc(b, '\n');
	}
	if (r->neffects) {
		field(b, "not undoable");
		show_effects(b, c, r);
		buf_addc(b, '\n');
	}
}

/* Names the parts in which a changed object differs, unless that is its content alone. */
static void note_of(const struct change *c, struct buf *note)
{
	static const struct {
		unsigned bit;
		const char *name;
	} bits[] = { { CHANGE_CONTENT, "content" },
		     { CHANGE_MODE, "mode" },
		     { CHANGE_OWNER, "owner" },
		     { CHANGE_XATTR, "attributes" } };
	size_t i;

	if (c->was_hidden)
		buf_adds(note, c->before.st_mode ? "hidden on the host"
						 : "hidden from the command");
	if (c->was_closed)
		buf_addf(note, "%swas read-only", note->len ? ", " : "");
	if (c->kind != CHANGE_MODIFY || !(c->what & ~(CHANGE_CONTENT | CHANGE_TIMES)))
		return;
	for (i = 0; i < ARRAY_SIZE(bits); i++)
		if (c->what & bits[i].bit)
			buf_addf(note, "%s%s", note->len ? ", " : "", bits[i].name);
}

static bool is_dir(const struct change *c)
{
	return S_ISDIR((c->after.st_mode ? &c->after : &c->before)->st_mode);
}

static bool is_shown(const struct change_item *it, bool all)
{
	return !it->renamed_away &&
	       (all || !it->c.implied || it->renamed_from != SIZE_MAX);
}

/*
 * Files not shown, added to the directory whose line stands for them. The contents of a
 * deleted directory come before it, those of an added one after it.
 */
static uint64_t *count_below(const struct change_list *l, bool all)
{
	uint64_t *below = xcalloc(l->n + 1, sizeof(*below));
	uint64_t before = 0;
	size_t i, top = SIZE_MAX;

	for (i = 0; i < l->n; i++) {
		const struct change *c = &l->v[i].c;
		const char *dir = top == SIZE_MAX ? NULL : l->v[top].c.path;

		if (!c->implied) {
			below[i] = before;
			before = 0;
			top = i;
		} else if (is_shown(&l->v[i], all) || l->v[i].renamed_away || is_dir(c)) {
			continue;
		} else if (dir && strncmp(dir, c->path, strlen(dir)) == 0 &&
			   c->path[strlen(dir)] == '/') {
			below[top]++;
		} else {
			before++;
		}
	}
	return below;
}

static void line(struct console *c, const struct status_res *res,
		 const struct change_item *it, uint64_t below, struct buf *b)
{
	const struct change *from = changes_from(&res->changes, it);
	AUTO_BUF struct buf note = BUF_INIT;

	note_of(&it->c, &note);
	show_change(b, c, res->txn.rec.workspace, change_letter(it), it->c.path,
		    from ? from->path : NULL, is_dir(&it->c), below, buf_str(&note));
	if (b->len > 65536)
		show_flush(c, b);
}

/* Many changes, printed as they come. A directory waits until what is below it is counted. */
struct flow {
	struct console *c;
	const struct status_res *res;
	struct buf *b;
	struct change_list held; /* none or one */
	uint64_t below, before;
};

static void let_go(struct flow *f)
{
	if (f->held.n)
		line(f->c, f->res, &f->held.v[0], f->below, f->b);
	change_list_free(&f->held);
	f->below = 0;
}

static int flow(void *arg, const struct change_item *it, struct err *e)
{
	struct flow *f = arg;
	const char *dir = f->held.n ? f->held.v[0].c.path : NULL;

	(void)e;
	if (f->res->all) {
		line(f->c, f->res, it, 0, f->b);
	} else if (!it->c.implied) {
		let_go(f);
		change_list_add(&f->held, &it->c);
		f->below = f->before;
		f->before = 0;
	} else if (!is_dir(&it->c)) {
		if (dir && strncmp(dir, it->c.path, strlen(dir)) == 0 &&
		    it->c.path[strlen(dir)] == '/')
			f->below++;
		else
			f->before++;
	}
	return ferror(f->c->out) ? 1 : 0;
}

static int changes(struct console *c, const struct status_res *res, struct buf *b,
		   struct err *e)
{
	const struct change_list *l = &res->changes.list;
	AUTO_FREE uint64_t *below = count_below(l, res->all);
	struct flow f = { .c = c, .res = res, .b = b };
	int r = 0;

	if (res->changes.many)
		r = changes_each(&res->changes, flow, &f, e);
	let_go(&f);
	for (size_t i = 0; i < l->n; i++)
		if (is_shown(&l->v[i], res->all))
			line(c, res, &l->v[i], below[i], b);
	return r < 0 ? -1 : 0;
}

static const char introduction[] =
	"No transaction here yet. stet keeps what a command changes aside, to be looked at, kept "
	"or thrown away:\n"
	"  stet run -- COMMAND      then: stet status, stet diff, stet commit, stet rollback\n"
	"More: stet help. Does it work on this machine? stet doctor\n";

int print_status(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct status_res *res = result;
	long long id = res->txn.rec.id;
	AUTO_BUF struct buf b = BUF_INIT;
	enum txn_look look;

	(void)req;
	if (res->none) {
		fputs(introduction, c->out);
		return 0;
	}
	header(&b, c, res);
	look = res->txn.look;
	field(&b, "changes");
	if (look == TXN_EMPTY)
		buf_adds(&b, "pruned");
	else if (look == TXN_HALFWAY)
		buf_adds(&b, "a commit or undo did not end");
	else
		show_totals(&b, &res->totals);
	buf_addc(&b, '\n');
	if (changes(c, res, &b, e) < 0)
		return -1;
	if (res->risks.n) {
		buf_adds(&b, "deserve a look before a commit:\n");
		show_notes(&b, c, res->txn.rec.workspace, &res->risks);
	}
	if (look == TXN_PENDING || look == TXN_INTERRUPTED)
		buf_addf(
			&b,
			"look: stet diff t%lld    go in: stet explore t%lld    keep: stet commit "
			"t%lld    throw away: stet rollback t%lld\n",
			id, id, id, id);
	else if (res->txn.final && look == TXN_GONE)
		buf_addf(&b, "look at what it was: stet diff t%lld\n", id);
	else if (look == TXN_KEPT || look == TXN_GONE)
		buf_addf(&b, "take it back: stet undo t%lld\n", id);
	else if (look == TXN_HALFWAY)
		buf_adds(&b, "go on with it: stet recover\n");
	show_flush(c, &b);
	return 0;
}

enum { COLUMNS = 6 };

/* One transaction as cells; the last one, the command, has the rest of the line. */
static void cells(const struct console *c, const struct txn_facts *f, struct buf *cell)
{
	const struct txn_record *r = &f->rec;

	buf_addf(&cell[0], "t%lld", (long long)r->id);
	buf_adds(&cell[1], f->state);
	if (r->exit_status >= 0)
		buf_addf(&cell[2], "%d", r->exit_status);
	else
		buf_adds(&cell[2], "-");
	text_ago(&cell[3], seconds_since(r->begin_ns));
	show_path(&cell[4], c, NULL, r->workspace);
	if (r->name) {
		text_escape(&cell[5], r->name, strlen(r->name));
		buf_adds(&cell[5], ": ");
	}
	show_argv(&cell[5], r->argv);
}

static void table(struct console *c, const struct list_res *res)
{
	static const char *const heads[COLUMNS] = { "ID",   "STATE",	 "EXIT",
						    "WHEN", "WORKSPACE", "COMMAND" };
	AUTO_FREE struct buf *rows = xcalloc((res->n + 1) * COLUMNS, sizeof(*rows));
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		buf_adds(&rows[i], heads[i]);
	for (i = 0; i < res->n; i++)
		cells(c, &res->v[i], &rows[(i + 1) * COLUMNS]);
	show_table(c, rows, res->n + 1, COLUMNS);
}

int print_list(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct list_res *res = result;
	size_t i;

	(void)req;
	(void)e;
	if (res->ids) {
		for (i = 0; i < res->n; i++) {
			fprintf(c->out, "t%lld\n", (long long)res->v[i].rec.id);
			if (res->v[i].rec.name)
				fprintf(c->out, "%s\n", res->v[i].rec.name);
		}
	} else if (!res->n) {
		fputs("No transactions.\n", c->out);
	} else {
		table(c, res);
	}
	return 0;
}

int print_rollback(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct rollback_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	buf_addf(&b, "t%lld ", (long long)res->txn.rec.id);
	if (res->to >= 0 && !res->dry_run && !res->gone.after) {
		buf_addf(&b, "is what it was at checkpoint %lld already\n",
			 (long long)res->to);
	} else if (res->to >= 0) {
		buf_addf(&b, "%s back to checkpoint %lld: ",
			 res->dry_run ? "would go" : "went", (long long)res->to);
		show_totals(&b, &res->totals);
		if (!res->dry_run)
			buf_addf(&b, "; take it back: stet rollback t%lld --to %lld",
				 (long long)res->txn.rec.id, (long long)res->gone.before);
		buf_addc(&b, '\n');
	} else if (res->dry_run) {
		buf_adds(&b, "would be rolled back: ");
		show_totals(&b, &res->totals);
		buf_addc(&b, '\n');
	} else {
		buf_adds(&b, "rolled back; ");
		if (res->kept)
			buf_addf(&b, "left as %s %s: %llu changed since it ended; ",
				 res->kept == 1 ? "it" : "they",
				 res->kept == 1 ? "is" : "are",
				 (unsigned long long)res->kept);
		buf_addf(&b, "%s stet %s t%lld\n",
			 res->txn.in_place ? "look at what it was:" : "take it back:",
			 res->txn.in_place ? "diff" : "undo", (long long)res->txn.rec.id);
	}
	show_flush(c, &b);
	return 0;
}

int print_prune(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct prune_res *res = result;
	unsigned long long n = res->done.transactions, orphans = res->done.orphans;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	if (!n && !orphans) {
		fputs("nothing to prune\n", c->out);
		return 0;
	}
	buf_addf(&b, "%s%llu transaction%s", res->dry_run ? "would prune " : "pruned ", n,
		 n == 1 ? "" : "s");
	if (orphans)
		buf_addf(&b, " and %llu leftover%s", orphans, orphans == 1 ? "" : "s");
	buf_adds(&b, ", ");
	text_size(&b, res->done.bytes);
	buf_addc(&b, '\n');
	show_flush(c, &b);
	return 0;
}
