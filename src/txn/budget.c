/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "sys/fs.h"
#include "txn/find.h"
#include "txn/parts.h"
#include "txn/prune.h"

enum { DAY_MS = 86400000, TRIM_EVERY_S = 3600, TRIM_EVERY_PART = 4 };

/* Bytes of the blocks below @name; what cannot be read counts nothing. */
static uint64_t space_at(int dirfd, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = -1;
	struct fs_names names;
	struct stat st;
	uint64_t sum;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	sum = (uint64_t)st.st_blocks * 512 / (S_ISDIR(st.st_mode) ? 1 : st.st_nlink);
	if (!S_ISDIR(st.st_mode) || depth > 200)
		return sum;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fs_names_read(fd, &names) < 0)
		return sum;
	for (size_t i = 0; i < names.n; i++)
		sum += space_at(fd, names.v[i], depth + 1);
	fs_names_free(&names);
	return sum;
}

uint64_t data_space(const struct txn_record *r)
{
	uint64_t sum = space_at(AT_FDCWD, r->dir, 0);

	for (size_t i = 0; i < r->nlayers; i++)
		if (strncmp(r->layers[i].dir, r->dir, strlen(r->dir)) != 0)
			sum += space_at(AT_FDCWD, r->layers[i].dir, 0);
	return sum;
}

struct past {
	int64_t id, end_ns;
	enum txn_state state;
	uint64_t bytes;
	bool stays; /* whatever its size */
};

struct history {
	struct past *v;
	size_t n;
};

static int collect(void *arg, struct txn_record *r, struct err *e)
{
	struct history *h = arg;
	struct past p = { r->id, r->end_ns ? r->end_ns : r->begin_ns, r->state, 0,
			  false };

	(void)e;
	if (r->state != TXN_COMMITTED && r->state != TXN_ROLLED_BACK)
		return 0;
	p.bytes = data_space(r);
	if ((h->n & (h->n - 1)) == 0)
		h->v = xrealloc(h->v, (h->n ? 2 * h->n : 16) * sizeof(*h->v));
	h->v[h->n++] = p;
	return 0;
}

int txn_forget_one(struct home *h, struct txn *t, bool dry_run, uint64_t *bytes,
		   struct err *e)
{
	struct removal removal = { .id = t->rec.id, .from = t->rec.state };
	struct history one = { 0 };

	collect(&one, &t->rec, e);
	if (!one.n) {
		err_set(e, ERR_STATE,
			"t%lld is %s; only committed and rolled-back ones are forgotten",
			(long long)t->rec.id, txn_look_name(txn_look(&t->rec)));
		return err_hint(e, "commit it or roll it back first");
	}
	*bytes = one.v[0].bytes;
	free(one.v);
	return dry_run ? 0 : data_let_go(h, &removal, 1, "forget", e);
}

static bool is_old(const struct budget *b, const struct past *p, size_t rank, int64_t now)
{
	bool ruled = b->keep_last > 0 || b->keep_within_ms > 0;

	if (b->keep_last > 0 && rank < (uint64_t)b->keep_last)
		return false;
	if (b->keep_within_ms > 0 && (now - p->end_ns) / 1000000 < b->keep_within_ms)
		return false;
	return ruled;
}

/*
 * From the newest on: transactions that are too old go, then those that do not fit. Returns
 * how many go.
 */
static size_t choose(const struct budget *b, struct history *past, uint64_t *held,
		     struct removal *out)
{
	struct timespec t;
	int64_t now;
	size_t n = 0;

	clock_gettime(CLOCK_REALTIME, &t);
	now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	for (size_t i = 0; i < past->n; i++) {
		const struct past *p = &past->v[i];
		bool full = b->max_bytes > 0 && !p->stays &&
			    *held + p->bytes > b->max_bytes;

		if (is_old(b, p, i, now) || full) {
			out[n++] = (struct removal){ .id = p->id, .from = p->state };
			past->v[n - 1] = *p; /* the first n are those that go */
		} else {
			*held += p->bytes;
		}
	}
	return n;
}

static struct past *find_past(const struct history *h, int64_t txn)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].id == txn)
			return &h->v[i];
	return NULL;
}

/*
 * Operations come newest first: the first one whose transaction is still committed is the
 * newest commit.
 */
static int spare(void *arg, struct op_record *r, struct err *e)
{
	struct past *p = NULL;

	(void)e;
	if ((r->kind == OP_COMMIT || r->kind == OP_REDO) && r->state == OP_DONE)
		p = find_past(arg, r->txn);
	if (!p || p->state != TXN_COMMITTED)
		return 0;
	p->stays = true;
	return 1;
}

int txn_forget(struct home *h, const struct budget *b, struct budget_result *r,
	       struct err *e)
{
	AUTO_FREE struct removal *removals = NULL;
	struct history past = { 0 };
	size_t n;
	int x;

	*r = (struct budget_result){ 0 };
	x = journal_txn_each(h->journal, JOURNAL_KEPT, collect, &past, e);
	if (x == 0 && b->spare_newest)
		x = journal_op_each(h->journal, 0, spare, &past, e);
	removals = xcalloc(past.n + 1, sizeof(*removals));
	n = x == 0 ? choose(b, &past, &r->held, removals) : 0;
	if (x == 0 && !b->dry_run)
		x = data_let_go(h, removals, n, "forget", e);
	for (size_t i = 0; i < n; i++) {
		if (!b->dry_run && !removals[i].gone) {
			r->held += past.v[i].bytes;
			continue;
		}
		r->transactions++;
		r->bytes += past.v[i].bytes;
	}
	free(past.v);
	return x;
}

struct budget budget_default(const struct home *h)
{
	struct budget b = { .keep_within_ms = (int64_t)30 * DAY_MS,
			    .spare_newest = true };
	struct statvfs vs;

	if (statvfs(h->dir, &vs) == 0)
		b.max_bytes = (uint64_t)vs.f_blocks * vs.f_frsize / 10;
	return b;
}

static char *stamp_of(const struct home *h)
{
	return xasprintf("%s/trimmed", h->dir);
}

/* What the last trim wrote: bytes that the history held, and the free space beside it. */
struct trimmed {
	uint64_t held, room;
};

static bool read_trimmed(const char *stamp, struct trimmed *t)
{
	AUTO_FCLOSE FILE *f = fopen(stamp, "re");
	unsigned long long held, room;

	if (!f || fscanf(f, "%llu %llu", &held, &room) != 2)
		return false;
	*t = (struct trimmed){ held, room };
	return true;
}

static int write_trimmed(const char *stamp, struct trimmed t, struct err *e)
{
	FILE *f = fopen(stamp, "we");

	if (!f)
		return err_sys(e, errno, "cannot write %s", stamp);
	fprintf(f, "%llu %llu\n", (unsigned long long)t.held, (unsigned long long)t.room);
	return fclose(f) ? err_sys(e, errno, "cannot write %s", stamp) : 0;
}

static uint64_t room_at(const char *dir)
{
	struct statvfs vs;

	return statvfs(dir, &vs) == 0 ? (uint64_t)vs.f_bavail * vs.f_frsize : 0;
}

/*
 * A look walks through all kept data. A user who fills the disk within an hour, with history
 * or anything else, is met as soon as a part of the budget is gone from the free space.
 */
static bool is_trim_due(const struct home *h, const char *stamp, uint64_t budget)
{
	struct trimmed last;
	struct stat st;

	return stat(stamp, &st) < 0 || time(NULL) - st.st_mtime >= TRIM_EVERY_S ||
	       !read_trimmed(stamp, &last) ||
	       room_at(h->dir) + budget / TRIM_EVERY_PART < last.room;
}

uint64_t txn_held(const struct home *h)
{
	AUTO_FREE char *stamp = stamp_of(h);
	struct trimmed last;

	return read_trimmed(stamp, &last) ? last.held : 0;
}

int txn_trim(struct home *h, struct err *e)
{
	AUTO_FREE char *stamp = stamp_of(h);
	struct budget b = budget_default(h);
	struct budget_result r;

	if (!is_trim_due(h, stamp, b.max_bytes))
		return 0;
	if (txn_forget(h, &b, &r, e) < 0)
		return -1;
	return write_trimmed(stamp, (struct trimmed){ r.held, room_at(h->dir) }, e);
}
