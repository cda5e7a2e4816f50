/* SPDX-License-Identifier: Apache-2.0 */
#include "host/after_commit.h"
#include "host/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/known.h"
#include "journal/op_rows.h"
#include "plan/stage.h"
#include "sys/fs.h"
#include "txn/find.h"
#include "txn/parts.h"

enum { NOTES_MAX = 20000, READ_MAX = 128 * 1024 * 1024 };

void after_commit_name(char name[32], int64_t op)
{
	snprintf(name, 32, "left-%lld", (long long)op);
}

/* --- noting --- */

struct noting {
	struct base_notes notes;
	size_t noted;
};

static bool is_full(const struct noting *l)
{
	return l->noted >= NOTES_MAX || l->notes.read >= READ_MAX;
}

static int note_below(struct noting *l, uint32_t layer, const char *rel, struct err *e);

/* @put: what the commit has put there; NULL: that is not known. */
static int note(struct noting *l, uint32_t layer, const char *rel,
		const struct ident *put, struct err *e)
{
	struct ident now, up;
	int r;

	if (is_full(l))
		return 0;
	if (apply_look(l->notes.a, layer, rel, &now, &up, e) < 0)
		return -1;
	if (S_ISDIR(now.mode))
		return note_below(l, layer, rel, e);
	if (!now.mode || (put && !ident_is(&now, put)))
		return 0;
	r = base_note(&l->notes, layer, rel, &now, e);
	l->noted += r > 0;
	return r < 0 ? -1 : 0;
}

/* A directory that was put there whole. What cannot be read is not noted. */
static int note_below(struct noting *l, uint32_t layer, const char *rel, struct err *e)
{
	struct fs_names names;
	int r = 0;

	if (apply_list(l->notes.a, layer, rel, &names) < 0)
		return 0;
	for (size_t i = 0; i < names.n && r == 0 && !is_full(l); i++) {
		AUTO_FREE char *below = xasprintf("%s/%s", rel, names.v[i]);

		r = note(l, layer, below, NULL, e);
	}
	fs_names_free(&names);
	return r;
}

static int note_step(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct ident *put = r->kind == PLAN_META ? &r->before : &r->after;

	switch (r->kind) {
	case PLAN_REPLACE:
	case PLAN_CREATE:
	case PLAN_META:
		return r->after.mode ? note(arg, r->layer, r->rel, put, e) : 0;
	default:
		return 0;
	}
}

static int note_all(struct noting *l, const struct txn *t, const struct op_record *op,
		    int dir, struct err *e)
{
	char name[32];
	struct plan *p;
	int r;

	after_commit_name(name, op->id);
	if (plan_open(dir, op->plan, &p, e) < 0)
		return -1;
	unlinkat(dir, LEFT_NEW, 0);
	r = plan_create(dir, LEFT_NEW, &l->notes.w, e);
	if (r == 0)
		r = plan_each(p, false, note_step, l, e);
	plan_close(p);
	if (r < 0) {
		plan_abandon(l->notes.w);
		return -1;
	}
	if (plan_finish_lazily(l->notes.w, e) < 0)
		return -1;
	return renameat(dir, LEFT_NEW, dir, name) < 0
		       ? err_sys(e, errno, "cannot keep notes of t%lld",
				 (long long)t->rec.id)
		       : 0;
}

int after_commit_note(struct home *h, const struct txn *t, int64_t op, struct err *e)
{
	AUTO_CLOSE int dir = open(t->rec.dir,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE struct change_layer *layers = NULL;
	struct op_record rec = { 0 };
	struct noting l = { .notes = { .ours = true } };
	size_t n;
	int r;

	if (dir < 0)
		return err_sys(e, errno, "cannot open %s", t->rec.dir);
	if (journal_op_get(h->journal, op, &rec, e) < 0)
		return -1;
	layers = txn_layers(&t->rec, &n);
	r = rec.kind == OP_COMMIT && rec.state == OP_DONE && rec.plan
		    ? apply_open(layers, n, &l.notes.a, e)
		    : err_set(e, ERR_STATE, "operation %lld is no commit that is done",
			      (long long)op);
	if (r == 0) {
		l.notes.begin = rec.done_ns;
		l.notes.known = known_new(&t->rec);
		r = note_all(&l, t, &rec, dir, e);
	}
	base_notes_free(&l.notes);
	op_record_free(&rec);
	return r;
}

/* --- asking --- */

struct after_commit {
	struct home *h;
	const struct txn *t;
	int64_t op; /* 0: what was there before */
	const struct change_layer *layers;
	size_t n;
	struct known *known; /* NULL: not read yet */
	/* Of its own: who asks may be in the middle of a step. */
	struct apply *a;
};

struct after_commit *after_commit_new(struct home *h, const struct txn *t, int64_t op,
				      const struct change_layer *layers, size_t n)
{
	struct after_commit *l = xcalloc(1, sizeof(*l));

	*l = (struct after_commit){ .h = h, .t = t, .op = op, .layers = layers, .n = n };
	return l;
}

struct after_commit *after_commit_new_redo(struct home *h, const struct txn *t,
					   const struct change_layer *layers, size_t n)
{
	return after_commit_new(h, t, 0, layers, n);
}

void after_commit_free(struct after_commit *l)
{
	if (!l)
		return;
	known_close(l->known);
	apply_close(l->a);
	free(l);
}

static void load(struct after_commit *l)
{
	AUTO_CLOSE int dir = -1;
	char name[32];
	struct err e;

	if (!l->op && known_open(l->h, l->t, &l->known, &e) == 0)
		return;
	l->known = known_new(&l->t->rec);
	dir = open(l->t->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	after_commit_name(name, l->op);
	if (dir >= 0 && l->op)
		known_read(l->known, dir, name);
}

bool after_commit_is(struct after_commit *l, uint32_t layer, const char *rel,
		     const struct ident *now)
{
	struct err e;

	if (S_ISDIR(now->mode))
		return false;
	if (!l->known)
		load(l);
	if (!l->a && apply_open(l->layers, l->n, &l->a, &e) < 0)
		return false;
	return known_is(l->known, l->a, layer, rel, now);
}

void after_commit_read(struct after_commit *l)
{
	if (!l->known)
		load(l);
	known_read_all(l->known);
}

bool after_commit_is_at(struct after_commit *l, const char *path, const struct ident *now)
{
	size_t best = 0, length = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *host = l->layers[i].host;
		size_t n = strcmp(host, "/") == 0 ? 0 : strlen(host);

		/* Of layers one below the other the innermost. */
		if (strncmp(path, host, n) == 0 && path[n] == '/' && n + 1 > length) {
			best = i;
			length = n + 1;
		}
	}
	/* A layer of "/" itself is named with two slashes. */
	path += length + strspn(path + length, "/");
	return length && after_commit_is(l, (uint32_t)best, path, now);
}
