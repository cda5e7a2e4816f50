/* SPDX-License-Identifier: Apache-2.0 */
#include "host/moved.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "host/known.h"
#include "host/table.h"
#include "journal/op_rows.h"

/* A change list: an undo and its redo mostly go through that of the commit. */
struct list {
	char *plan;
	int64_t first,
		last; /* ends of the first and last operation that went through it */
};

struct moved {
	struct home *h;
	int64_t txn, begin;
	int dir;
	bool listed, loaded;
	struct list *lists; /* newest first use first */
	size_t n;
	struct table *times; /* int64_t, by path and by inode */
	int64_t unnamed;     /* some inode with several names, not known which */
	/* While a list is read: */
	int64_t now;
};

struct moved *moved_new(struct home *h, int64_t txn, int64_t begin, int dir)
{
	struct moved *m = xcalloc(1, sizeof(*m));

	*m = (struct moved){ .h = h, .txn = txn, .begin = begin, .dir = dir };
	return m;
}

void moved_free(struct moved *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free(m->lists[i].plan);
	free(m->lists);
	table_free(m->times);
	free(m);
}

/* --- which operations there were --- */

static int note_op(void *arg, struct op_record *r, struct err *e)
{
	struct moved *m = arg;
	struct list *l = NULL;

	(void)e;
	if (!r->plan || !r->done_ns)
		return 0;
	for (size_t i = 0; i < m->n && !l; i++)
		if (strcmp(m->lists[i].plan, r->plan) == 0)
			l = &m->lists[i];
	if (!l) {
		if ((m->n & (m->n - 1)) == 0)
			m->lists = xrealloc(m->lists,
					    (m->n ? 2 * m->n : 8) * sizeof(*m->lists));
		l = &m->lists[m->n++];
		*l = (struct list){ r->plan, r->done_ns, r->done_ns };
		r->plan = NULL;
	}
	l->first = r->done_ns < l->first ? r->done_ns : l->first;
	l->last = r->done_ns > l->last ? r->done_ns : l->last;
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct list *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static void read_journal(struct moved *m)
{
	struct err ignored;

	if (m->listed)
		return;
	m->listed = true;
	journal_op_each(m->h->journal, m->txn, note_op, m, &ignored);
	if (m->n)
		qsort(m->lists, m->n, sizeof(*m->lists), by_first);
}

int64_t moved_by_list(struct moved *m, const char *plan)
{
	read_journal(m);
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->lists[i].plan, plan) == 0)
			return m->lists[i].last;
	return 0;
}

/* --- which paths and inodes they moved --- */

uint64_t moved_place(uint32_t layer, const char *rel)
{
	return XXH64(rel, strlen(rel), layer);
}

static uint64_t key_of_inode(uint32_t layer, const struct ident *id)
{
	return XXH64(&id->ino, sizeof(id->ino), (uint64_t)layer | UINT64_C(1) << 32);
}

static int64_t time_of(const struct moved *m, uint64_t key)
{
	struct err ignored;
	int64_t at = 0;

	return table_get(m->times, key, &at, &ignored) > 0 ? at : 0;
}

/* An entry that cannot be kept is not known. */
static void put(struct moved *m, uint64_t key, int64_t at)
{
	struct err ignored;

	if (time_of(m, key) < at)
		table_put(m->times, key, &at, &ignored);
}

/* Notes an inode that has several names. The record of a later step may still say one name: an
 * inode that was noted before is noted again. */
static void put_inode(struct moved *m, const struct plan_rec *r, const struct ident *id,
		      bool several)
{
	uint64_t key;

	if (!id->mode || S_ISDIR(id->mode))
		return;
	key = key_of_inode(r->layer, id);
	if (several || id->nlink > 1 || time_of(m, key))
		put(m, key, m->now);
}

/*
 * A new name has moved the ctime of the file that it was made of, which nobody has looked at: if
 * somebody else had been at that before, by the ctime that it had, it stays his work.
 */
static void put_target(struct moved *m, const struct plan_rec *r)
{
	uint64_t path = moved_place(r->layer, r->link);
	uint64_t inode = key_of_inode(r->layer, &r->after);
	int64_t until = m->begin;

	if (time_of(m, path) > until)
		until = time_of(m, path);
	if (!(r->flags & PLAN_STAGED) && time_of(m, inode) > until)
		until = time_of(m, inode);
	if (r->flags & PLAN_STAGED) {
		/* The list has the inode of the staged copy. */
		put(m, path, m->now);
		m->unnamed = m->now > m->unnamed ? m->now : m->unnamed;
	} else if (r->after.ctime < until) {
		put(m, path, m->now);
		put(m, inode, m->now);
	}
}

static bool is_on_host(const struct plan_rec *r)
{
	return r->kind != PLAN_BASE && r->kind != PLAN_LEAVE &&
	       !(r->kind == PLAN_DIR && r->flags & PLAN_ASIDE) &&
	       !(r->kind == PLAN_LINK && r->flags & PLAN_STAGED);
}

static int read_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct moved *m = arg;
	struct ident host = r->after;

	(void)e;
	if (r->kind == PLAN_LINK || r->flags & PLAN_LINKED)
		put_target(m, r);
	if (!is_on_host(r))
		return 0;
	if (r->kind == PLAN_META) { /* always the host's own inode */
		host.ino = r->before.ino;
		host.nlink = r->before.nlink;
	}
	put(m, moved_place(r->layer, r->rel), m->now);
	put_inode(m, r, &r->before, false);
	if (r->kind != PLAN_LINK && !(r->flags & PLAN_LINKED))
		put_inode(m, r, &host, false);
	return 0;
}

static int read_inherited(void *arg, const struct plan_rec *r, struct err *e)
{
	struct moved *m = arg;

	(void)e;
	m->now = moved_noted(r);
	if (!m->now)
		return 0;
	put(m, moved_place(r->layer, r->rel), m->now);
	put_inode(m, r, &r->before, false);
	put_inode(m, r, &r->after, r->kind == PLAN_LINK);
	return 0;
}

static void read_list(struct moved *m, const char *name, plan_fn *fn)
{
	struct err ignored;
	struct plan *p;

	if (plan_open(m->dir, name, &p, &ignored) < 0)
		return;
	plan_each(p, false, fn, m, &ignored);
	plan_close(p);
}

void moved_read(struct moved *m)
{
	if (m->loaded)
		return;
	m->loaded = true;
	read_journal(m);
	m->times = table_new(m->dir, sizeof(int64_t));
	if (faccessat(m->dir, INHERITED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		read_list(m, INHERITED, read_inherited);
	for (size_t i = 0; i < m->n; i++) {
		m->now = m->lists[i].last;
		read_list(m, m->lists[i].plan, read_step);
	}
}

int64_t moved_place_until(struct moved *m, uint64_t place)
{
	moved_read(m);
	return time_of(m, place);
}

int64_t moved_until(struct moved *m, uint32_t layer, const char *rel,
		    const struct ident *id)
{
	int64_t path, inode = 0;

	moved_read(m);
	path = rel ? time_of(m, moved_place(layer, rel)) : 0;
	if (!S_ISDIR(id->mode)) {
		inode = time_of(m, key_of_inode(layer, id));
		if (id->nlink > 1 && m->unnamed > inode)
			inode = m->unnamed;
	}
	return path > inode ? path : inode;
}

/* --- what another transaction has moved --- */

void moved_note(struct plan_rec *r, const int64_t *until)
{
	r->xafter = (const char *)until;
	r->nxafter = *until ? sizeof(*until) : 0;
}

int64_t moved_noted(const struct plan_rec *r)
{
	int64_t until = 0;

	if (r->nxafter == sizeof(until))
		memcpy(&until, r->xafter, sizeof(until));
	return until;
}
