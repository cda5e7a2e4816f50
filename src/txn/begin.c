/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "snap/store.h"
#include "sys/mountinfo.h"
#include "txn/parts.h"

static int64_t coarse_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* mkdir that does not mind its existence; the parent is ours and 0700. */
static int make_dir(const char *path, struct err *e)
{
	if ((FAULT_AT("begin.mkdir") || mkdir(path, 0700) < 0) && errno != EEXIST) {
		err_sys(e, errno, "cannot make %s", path);
		if (e->sys == ENOSPC || e->sys == EDQUOT)
			err_hint(
				e,
				"`stet prune` gives back what rolled-back transactions hold");
		return -1;
	}
	return 0;
}

/* Its directory in one store: <store>/<token>. */
static char *dir_in(const char *store, const char *token)
{
	return xasprintf("%s/%s", store, token);
}

static int make_layer(struct view *v, size_t i, const char *token, struct err *e)
{
	struct view_layer *l = &v->layers[i];
	AUTO_FREE char *dir = dir_in(l->store, token);

	if (make_dir(dir, e) < 0)
		return -1;
	free(l->dir);
	l->dir = xasprintf("%s/l%zu", dir, i);
	if (make_dir(l->dir, e) < 0 || layer_make(l, e) < 0)
		return -1;
	if (l->kind == LAYER_OVERLAY && l->lax_owner &&
	    path_within(v->workspace, l->host))
		return layer_adopt_foreign(l, v->workspace, e);
	return 0;
}

/* One for all: what is mounted there is seen in the sandbox's own namespace only. */
static int make_stage(struct home *h, struct view *v, struct err *e)
{
	free(v->stage);
	v->stage = xasprintf("%s/mnt", h->dir);
	return make_dir(v->stage, e);
}

static int make_data(struct home *h, struct view *v, const char *token, struct txn *t,
		     struct err *e)
{
	AUTO_FREE char *store = xasprintf("%s/tx", h->dir);

	if (make_dir(store, e) < 0)
		return -1;
	t->rec.dir = dir_in(store, token);
	if (make_dir(t->rec.dir, e) < 0)
		return -1;
	if (make_stage(h, v, e) < 0)
		return -1;
	t->lock = lock_take(t->rec.dir, false);
	if (t->lock < 0)
		return err_sys(e, t->lock, "cannot lock %s", t->rec.dir);
	for (size_t i = 0; i < v->nlayers; i++)
		if (make_layer(v, i, token, e) < 0)
			return -1;
	return 0;
}

static void record_layers(struct txn_record *r, const struct view *v)
{
	r->layers = xcalloc(v->nlayers, sizeof(*r->layers));
	for (r->nlayers = 0; r->nlayers < v->nlayers; r->nlayers++) {
		const struct view_layer *l = &v->layers[r->nlayers];

		r->layers[r->nlayers] = (struct layer_record){
			.kind = l->kind,
			.host = xstrdup(l->host),
			.dir = xstrdup(l->dir),
			.lax_owner = l->lax_owner
		};
	}
}

static void record_effects(struct txn_record *r, const struct view *v)
{
	r->effects = xcalloc(v->nthrough + 1, sizeof(*r->effects));
	for (size_t i = 0; i < v->nthrough; i++)
		r->effects[r->neffects++] = (struct effect_record){
			.kind = xstrdup("write-through"), .what = xstrdup(v->through[i])
		};
	r->effects[r->neffects++] = (struct effect_record){
		.kind = xstrdup("network"),
		.what = xstrdup("what was sent over the network")
	};
}

static void record_hidden(struct txn_record *r, const struct view *v)
{
	r->hidden = xcalloc(v->nhidden + 1, sizeof(*r->hidden));
	for (size_t i = 0; i < v->nhidden; i++)
		r->hidden[i] = xasprintf("%s%s", i < v->nstores ? "!" : "", v->hidden[i]);
}

static char **copy_argv(char *const argv[])
{
	size_t n = 0;
	char **v;

	while (argv[n])
		n++;
	v = xcalloc(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = xstrdup(argv[i]);
	return v;
}

/*
 * One journal write: the data comes first, under a name nobody else can have, so a crash
 * before the write leaves only something that belongs to no row (invariant 4).
 */
int txn_begin(struct home *h, struct view *v, const char *name, char *const argv[],
	      const char *options, struct txn *t, struct err *e)
{
	AUTO_CLOSE int guard = home_guard(h, LOCK_SH);
	struct txn_record *r = &t->rec;
	char token[24];
	uint64_t salt;

	*t = (struct txn){ .lock = -1 };
	if (guard < 0)
		return err_sys(e, guard, "cannot lock %s", h->dir);
	if (FAULT_AT("begin.random") || getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return err_sys(e, errno, "no random numbers");
	snprintf(token, sizeof(token), "%016llx", (unsigned long long)salt);
	r->state = TXN_ACTIVE;
	r->name = name ? xstrdup(name) : NULL;
	r->workspace = xstrdup(v->workspace);
	r->argv = copy_argv(argv);
	r->options = xstrdup(options);
	r->exit_status = -1;
	r->begin_ns = coarse_now();
	if (make_data(h, v, token, t, e) == 0) {
		record_layers(r, v);
		record_effects(r, v);
		record_hidden(r, v);
		log_debug("layers made in %s", r->dir);
		if (journal_txn_add(h->journal, r, JOURNAL_LAZY, e) == 0) {
			log_debug("t%lld recorded", (long long)r->id);
			return 0;
		}
		/* A log whose write failed may be found whole after a crash: then the row
		 * is there, and must have its data. If not, prune sweeps it up. */
		if (e->kind == ERR_SYSTEM) {
			txn_close(t);
			return -1;
		}
	} else {
		record_layers(r, &(struct view){ 0 });
	}
	for (size_t i = 0; i < v->nlayers; i++) {
		AUTO_FREE char *dir = dir_in(v->layers[i].store, token);
		struct txn_record part = { .dir = dir };

		data_remove(&part, NULL);
	}
	if (r->dir)
		data_remove(r, NULL);
	txn_close(t);
	return -1;
}

int txn_resume(struct home *h, struct view *v, struct txn *t, struct err *e)
{
	if (t->rec.state != TXN_FROZEN && t->rec.state != TXN_ACTIVE)
		return err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			       txn_look_name(txn_look(&t->rec)));
	if (txn_own(t, e) < 0 || txn_check(&t->rec, e) < 0)
		return -1;
	if (make_stage(h, v, e) < 0)
		return -1;
	for (size_t i = 0; i < v->nlayers; i++) {
		struct view_layer *l = &v->layers[i];

		if (!l->dir) {
			err_set(e, ERR_STATE, "%s was not part of t%lld when it ran",
				l->host, (long long)t->rec.id);
			return err_hint(
				e,
				"the mounts of this machine have changed since; use "
				"stet diff t%lld",
				(long long)t->rec.id);
		}
		if (layer_make(l, e) < 0)
			return -1;
	}
	if (t->rec.state != TXN_ACTIVE &&
	    journal_txn_move(h->journal, t->rec.id, t->rec.state, TXN_ACTIVE,
			     JOURNAL_LAZY, e) < 0)
		return -1;
	t->rec.state = TXN_ACTIVE;
	return journal_op_stale(h->journal, t->rec.id, e);
}
