/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "snap/hide.h"
#include "snap/plan.h"
#include "snap/store.h"
#include "snap/trees.h"

static void hide(struct plan *p, const char *path)
{
	struct view *v = p->v;

	for (size_t i = 0; i < v->nhidden; i++)
		if (strcmp(v->hidden[i], path) == 0)
			return;
	v->hidden = xrealloc(v->hidden, (v->nhidden + 1) * sizeof(*v->hidden));
	v->hidden[v->nhidden++] = xstrdup(path);
}

static char *join(const char *dir, const char *rest)
{
	if (*rest == '/')
		rest++;
	if (!*rest)
		return xstrdup(dir);
	return xasprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, rest);
}

/* The part of @path behind @dir, which it lies within. */
static const char *below(const char *path, const char *dir)
{
	return strcmp(dir, "/") == 0 ? path : path + strlen(dir);
}

/*
 * Filesystems that show what lies in others: under another device number, and maybe under another
 * inode number. A server elsewhere is not asked.
 */
static bool is_stacked(const struct mountpoint *m)
{
	static const char *const types[] = { "overlay",
					     "aufs",
					     "ecryptfs",
					     "shiftfs",
					     "fuse",
					     "fuse.bindfs",
					     "fuse.mergerfs",
					     "fuse.unionfs",
					     "fuse.unionfs-fuse",
					     "fuse.fuse-overlayfs" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(m->fstype, types[i]) == 0)
			return m->visible && !plan_is_dead(m);
	return false;
}

static bool has(const char *dir, const char *name)
{
	AUTO_FREE char *path = join(dir, name);

	return access(path, F_OK) == 0;
}

/* A state directory or a store of stet's, whoever's. */
static bool is_store(const char *path)
{
	return strncmp(strrchr(path, '/'), "/.stet-", 7) == 0 ||
	       has(path, "journal.db") || has(path, "tx");
}

/*
 * Is @seen what @path is, shown through a stack of which one layer holds it under the last
 * components of its name? Of a directory that is in several layers the times are the topmost
 * one's. Then, if it is not just a name that many have, it is taken for the same.
 */
static bool is_shown(const char *path, const char *seen, bool name_of_several)
{
	struct stat a, b;

	if (lstat(seen, &b) < 0 || lstat(path, &a) < 0 ||
	    (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
		return false;
	if (S_ISDIR(b.st_mode) && is_store(path))
		return is_store(seen);
	return name_of_several || (a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
				   a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
				   a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
				   a.st_ctim.tv_nsec == b.st_ctim.tv_nsec);
}

/* Does a layer of overlay @m lie in @path, so that all of it has to be hidden? */
static bool has_layer_in(const struct mountpoint *m, const char *path)
{
	AUTO_FREE char *options = xstrdup(m->options);
	char *rest = options, *o, *dir;

	while ((o = strsep(&rest, ","))) {
		char *value = strchr(o, '=');

		if (!value ||
		    (strncmp(o, "lowerdir", 8) != 0 && strncmp(o, "upperdir", 8) != 0 &&
		     strncmp(o, "datadir", 7) != 0))
			continue;
		for (value++; (dir = strsep(&value, ":"));) {
			AUTO_FREE char *real = *dir == '/' ? realpath(dir, NULL) : NULL;

			if (real && path_within(real, path))
				return true;
		}
	}
	return false;
}

/* @name is that of @path, or the one that it has within its filesystem. */
static void hide_in_stack(struct plan *p, const struct mountpoint *m, const char *path,
			  const char *name)
{
	for (const char *rest = name; rest; rest = strchr(rest + 1, '/')) {
		AUTO_FREE char *seen = join(m->target, rest);

		if (strcmp(seen, path) != 0 && rest[0] && rest[1] &&
		    is_shown(path, seen, strchr(rest + 1, '/')))
			hide(p, seen);
	}
}

static void hide_in_stacks(struct plan *p, const char *path, const char *inner)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];

		if (!is_stacked(m))
			continue;
		if (has_layer_in(m, path))
			hide(p, m->target);
		hide_in_stack(p, m, path, path);
		if (strcmp(inner, path) != 0)
			hide_in_stack(p, m, path, inner);
	}
}

/*
 * Hides a directory under its other names, too: a bind mount of a parent shows it elsewhere, a
 * bind mount of a child shows a part of it.
 */
static void hide_everywhere(struct plan *p, const char *path)
{
	const struct mountpoint *own = mountinfo_of(&p->mi, path);
	AUTO_FREE char *inner = NULL;

	hide(p, path);
	if (!own)
		return;
	inner = join(own->root, below(path, own->target));
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];
		AUTO_FREE char *alias = NULL;

		if (m == own || !m->visible || m->dev != own->dev)
			continue;
		if (path_within(inner, m->root))
			alias = join(m->target, below(inner, m->root));
		else if (path_within(m->root, inner))
			alias = xstrdup(m->target);
		if (alias && access(alias, F_OK) == 0)
			hide(p, alias);
	}
	hide_in_stacks(p, path, inner);
}

void plan_veil(struct plan *p)
{
	struct view *v = p->v;

	hide_everywhere(p, p->rq->state_dir);
	for (char *const *h = p->rq->hide; h && *h; h++)
		hide_everywhere(p, *h);
	p->veiled = v->hidden;
	p->nveiled = v->nhidden;
	v->hidden = NULL;
	v->nhidden = 0;
}

bool plan_is_veiled(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->nveiled; i++)
		if (path_within(path, p->veiled[i]))
			return true;
	return false;
}

/* Earlier transactions may have a store on a mount on which this one has no layer. */
static void hide_left_stores(struct plan *p, const char *path)
{
	const struct mountpoint *m = mountinfo_of(&p->mi, path);

	for (size_t len = m ? strlen(m->target) : 0; m; len++) {
		AUTO_FREE char *store = NULL;

		if (path[len] && path[len] != '/' && len > 1)
			continue;
		store = xasprintf("%.*s%s.stet-%u", (int)len, path, len > 1 ? "/" : "",
				  (unsigned)geteuid());
		if (access(store, F_OK) == 0)
			hide_everywhere(p, store);
		if (!path[len])
			return;
	}
}

/*
 * Hides the stores of all users at the top of a workspace that is worked on in place. The
 * comparison at the end leaves these stores out, so the command must not be able to change
 * them.
 */
static int hide_top_stores(struct plan *p, const char *path, struct err *e)
{
	AUTO_CLOSEDIR DIR *d = opendir(path);
	struct dirent *de;

	if (!d)
		return err_sys(e, errno, "cannot read %s", path);
	while ((de = readdir(d))) {
		AUTO_FREE char *store = NULL;
		struct stat st;

		if (strncmp(de->d_name, STORE_NAME, strlen(STORE_NAME)) != 0 ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode) || !store_named(de->d_name, st.st_uid))
			continue;
		store = join(path, de->d_name);
		hide_everywhere(p, store);
	}
	return 0;
}

/* Hides the known stores outside of the trees of this view. */
static int hide_known_stores(struct plan *p, struct err *e)
{
	AUTO_BUF struct buf list = BUF_INIT;
	int r = store_known(p->rq->state_dir, &list);

	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, "cannot read %s/" STORES, p->rq->state_dir);
	for (const char *s = buf_str(&list), *end = s + list.len; s < end;
	     s += strlen(s) + 1)
		if (*s == '/' && access(s, F_OK) == 0)
			hide_everywhere(p, s);
	return 0;
}

/* A store may have been made only after what lies beside it was planned. */
static void drop_hidden(struct view *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->nsteps; i++) {
		struct step *s = &v->steps[i];
		bool spare = s->kind == STEP_SHOW || (s->kind == STEP_BIND && s->spare);

		if (spare && view_hides(v, s->target)) {
			free(s->target);
			free(s->source);
		} else {
			v->steps[kept++] = *s;
		}
	}
	v->nsteps = kept;
}

static bool is_in_place(const struct view *v, const char *path)
{
	return v->in_place && strcmp(path, v->workspace) == 0;
}

/*
 * A store at the top of a tree that is worked on in place lies under a mount there, which can be
 * neither moved nor removed. Nothing else of what is hidden may.
 */
static int check_through(const struct view *v, const char *path, struct err *e)
{
	bool in_place = is_in_place(v, path);

	for (size_t k = 0; k < v->nhidden; k++) {
		bool within = path_within(v->hidden[k], path);

		if ((!within && !path_within(path, v->hidden[k])) ||
		    (in_place && within && k < v->nstores))
			continue;
		err_set(e, ERR_USAGE, "%s%s %s (%s)",
			in_place ? "the workspace " : "--write-through ", path,
			in_place && !within ? "lies in what must stay hidden"
					    : "would show what must stay hidden",
			v->hidden[k]);
		return err_hint(e, in_place
					   ? "hide something else, or leave --backend out"
					   : "write through a smaller directory");
	}
	return 0;
}

int plan_hidden(struct plan *p, struct err *e)
{
	struct view *v = p->v;
	size_t n;

	hide_everywhere(p, p->rq->state_dir);
	for (size_t i = 0; i < v->nlayers; i++) {
		/* Other journals' corners of a shared store, too. */
		AUTO_FREE char *shared = xstrdup(v->layers[i].store);

		AUTO_FREE char *beside = NULL;

		if (!path_within(shared, p->rq->state_dir)) {
			*strrchr(shared, '/') = '\0';
			hide_everywhere(p, shared);
		}
		/* A commit across filesystems has left a directory there for undo. */
		beside = xasprintf(
			"%s/.stet-%u",
			strcmp(v->layers[i].host, "/") == 0 ? "" : v->layers[i].host,
			(unsigned)geteuid());
		if (access(beside, F_OK) == 0)
			hide_everywhere(p, beside);
	}
	for (size_t i = 0; i < p->nclosed; i++)
		hide_left_stores(p, p->closed[i]);
	/* The snapshot may lie there, and what a commit across filesystems has left. */
	if (v->in_place) {
		hide_left_stores(p, v->workspace);
		if (hide_top_stores(p, v->workspace, e) < 0)
			return -1;
	}
	if (hide_known_stores(p, e) < 0)
		return -1;
	v->nstores = v->nhidden;
	for (char *const *h = p->rq->hide; h && *h; h++) {
		if (path_within(p->rq->workspace, *h))
			return err_set(e, ERR_USAGE, "--hide %s would hide the workspace",
				       *h);
		hide_everywhere(p, *h);
	}
	for (size_t i = 0; i < v->nthrough; i++)
		if (check_through(v, v->through[i], e) < 0)
			return -1;
	drop_hidden(v);
	/* In an overlay a whiteout does it (runner/build.c); elsewhere a mask. */
	n = v->nhidden;
	for (size_t k = 0; k < n; k++) {
		const struct step *s = view_seen_through(v, v->hidden[k]);

		bool own_work = s && is_in_place(v, s->target);

		/* In the command's own work nothing is to stumble over it. */
		if (s && (s->kind == STEP_BIND || s->kind == STEP_RUN))
			plan_step(p, STEP_MASK, v->hidden[k], NULL, 0, "hidden")->mode =
				own_work ? 0555 : 0;
	}
	return 0;
}
