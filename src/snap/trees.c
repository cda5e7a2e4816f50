/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "snap/hide.h"
#include "snap/plan.h"
#include "snap/show.h"
#include "snap/store.h"
#include "snap/trees.h"

enum { LAYERS_MAX = 400 };

#define KEPT_ATTRS                                                                       \
	(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME | \
	 MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW)

uint64_t plan_attrs(const struct mountpoint *m)
{
	return (m->attrs & KEPT_ATTRS) | MOUNT_ATTR_NODEV;
}

bool plan_is_remade(const char *path)
{
	return path_within(path, "/proc") || path_within(path, "/dev") ||
	       path_within(path, "/sys");
}

static bool is_fs(const struct mountpoint *m, const char *type)
{
	return strcmp(m->fstype, type) == 0;
}

bool plan_is_window(const struct mountpoint *m)
{
	return is_fs(m, "proc") || is_fs(m, "devpts") || is_fs(m, "devtmpfs") ||
	       is_fs(m, "mqueue") || is_fs(m, "autofs");
}

static bool can_overlay(const struct mountpoint *m)
{
	return !m->read_only && store_fs_lower(m->fstype);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/*
 * A network filesystem looks well while its data is in the cache; only its server could say
 * how full it is. Others are not asked: a slow one may take minutes.
 */
bool plan_is_dead(const struct mountpoint *m)
{
	struct statfs fs;

	return strncmp(m->fstype, "fuse", 4) == 0 && statfs(m->target, &fs) < 0 &&
	       errno == ENOTCONN;
}

/* Is its layer there, from when the command ran? */
static bool has_layer(const struct txn_record *r, const char *path)
{
	for (size_t i = 0; r && i < r->nlayers; i++)
		if (r->layers[i].kind == LAYER_OVERLAY &&
		    strcmp(r->layers[i].host, path) == 0)
			return access(r->layers[i].dir, F_OK) == 0;
	return false;
}

/*
 * Is all of it --read-only? Then there is nothing to capture, and its filesystem may be full, or
 * broken. Where the workspace lies in it, and where a layer is to be shown again, it has one.
 */
static bool needs_no_layer(struct plan *p, const char *path)
{
	char *const *s = p->rq->read_only;

	if (path_within(p->rq->workspace, path) || has_layer(p->rq->resume, path))
		return false;
	while (s && *s && !path_within(path, *s))
		s++;
	if (!s || !*s)
		return false;
	p->closed = xrealloc(p->closed, (p->nclosed + 1) * sizeof(*p->closed));
	p->closed[p->nclosed++] = xstrdup(path);
	return true;
}

/* --- an ordinary user: `/` read-only, overlays over what he can write --- */

struct candidates {
	char **v;
	size_t n, cap;
};

static bool covers(const struct plan *p, const char *by, const char *path)
{
	if (!path_within(path, by) ||
	    mountinfo_of(&p->mi, by) != mountinfo_of(&p->mi, path))
		return false;
	for (size_t i = 0; p->private_dirs[i]; i++)
		if (path_within(p->private_dirs[i], by) &&
		    path_within(path, p->private_dirs[i]))
			return false;
	return true;
}

static void candidate(struct plan *p, struct candidates *c, const char *path)
{
	size_t i, w = 0;

	for (i = 0; i < c->n; i++)
		if (covers(p, c->v[i], path))
			return;
	for (i = 0; i < c->n; i++) {
		if (covers(p, path, c->v[i]))
			free(c->v[i]);
		else
			c->v[w++] = c->v[i];
	}
	c->n = w;
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 16;
		c->v = xrealloc(c->v, c->cap * sizeof(*c->v));
	}
	c->v[c->n++] = xstrdup(path);
}

static bool may_write(const char *path)
{
	return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Directories he may write directly below @dir, by one readdir and an access(2) each. */
static void scan_level(struct plan *p, struct candidates *c, const char *dir)
{
	AUTO_CLOSEDIR DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d))) {
		AUTO_FREE char *path = NULL;

		if (de->d_type != DT_DIR || de->d_name[0] == '.' ||
		    faccessat(dirfd(d), de->d_name, W_OK | X_OK, AT_EACCESS) < 0)
			continue;
		path = xasprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, de->d_name);
		if (plan_is_remade(path) || plan_is_private(p, path) ||
		    path_within(path, "/run"))
			continue;
		if (can_overlay(mountinfo_of(&p->mi, path)))
			candidate(p, c, path);
	}
}

static void collect(struct plan *p, struct candidates *c)
{
	static const char *const levels[] = { "/",	"/srv", "/opt",	     "/mnt",
					      "/media", "/var", "/usr/local" };
	const struct view_request *rq = p->rq;

	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];

		if (m->visible && can_overlay(m) && is_dir(m->target) &&
		    strcmp(m->target, "/") != 0 && !plan_is_remade(m->target) &&
		    !plan_is_private(p, m->target) && !path_within(m->target, "/run") &&
		    may_write(m->target) && !plan_is_dead(m))
			candidate(p, c, m->target);
	}
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		scan_level(p, c, levels[i]);
	if (p->v->home && may_write(p->v->home) && !plan_is_remade(p->v->home))
		candidate(p, c, p->v->home);
	if (may_write(rq->workspace))
		candidate(p, c, rq->workspace);
	if (plan_is_private(p, rq->cwd) && may_write(rq->cwd))
		candidate(p, c, rq->cwd);
	if (rq->host_tmp && may_write("/tmp"))
		candidate(p, c, "/tmp");
}

static bool has_mounts_below(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->mi.n; i++)
		if (path_within(p->mi.v[i].target, path) &&
		    strcmp(p->mi.v[i].target, path) != 0)
			return true;
	return false;
}

static int plan_tree(struct plan *p, const char *path, struct err *e);

/*
 * Taken up again: was @path cut into pieces when the command ran? Then it is so once more, even if
 * the mount for which it was done has gone: what was changed lies in the layers of the pieces.
 */
static bool was_exploded(const struct plan *p, const char *path)
{
	const struct txn_record *r = p->rq->resume;

	for (size_t i = 0; r && i < r->nlayers; i++)
		if (r->layers[i].kind == LAYER_OVERLAY &&
		    path_within(r->layers[i].host, path) &&
		    strcmp(r->layers[i].host, path) != 0)
			return true;
	return false;
}

/* Of somebody else, who lets nothing be made or removed there. */
static bool is_closed(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid != geteuid() && !may_write(path);
}

/*
 * The kernel will not overlay a directory that has mounts below it which we may not
 * leave out. Then its own level (files, links) becomes a copy, and each directory in
 * it a tree of its own. The level of a directory that is closed to the user is not copied:
 * there may be anything of anybody's.
 */
static int explode(struct plan *p, const char *path, struct err *e)
{
	const struct mountpoint *m = mountinfo_of(&p->mi, path);
	AUTO_CLOSEDIR DIR *d = opendir(path);
	bool again = was_exploded(p, path);
	struct dirent *de;

	if (!d)
		return err_sys(e, errno, "cannot read %s", path);
	if (is_closed(path))
		plan_step(p, STEP_SHOW, path, path, plan_attrs(m) | MOUNT_ATTR_RDONLY,
			  "not writable, mounts below it")
			->skeleton = true;
	else if (plan_layer(p, LAYER_OVERLAY, path, true, plan_attrs(m),
			    "mounts below it", e) < 0)
		return -1;
	while ((de = readdir(d))) {
		AUTO_FREE char *sub = xasprintf("%s/%s", path, de->d_name);
		struct stat st;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
		    lstat(sub, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (p->v->nlayers >= LAYERS_MAX) {
			err_set(e, ERR_UNSUPPORTED,
				"%s has mounts below it and too many directories (%d)",
				path, LAYERS_MAX);
			return err_hint(e,
					"choose a smaller --workspace, or unmount them");
		}
		if (again && !has_layer(p->rq->resume, sub) && !was_exploded(p, sub)
			    ? plan_show(p, sub, "was not part of it", e)
			    : plan_tree(p, sub, e))
			return -1;
	}
	return 0;
}

static int plan_tree(struct plan *p, const char *path, struct err *e)
{
	const struct mountpoint *m = mountinfo_of(&p->mi, path);

	/*
	 * plan_hidden() takes a hidden directory out of the tree around it. A mount point in an
	 * exploded tree is met twice, there and as a mount of its own, and gets one layer: of two
	 * layers of one directory, explore would find only the first again.
	 */
	if (plan_is_veiled(p, path) || plan_has_step(p, path))
		return 0;
	if (plan_is_window(m) || access(path, R_OK | X_OK) < 0 || plan_is_dead(m)) {
		plan_step(p, STEP_MASK, path, NULL, 0, "not readable, or the host's own");
		return 0;
	}
	if (!can_overlay(m))
		return plan_show(p, path, "read-only mount", e);
	if (needs_no_layer(p, path))
		return plan_show(p, path, "--read-only", e);
	if (has_mounts_below(p, path) || was_exploded(p, path))
		return explode(p, path, e);
	return plan_layer(p, LAYER_OVERLAY, path, false, plan_attrs(m), "writable", e);
}

/* Shows what name resolution and the dynamic linker of some distributions need in /run. */
static int show_run(struct plan *p, struct err *e)
{
	static const char *const shown[] = { "/run/systemd/resolve", "/run/resolvconf",
					     "/run/NetworkManager", "/run/media",
					     "/run/opengl-driver" };
	struct stat st;

	if (access("/run", F_OK) < 0)
		return 0;
	plan_step(p, STEP_RUN, "/run", NULL, 0, "private");
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		if (lstat(shown[i], &st) == 0 && S_ISDIR(st.st_mode) &&
		    !plan_is_veiled(p, shown[i]) &&
		    plan_show(p, shown[i], "looked up by tools", e) < 0)
			return -1;
	return 0;
}

static int plan_user(struct plan *p, struct err *e)
{
	struct candidates c = { 0 };
	int r = 0;

	collect(p, &c);
	for (size_t i = 0; i < c.n; i++) {
		if (r == 0)
			r = plan_tree(p, c.v[i], e);
		free(c.v[i]);
	}
	free(c.v);
	if (r < 0 || show_run(p, e) < 0 || plan_show(p, "/", "not writable", e) < 0)
		return -1;
	return access("/sys", F_OK) < 0 ? 0 : plan_show(p, "/sys", "read-only", e);
}

/* --- root: one overlay per writable mount, `/` included --- */

/* Private directories cover what lies in them: where we work comes back on top. */
static int show_work(struct plan *p, const char *path, struct err *e)
{
	const struct mountpoint *m = mountinfo_of(&p->mi, path);

	if (!plan_is_private(p, path) || plan_is_private(p, m->target) ||
	    !can_overlay(m) || plan_is_veiled(p, path))
		return 0;
	return plan_layer(p, LAYER_OVERLAY, path, false, plan_attrs(m), "workspace", e);
}

/* Does @m lie in a mount that is masked as a whole? Who would look for it there finds nothing. */
static bool is_below_window(const struct plan *p, const struct mountpoint *m)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *w = &p->mi.v[i];

		if (w != m && w->visible && plan_is_window(w) && !is_fs(w, "autofs") &&
		    path_within(m->target, w->target) &&
		    strcmp(m->target, w->target) != 0)
			return true;
	}
	return false;
}

static int plan_root(struct plan *p, struct err *e)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];
		bool below_private = plan_is_private(p, m->target) &&
				     !path_within(p->rq->workspace, m->target);

		if (!m->visible || plan_is_remade(m->target) || is_fs(m, "autofs") ||
		    below_private || is_below_window(p, m))
			continue;
		if (access(m->target, F_OK) < 0)
			continue; /* another user's FUSE mount: not even root may look */
		if (plan_is_veiled(p, m->target)) {
			/* Nobody is to make something where a mount is. Deeper ones are
			 * gone with what they lie in. */
			plan_step(p, STEP_MASK, m->target, NULL, 0, "hidden");
			continue;
		}
		if (plan_file(p, m->target))
			continue;
		if (can_overlay(m) && !plan_is_window(m) &&
		    (store_fs_upper(m->fstype) ||
		     path_within(p->rq->workspace, m->target)) &&
		    !needs_no_layer(p, m->target)) {
			if (plan_layer(p, LAYER_OVERLAY, m->target, false, plan_attrs(m),
				       "writable", e) < 0)
				return -1;
		} else if (plan_show(p, m->target, "read-only", e) < 0) {
			return -1;
		}
	}
	plan_step(p, STEP_BIND, "/sys", "/sys", MOUNT_ATTR_RDONLY, "read-only");
	if (show_work(p, p->rq->workspace, e) < 0)
		return -1;
	if (path_within(p->rq->cwd, p->rq->workspace))
		return 0;
	return show_work(p, p->rq->cwd, e);
}

static bool has_step(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->v->nsteps; i++)
		if (strcmp(p->v->steps[i].target, path) == 0)
			return true;
	return false;
}

int plan_written(struct plan *p, const char *path, struct err *e)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];

		if (!m->visible || !path_within(m->target, path) ||
		    has_step(p, m->target) || access(m->target, F_OK) < 0)
			continue;
		if (plan_is_window(m))
			plan_step(p, STEP_MASK, m->target, NULL, 0, "the host's own");
		else if (!store_fs_lower(m->fstype) &&
			 plan_show(p, m->target, "read-only", e) < 0)
			return -1;
	}
	return 0;
}

/* A private directory covers what the host has there: where we work must show again. */
static int show_through(struct plan *p, const char *path, struct err *e)
{
	if (!plan_is_private(p, path) || plan_is_veiled(p, path))
		return 0;
	for (size_t i = 0; i < p->v->nsteps; i++)
		if (path_within(path, p->v->steps[i].target) &&
		    plan_is_private(p, p->v->steps[i].target))
			return 0;
	return plan_show(p, path, "not writable", e);
}

int plan_trees(struct plan *p, struct err *e)
{
	if ((p->v->root ? plan_root(p, e) : plan_user(p, e)) < 0)
		return -1;
	if (show_through(p, p->rq->workspace, e) < 0)
		return -1;
	return show_through(p, p->rq->cwd, e);
}
