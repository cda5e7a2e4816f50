/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "ckpt/pair.h"
#include "ckpt/place.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "timeline/pair.h"
#include "timeline/parts.h"
#include "txn/parts.h"
#include "txn/prune.h"

static int make_dir(const char *path, struct err *e)
{
	int fd;

	if (mkdir(path, 0755) < 0)
		return err_sys(e, errno, "cannot make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "cannot open %s", path) : fd;
}

int timeline_pair_dir(int place, struct timeline_pair *p, int *before, int *after,
		      struct err *e)
{
	AUTO_FREE char *self = xasprintf("/proc/self/fd/%d", place);
	char path[PATH_MAX];
	ssize_t n = readlink(self, path, sizeof(path) - 1);
	char *dir;

	if (n < 0)
		return err_sys(e, errno, "no name for a directory");
	path[n] = '\0';
	dir = xasprintf("%s/tmpXXXXXX", path);
	p->dirs[0] = mkdtemp(dir);
	if (!p->dirs[0]) {
		err_sys(e, errno, "cannot make %s", dir);
		free(dir);
		return -1;
	}
	p->names[0] = xasprintf("%s/before", dir);
	p->names[1] = xasprintf("%s/after", dir);
	*before = make_dir(p->names[0], e);
	*after = *before < 0 ? -1 : make_dir(p->names[1], e);
	return *after < 0 ? -1 : 0;
}

static int pair_layer(struct timeline *c, uint32_t i, const struct ck_state *a,
		      const struct ck_state *b, struct timeline_pair *p, struct err *e)
{
	size_t k = p->n; /* those that are away are left out */
	size_t len = strlen(c->changes[i].upper) - strlen("up");
	AUTO_CLOSE int before = -1, after = -1;
	char *dir = xasprintf("%.*stmpXXXXXX", (int)len, c->changes[i].upper);

	p->dirs[k] = mkdtemp(dir);
	if (!p->dirs[k]) {
		err_sys(e, errno, "cannot make %s", dir);
		free(dir);
		return -1;
	}
	p->names[2 * k] = xasprintf("%s/before", dir);
	p->names[2 * k + 1] = xasprintf("%s/after", dir);
	before = make_dir(p->names[2 * k], e);
	after = before < 0 ? -1 : make_dir(p->names[2 * k + 1], e);
	if (after < 0)
		return -1;
	p->layers[k] = (struct change_layer){ .host = c->changes[i].host,
					      .base = p->names[2 * k],
					      .upper = p->names[2 * k + 1] };
	p->n = k + 1;
	return ck_pair(&c->layers, a, b, i, before, after, e);
}

/* The state of the layers at this moment; contents are not copied. */
static int present(struct timeline *c, struct ck_state *s, struct err *e)
{
	const struct ckpt_records *all = timeline_all(c);
	struct ck_state last;
	struct ck_scan scan = { .layers = &c->layers, .prev = &last };
	int r;

	if (timeline_state(c, all->n ? all->v[all->n - 1].seq : 0, &last, e) < 0)
		return -1;
	r = ck_scan(&scan, s, e);
	ck_state_free(&last);
	for (size_t i = 0; i < c->layers.n; i++)
		c->layers.v[i].live = c->layers.v[i].up;
	return r;
}

int timeline_pair(struct timeline *c, int64_t a, int64_t b, struct timeline_pair *p,
		  struct err *e)
{
	struct ck_state x = { 0 }, y = { 0 };
	int r;

	*p = (struct timeline_pair){
		.layers = xcalloc(c->layers.n + 1, sizeof(*p->layers)),
		.dirs = xcalloc(c->layers.n + 1, sizeof(char *)),
		.names = xcalloc(2 * c->layers.n + 1, sizeof(char *))
	};
	r = timeline_state(c, a, &x, e);
	if (r == 0)
		r = b == TIMELINE_NOW ? present(c, &y, e) : timeline_state(c, b, &y, e);
	for (uint32_t i = 0; i < c->layers.n && r == 0; i++)
		if (c->layers.v[i].up >= 0)
			r = pair_layer(c, i, &x, &y, p, e);
	ck_state_free(&x);
	ck_state_free(&y);
	if (r < 0)
		timeline_pair_free(p);
	return r;
}

void timeline_pair_free(struct timeline_pair *p)
{
	for (size_t i = 0; p->dirs && p->dirs[i]; i++) {
		data_remove_dir(p->dirs[i], NULL);
		free(p->dirs[i]);
		free(p->names[2 * i]);
		free(p->names[2 * i + 1]);
	}
	free(p->dirs);
	free(p->names);
	free(p->layers);
	*p = (struct timeline_pair){ 0 };
}

/* The entries of one layer, renumbered as layer 0. */
static void only(const struct ck_state *s, uint32_t layer, struct ck_state *out)
{
	*out = (struct ck_state){ 0 };
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i]->layer == layer) {
			struct ck_entry en = *s->v[i];

			en.layer = 0;
			ck_state_add(out, ck_entry_new(&en));
		}
}

static int fill_layer(struct timeline *c, uint32_t i, const struct ck_state *s,
		      const struct view_layer *to, struct err *e)
{
	AUTO_FREE char *up = xasprintf("%s/up", to->dir);
	struct ck_layer l = c->layers.v[i];
	struct ck_layers one = { &l, 1 };
	struct ck_scan scan = { .layers = &one };
	struct ck_state target, now = { 0 };
	int r;

	l.up = open(up, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l.up < 0)
		return err_sys(e, errno, "cannot open %s", up);
	only(s, i, &target);
	r = ck_scan(&scan, &now, e);
	if (r == 0)
		r = ck_sync(&one, &now, &target, e);
	ck_state_free(&target);
	ck_state_free(&now);
	close(l.up);
	return r;
}

int timeline_fill(struct timeline *c, int64_t seq, const struct view *to, struct err *e)
{
	struct ck_state s;
	int r;

	if (timeline_state(c, seq, &s, e) < 0)
		return -1;
	r = 0;
	for (uint32_t i = 0; i < c->layers.n && r == 0; i++) {
		size_t k = 0;

		if (c->layers.v[i].up < 0)
			continue;
		while (k < to->nlayers &&
		       (to->layers[k].kind != LAYER_OVERLAY ||
			strcmp(to->layers[k].host, c->changes[i].host)))
			k++;
		if (k < to->nlayers)
			r = fill_layer(c, i, &s, &to->layers[k], e);
		else
			for (size_t n = 0; n < s.n && r == 0; n++)
				if (s.v[n]->layer == i && *s.v[n]->rel)
					r = err_set(e, ERR_STATE,
						    "%s is no layer any more: the mounts "
						    "of this machine have changed",
						    c->changes[i].host);
	}
	ck_state_free(&s);
	return r;
}
