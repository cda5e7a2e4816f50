/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/txn_rows.h"
#include "sys/rmtree.h"
#include "txn/budget.h"
#include "txn/end.h"
#include "txn/home.h"
#include "txn/move.h"
#include "txn/parts.h"
#include "txn/prune.h"
#include "txn/recycle.h"

/* A set of strings (directories of transactions, stores), small enough for a list. */
struct names {
	char **v;
	size_t n;
};

static bool names_add(struct names *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->v[i]) == len && memcmp(s->v[i], name, len) == 0)
			return false;
	s->v = xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = xstrndup(name, len);
	return true;
}

static void names_free(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static size_t parent_len(const char *path)
{
	return (size_t)(strrchr(path, '/') - path);
}

/* The directory that a commit across filesystems keeps beside the tree (plan/stage.c). */
static void add_beside(const struct layer_record *l, struct names *dirs)
{
	AUTO_FREE char *dir = xstrdup(l->dir), *path = NULL;
	char *layer = strrchr(dir, '/');

	*layer++ = '\0';
	path = xasprintf("%s/.stet-%u/%s-%s", strcmp(l->host, "/") == 0 ? "" : l->host,
			 (unsigned)geteuid(), strrchr(dir, '/') + 1, layer);
	if (l->kind == LAYER_OVERLAY && access(path, F_OK) == 0)
		names_add(dirs, path, strlen(path));
}

/* All directories that hold data of the transaction, each once. */
static void data_dirs(const struct txn_record *r, struct names *dirs)
{
	names_add(dirs, r->dir, strlen(r->dir));
	for (size_t i = 0; i < r->nlayers; i++)
		names_add(dirs, r->layers[i].dir, parent_len(r->layers[i].dir));
	for (size_t i = 0; i < r->nlayers; i++)
		add_beside(&r->layers[i], dirs);
}

int data_remove_dir(const char *dir, uint64_t *bytes)
{
	AUTO_FREE char *parent = xstrndup(dir, parent_len(dir));
	AUTO_CLOSE int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t freed = 0;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = rmtree_at(fd, strrchr(dir, '/') + 1, bytes ? &freed : NULL);
	if (bytes)
		*bytes += freed;
	return r == -ENOENT ? 0 : r;
}

int data_remove(const struct txn_record *r, uint64_t *bytes)
{
	struct names dirs = { 0 };
	int first = 0, x;

	data_dirs(r, &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		x = data_remove_dir(dirs.v[i], bytes);
		if (x < 0 && first == 0)
			first = x;
	}
	names_free(&dirs);
	return first;
}

/* --- letting transactions go --- */

/*
 * This many rows are one write and one wait for the disk. A descriptor holds the lock of each.
 */
enum { BATCH = 32 };

struct batch {
	struct home *h;
	const char *event;
	struct txn t[BATCH];
	struct removal *of[BATCH];
	size_t n;
	int r;
	struct err *e; /* the first one */
};

static void note_error(struct batch *b, const struct err *e)
{
	if (b->r == 0)
		*b->e = *e;
	b->r = -1;
}

static void let_go(struct batch *b, size_t i, bool moved)
{
	const struct txn_record *rec = &b->t[i].rec;
	struct err e;
	int x;

	if (!moved) {
		err_set(&e, ERR_STATE, "t%lld was changed meanwhile; it stays",
			(long long)rec->id);
		note_error(b, &e);
		return;
	}
	txn_note(b->h, b->event, rec->id, 0);
	x = data_remove(rec, &b->of[i]->bytes);
	if (x < 0) {
		err_sys(&e, x, "cannot delete the data of t%lld", (long long)rec->id);
		note_error(b, &e);
	}
	b->of[i]->gone = x == 0;
}

/*
 * The rows come first: data without a row is deleted by prune, a row without data would be
 * wrong.
 */
static void finish_batch(struct batch *b)
{
	struct txn_move v[BATCH];
	struct err e;

	for (size_t i = 0; i < b->n; i++)
		v[i] = (struct txn_move){ b->t[i].rec.id, b->of[i]->from, false };
	if (b->n && txn_move_all(b->h, v, b->n, TXN_PRUNED, JOURNAL_SYNC, &e) < 0)
		note_error(b, &e);
	else
		for (size_t i = 0; i < b->n; i++)
			let_go(b, i, v[i].moved);
	for (size_t i = 0; i < b->n; i++)
		txn_close(&b->t[i]);
	b->n = 0;
}

static void add_removal(struct batch *b, struct removal *g)
{
	struct txn t = { .lock = -1 };
	struct err e;

	if (journal_txn_get(b->h->journal, g->id, &t.rec, &e) < 0) {
		note_error(b, &e);
		return;
	}
	/*
	 * A process that waits for one lock must hold no other: two such processes could wait
	 * for each other.
	 */
	if (b->n)
		t.lock = lock_take(t.rec.dir, false);
	if (b->n && t.lock < 0 && t.lock != -ENOENT)
		finish_batch(b);
	if (t.lock < 0 && txn_own(&t, &e) < 0) {
		note_error(b, &e);
		txn_close(&t);
		return;
	}
	b->of[b->n] = g;
	b->t[b->n++] = t;
	if (b->n == BATCH)
		finish_batch(b);
}

int data_let_go(struct home *h, struct removal *v, size_t n, const char *event,
		struct err *e)
{
	struct batch b = { .h = h, .event = event, .e = e };

	for (size_t i = 0; i < n; i++)
		add_removal(&b, &v[i]);
	finish_batch(&b);
	return b.r;
}

/* Keeps @dir for the next transaction, if no command has changed anything in it. */
static bool keep_spare(const struct txn_record *r, const char *dir)
{
	AUTO_BUF struct buf shape = BUF_INIT;

	for (size_t i = 0; i < r->nlayers; i++) {
		size_t n = parent_len(r->layers[i].dir);

		recycle_shape(&shape, r->layers[i].kind,
			      strlen(dir) == n && memcmp(r->layers[i].dir, dir, n) == 0);
	}
	return recycle_keep(dir, buf_str(&shape));
}

void data_retire(const struct txn_record *r)
{
	struct names dirs = { 0 };

	data_dirs(r, &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		AUTO_FREE char *aside = xasprintf("%s" GONE, dirs.v[i]);

		if (keep_spare(r, dirs.v[i]))
			continue;
		if (rename(dirs.v[i], aside) < 0)
			data_remove_dir(dirs.v[i], NULL);
	}
	names_free(&dirs);
}

/* Is @name one of ours: sixteen hexadecimal digits, then @suffix? */
static bool is_ours(const char *name, const char *suffix)
{
	return strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, suffix) == 0;
}

static void clear_store(const char *store)
{
	AUTO_CLOSEDIR DIR *d = opendir(store);
	struct dirent *de;

	while (d && (de = readdir(d)))
		if (is_ours(de->d_name, GONE))
			rmtree_at(dirfd(d), de->d_name, NULL);
}

/*
 * Looks at the stores of this many of the newest transactions: data_retire() renamed in one of
 * them.
 */
enum { RECENT = 100 };

struct recent {
	struct names stores;
	unsigned seen;
};

static int recent_store(void *arg, struct txn_record *r, struct err *e)
{
	struct recent *recent = arg;
	struct names dirs = { 0 };

	(void)e;
	if (r->dir)
		data_dirs(r, &dirs);
	for (size_t i = 0; i < dirs.n; i++)
		names_add(&recent->stores, dirs.v[i], parent_len(dirs.v[i]));
	names_free(&dirs);
	return ++recent->seen >= RECENT;
}

void txn_clear(struct home *h)
{
	struct recent recent = { 0 };
	struct err e;

	journal_txn_each(h->journal, JOURNAL_ALL, recent_store, &recent, &e);
	for (size_t i = 0; i < recent.stores.n; i++)
		clear_store(recent.stores.v[i]);
	names_free(&recent.stores);
}

struct prune {
	struct home *h;
	int64_t only;
	bool dry_run;
	bool sweep_only;
	struct names known, stores;
	struct removal *removals;
	size_t nremovals;
	struct prune_result *res;
};

static int visit(void *arg, struct txn_record *r, struct err *e)
{
	struct prune *p = arg;
	struct names dirs = { 0 };

	(void)e;
	data_dirs(r, &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		names_add(&p->stores, dirs.v[i], parent_len(dirs.v[i]));
		if (r->state != TXN_PRUNED)
			names_add(&p->known, dirs.v[i], strlen(dirs.v[i]));
	}
	names_free(&dirs);
	if (p->sweep_only || r->state != TXN_ROLLED_BACK ||
	    (p->only > 0 && r->id != p->only))
		return 0;
	if (p->dry_run) {
		p->res->bytes += data_space(r);
		p->res->transactions++;
		return 0;
	}
	if ((p->nremovals & (p->nremovals - 1)) == 0)
		p->removals = xrealloc(p->removals,
				       (p->nremovals ? 2 * p->nremovals : 16) *
					       sizeof(*p->removals));
	p->removals[p->nremovals++] = (struct removal){ .id = r->id, .from = r->state };
	return 0;
}

static int let_all_go(struct prune *p, struct err *e)
{
	int r = data_let_go(p->h, p->removals, p->nremovals, "prune", e);

	for (size_t i = 0; i < p->nremovals; i++) {
		p->res->transactions += p->removals[i].gone;
		p->res->bytes += p->removals[i].bytes;
	}
	return r;
}

/* Deletes data without a row whose lock is free: a crash has left it. */
static int sweep(struct prune *p, const char *store, struct err *e)
{
	AUTO_CLOSEDIR DIR *d = opendir(store);
	struct dirent *de;
	int lock, r;

	while (d && (de = readdir(d))) {
		AUTO_FREE char *dir = xasprintf("%s/%s", store, de->d_name);

		if (strncmp(de->d_name, SPARE, strlen(SPARE)) == 0 && !p->dry_run)
			data_remove_dir(dir, &p->res->bytes);
		if (!is_ours(de->d_name, "") || !names_add(&p->known, dir, strlen(dir)))
			continue;
		lock = lock_take(dir, false);
		if (lock == -EWOULDBLOCK)
			continue;
		r = p->dry_run ? 0 : data_remove_dir(dir, &p->res->bytes);
		if (lock >= 0)
			close(lock);
		if (r < 0)
			return err_sys(e, r, "cannot delete %s", dir);
		p->res->orphans++;
	}
	return 0;
}

static int prune(struct prune *p, struct err *e)
{
	AUTO_FREE char *store = xasprintf("%s/tx", p->h->dir);
	AUTO_CLOSE int guard = -1;
	int r;

	*p->res = (struct prune_result){ 0 };
	if (p->only <= 0) {
		guard = home_guard(p->h, LOCK_EX);
		if (guard < 0)
			return err_sys(e, guard, "cannot lock %s", p->h->dir);
	}
	names_add(&p->stores, store, strlen(store));
	r = journal_txn_each(p->h->journal, JOURNAL_ALL, visit, p, e);
	if (r == 0)
		r = let_all_go(p, e);
	for (size_t i = 0; r == 0 && p->only <= 0 && i < p->stores.n; i++)
		r = sweep(p, p->stores.v[i], e);
	names_free(&p->known);
	names_free(&p->stores);
	free(p->removals);
	return r;
}

int txn_prune(struct home *h, int64_t id, bool dry_run, struct prune_result *res,
	      struct err *e)
{
	struct prune p = { .h = h, .only = id, .dry_run = dry_run, .res = res };

	if (prune(&p, e) < 0)
		return -1;
	if (id <= 0 && !dry_run)
		txn_clear(h);
	return id <= 0 && !dry_run ? journal_checkpoint(h->journal, e) : 0;
}

int txn_orphans(struct home *h, struct prune_result *res, struct err *e)
{
	struct prune p = { .h = h, .dry_run = true, .sweep_only = true, .res = res };

	return prune(&p, e);
}
