/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "ckpt/state.h"
#include "host/inherit.h"
#include "host/known.h"
#include "timeline/pair.h"
#include "timeline/parts.h"
#include "torture.h"
#include "txn/begin.h"
#include "txn/end.h"

static int take(struct timeline *c, struct err *e)
{
	const struct ckpt_wish w = { .cause = "request" };
	const struct ckpt_record *made;

	if (timeline_take(c, &w, &made, e) < 0)
		return -1;
	return made ? 0 : err_set(e, ERR_STATE, "no checkpoint was made");
}

static int restore(struct timeline *c, const struct site *s, struct err *e)
{
	static const char *const names[] = { "plain", "link-new", "more1", "sparse-new" };
	const char *paths[ARRAY_SIZE(names) + 1] = { 0 };
	struct timeline_gone g;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		paths[i] = xasprintf("%s/%s", s->host[0], names[i]);
	return timeline_go(c, 1, paths, &g, e);
}

/* As the verb does it, with a view of our own. */
static int fork_from(struct home *h, const struct site *s, struct timeline *c,
		     struct err *e)
{
	char word[] = "command";
	char *const argv[] = { word, NULL };
	struct view v;
	struct txn t;

	if (act_view(h, s, ACT_FORK, &v, e) < 0 ||
	    txn_prepare(h, &v, NULL, argv, "{}", &t, e) < 0)
		return -1;
	known_inherit(h, &c->t->rec, &t.rec);
	if (timeline_fill(c, 1, &v, e) < 0) {
		txn_abandon(&t);
		return -1;
	}
	return timeline_record(h, &t, e) < 0 ? -1 : txn_end(h, &t, 0, "fork", e);
}

int check_act(struct home *h, const struct site *s, struct txn *t, enum action a,
	      struct err *e)
{
	struct timeline_gone g;
	struct timeline *c;
	int r;

	if (a == ACT_CHECKPOINT_THIN)
		setenv("STET_CHECKPOINT_MAX", "2", 1);
	if (timeline_open(h, t, a != ACT_FORK, &c, e) < 0)
		return -1;
	if (a == ACT_CHECKPOINT || a == ACT_CHECKPOINT_THIN)
		r = take(c, e);
	else if (a == ACT_RESTORE)
		r = restore(c, s, e);
	else if (a == ACT_FORK)
		r = fork_from(h, s, c, e);
	else
		r = timeline_go(c, a == ACT_GO ? 1 : 2, NULL, &g, e);
	timeline_close(c);
	return r;
}

static bool has_content(const struct ck_layer *l, const struct ck_entry *en)
{
	AUTO_CLOSE int fd = -1;
	struct ck_opened pack = { .fd = -1 };
	char block[CK_SMALL];

	if (!en->id.size)
		return true;
	if (!ck_is_packed(en->obj)) {
		fd = ck_open_object(l, en);
		return fd >= 0;
	}
	fd = ck_read_packed(l, en, block, &pack);
	cleanup_close(&pack.fd);
	return fd == 0;
}

/* A state without its contents is none. */
static bool is_whole(struct timeline *c, int64_t seq, struct err *e)
{
	struct ck_state state;
	bool whole = true;

	if (timeline_state(c, seq, &state, e) < 0)
		return false;
	for (size_t i = 0; i < state.n && whole; i++) {
		const struct ck_entry *en = state.v[i];

		if (!S_ISREG(en->id.mode) || !en->obj)
			continue;
		whole = has_content(&c->layers.v[en->layer], en);
		if (!whole)
			err_set(e, ERR_CORRUPT, "no content of %s", en->rel);
	}
	ck_state_free(&state);
	return whole;
}

void check_look(struct home *h, struct txn *t, struct result *r)
{
	const struct ckpt_records *all;
	struct timeline *c;
	struct err e;

	if (t->rec.state == TXN_PRUNED)
		return;
	for (size_t i = 0; i < HOSTS && i < t->rec.nlayers; i++)
		snprintf(r->up[i], sizeof(r->up[i]), "%s/up", t->rec.layers[i].dir);
	if (timeline_open(h, t, false, &c, &e) < 0) {
		snprintf(r->complaint, sizeof(r->complaint), "checkpoints: %s", e.msg);
		return;
	}
	all = timeline_all(c);
	r->points = (unsigned)all->n;
	for (size_t i = 0; i < all->n; i++)
		if (!is_whole(c, all->v[i].seq, &e))
			snprintf(r->complaint, sizeof(r->complaint),
				 "checkpoint %lld: %s", (long long)all->v[i].seq, e.msg);
	timeline_close(c);
}
