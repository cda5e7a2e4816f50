/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "diff/compare.h"
#include "layer/copy.h"
#include "layer/meta.h"
#include "plan/parts.h"
#include "plan/stage.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"

int apply_look(struct apply *a, uint32_t layer, const char *rel, struct ident *host,
	       struct ident *up, struct err *e)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	int x = 0;

	*host = *up = (struct ident){ 0 };
	if (apply_at(a, &r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (p.host >= 0)
		x = ident_at(p.host, p.name, host);
	if (x == 0 && p.up >= 0)
		x = ident_at(p.up, p.name, up);
	return x < 0 ? apply_failed(a, &r, x, e) : 0;
}

void apply_look_afresh(struct apply *a)
{
	cleanup_close(&a->host);
	a->host = -1;
	dircache_drop(&a->to_host);
}

const char *apply_host(const struct apply *a, uint32_t layer)
{
	return a->layers[layer].host;
}

int apply_came_from(struct apply *a, uint32_t layer, const char *rel)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	AUTO_CLOSE int host = -1, up = -1;
	struct place p;
	struct err e;

	if (apply_at(a, &r, &p, &e) < 0 || p.up < 0)
		return -1;
	host = fs_open_dir_here(p.host, p.name, O_PATH);
	up = fs_open_dir_here(p.up, p.name, O_PATH);
	return host < 0 || up < 0 ? -1 : meta_came_from(up, host);
}

bool apply_is_copy(struct apply *a, uint32_t layer, const char *rel)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	struct err e;

	apply_at(a, &r, &p, &e);
	return p.up >= 0 && meta_is_copy(p.up, p.name);
}

bool apply_saw_one(struct apply *a, uint32_t layer, const char *rel)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct ident up;
	struct place p;
	struct err e;

	apply_at(a, &r, &p, &e);
	if (p.up < 0 || ident_at(p.up, p.name, &up) < 0 || !S_ISDIR(up.mode))
		return false;
	/*
	 * Files that were copied ahead have no mark; without a time of birth it cannot be
	 * told.
	 */
	return meta_is_copy(p.up, p.name) || !up.btime ||
	       up.btime < a->layers[layer].copied_ns;
}

bool apply_same_owner(const struct apply *a, uint32_t layer, const struct stat *up,
		      const struct ident *host)
{
	const struct stat st = { .st_uid = host->uid, .st_gid = host->gid };

	return compare_owner(&a->layers[layer], up, &st);
}

int apply_pack(struct apply *a, uint32_t layer, const char *rel, bool host,
	       struct buf *out, struct err *e)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	int x;

	/* Of the upper's the host may lack the directory. */
	if (apply_at(a, &r, &p, e) < 0 && (host || e->kind != ERR_CONFLICT))
		return -1;
	x = meta_pack(host ? p.host : p.up, p.name, out);
	return x < 0 ? apply_failed(a, &r, x, e) : 0;
}

int apply_list(struct apply *a, uint32_t layer, const char *rel, struct fs_names *out)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	AUTO_CLOSE int fd = -1;
	struct place p;
	struct err e;

	if (apply_at(a, &r, &p, &e) < 0)
		return -ENOENT;
	fd = fs_open_dir_here(p.host, p.name, O_RDONLY);
	return fd < 0 ? TAKE_FD(fd) : fs_names_read(fd, out);
}

/* A copy that staging does not touch gets the attributes of the plan here. */
static int dress_copy(struct apply *a, struct plan_rec *r, const struct place *p,
		      struct err *e)
{
	struct ident now;
	int x = ident_at(p->staged, p->sname, &now);

	if (x == 0 && r->after.gid != now.gid) {
		now.gid = r->after.gid;
		x = meta_set(p->staged, p->sname, &now, true);
	}
	if (x == 0)
		x = ident_at(p->staged, p->sname, &r->after);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* The group that the object would have got outside of the sandbox; -1: it stays. */
static gid_t right_group(struct apply *a, const struct plan_rec *r, const struct place *p)
{
	struct stat parent;

	if (!a->layers[r->layer].lax_owner)
		return (gid_t)-1;
	if ((r->before.mode & S_IFMT) == (r->after.mode & S_IFMT))
		return r->before.gid;
	if (p->host >= 0 && fstat(p->host, &parent) == 0 && parent.st_mode & S_ISGID)
		return parent.st_gid;
	return (gid_t)-1;
}

/* chown(2) refuses other groups. */
static bool may_give(gid_t gid)
{
	gid_t groups[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return gid == getegid() || geteuid() == 0;
}

int apply_regroup(struct apply *a, struct plan_rec *r, struct err *e)
{
	struct place p;
	gid_t gid;

	if (!a->layers[r->layer].lax_owner)
		return 0;
	if (apply_at(a, r, &p, e) < 0)
		return e->kind == ERR_CONFLICT ? 0 : -1;
	gid = right_group(a, r, &p);
	if (gid == (gid_t)-1 || gid == r->after.gid ||
	    r->after.gid != a->layers[r->layer].gid)
		return 0;
	if (ns_has_override() || !may_give(gid))
		return 0;
	r->after.gid = gid;
	return r->flags & PLAN_MERGED ? dress_copy(a, r, &p, e) : 0;
}

/*
 * Replacing a name in a directory of the upper moves its mtime, which the command has set. The
 * mtime is noted in `old`, as the target of a link, until it is set again.
 */
#define UNSHARED "apart-in"

static int note_dir(const struct apply *a, const struct place *p, struct timespec t[2])
{
	AUTO_FREE char *text = NULL;
	struct stat st;

	if (fstat(p->up, &st) < 0)
		return -errno;
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	text = xasprintf("%lld.%ld/%s", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			 a->dir.len ? buf_str(&a->dir) : ".");
	if (!FAULT_AT("stage.note") && symlinkat(text, p->old, UNSHARED) == 0)
		return 0;
	return errno == ENAMETOOLONG ? 0 : -errno; /* too deep to be noted */
}

static int forget_dir(int old)
{
	if (!FAULT_AT("stage.forget") && unlinkat(old, UNSHARED, 0) == 0)
		return 0;
	return errno == ENOENT ? 0 : -errno;
}

int apply_tidy(struct apply *a, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		struct timespec t[2] = { { .tv_nsec = UTIME_OMIT } };
		AUTO_BUF struct buf text = BUF_INIT;
		AUTO_CLOSE int dir = -1;
		long long sec;
		long ns;
		int at = 0;

		if (fs_readlink(a->roots[i].old, UNSHARED, &text) < 0 ||
		    sscanf(buf_str(&text), "%lld.%ld/%n", &sec, &ns, &at) != 2 || !at)
			continue;
		t[1] = (struct timespec){ sec, ns };
		a->touched = true;
		dir = fs_open_beneath(a->roots[i].up, buf_str(&text) + at,
				      O_RDONLY | O_DIRECTORY);
		if (dir >= 0 && futimens(dir, t) < 0)
			return err_sys(e, errno, "cannot put a layer in order");
		if (forget_dir(a->roots[i].old) < 0)
			return err_sys(e, errno, "cannot put a layer in order");
	}
	return 0;
}

int apply_unshare(struct apply *a, struct plan_rec *r, struct err *e)
{
	static const char name[] = "apart";
	struct timespec t[2];
	struct place p;
	uint64_t n = 0;
	int x;

	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	a->touched = true;
	if (unlinkat(p.old, name, 0) < 0 && errno != ENOENT)
		return apply_failed(a, r, errno, e);
	x = copy_object(p.up, p.name, p.old, name, &n);
	if (x == 0)
		x = note_dir(a, &p, t);
	if (x == 0)
		x = move_name(p.old, name, p.up, p.name, 0);
	if (x == 0 && (FAULT_AT("stage.unshare") || futimens(p.up, t) < 0))
		x = -errno;
	if (x == 0)
		x = forget_dir(p.old);
	if (x == 0)
		x = ident_at(p.up, p.name, &r->after);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

bool apply_touched(const struct apply *a)
{
	return a->touched;
}

int apply_stage(struct apply *a, const struct plan_rec *r, uint64_t *objects,
		struct err *e)
{
	uint64_t touched = 0;
	struct place p;
	gid_t gid;
	int x;

	if (r->kind != PLAN_REPLACE && r->kind != PLAN_CREATE)
		return 0;
	gid = a->layers[r->layer].gid;
	if (!a->layers[r->layer].lax_owner || r->after.gid == gid)
		gid = (gid_t)-1;
	else
		gid = r->after.gid;			 /* apply_regroup() has decided */
	if (r->flags & PLAN_CROSS || plan_is_apart(r) || /* the copy has no marks */
	    (r->flags & PLAN_BARE && gid == (gid_t)-1)) {
		(*objects)++;
		return 0;
	}
	/* The directory on the host may be one that the plan itself is to make. */
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	x = meta_strip(p.up, p.name, a->layers[r->layer].gid, gid, objects, &touched);
	a->touched = a->touched || touched;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * Finds the highest directory of the layer on the filesystem of the host's directory at hand,
 * so that renames reach it: for a nested subvolume that is its own root.
 */
static int same_fs_top(struct apply *a, const struct plan_rec *r, dev_t dev)
{
	int root = a->roots[r->layer].host;
	AUTO_FREE char *rel = xstrdup(r->rel);
	struct stat st;
	int fd;

	if (fstat(root, &st) == 0 && st.st_dev == dev)
		return fcntl(root, F_DUPFD_CLOEXEC, 3);
	for (char *s = strchr(rel, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		fd = fs_open_beneath(root, rel, O_RDONLY | O_DIRECTORY);
		*s = '/';
		if (fd < 0)
			return fd;
		if (fstat(fd, &st) == 0 && st.st_dev == dev)
			return fd;
		close(fd);
	}
	return -EXDEV;
}

/* Opens .stet-<uid>/<transaction>-<layer> there: a name that is found again after a crash. */
static int open_beside(struct apply *a, const struct plan_rec *r, int top, bool make)
{
	const char *up = a->layers[r->layer].upper;
	AUTO_FREE char *dir = xstrndup(up, strlen(up) - strlen("/up"));
	AUTO_FREE char *store = xasprintf(".stet-%u", (unsigned)geteuid());
	AUTO_FREE char *name = NULL;
	AUTO_CLOSE int fd = -1;
	char *layer = strrchr(dir, '/');
	struct stat st, was;
	int x;

	*layer++ = '\0';
	name = xasprintf("%s-%s", strrchr(dir, '/') + 1, layer);
	if (fstat(top, &was) < 0)
		return -errno;
	if (make && mkdirat(top, store, 0700) == 0) /* the tree has not changed by that */
		futimens(top, (struct timespec[]){ was.st_atim, was.st_mtim });
	else if (make && errno != EEXIST)
		return -errno;
	fd = openat(top, store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (make) {
		x = openat(fd, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			   0600);
		if (x >= 0 && write(x, "*\n", 2) < 0)
			unlinkat(fd, ".gitignore", 0);
		cleanup_close(&x);
		if (mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	x = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return x < 0 ? -errno : x;
}

/* The host's directory of a step, or the nearest existing directory above it. */
static int look_above(struct apply *a, const struct plan_rec *r, struct stat *st)
{
	int root = a->roots[r->layer].host;
	AUTO_FREE char *rel = xstrdup(r->rel);
	char *slash = strrchr(rel, '/');

	if (a->host >= 0)
		return fstat(a->host, st) < 0 ? -errno : 0;
	for (; slash; slash = strrchr(rel, '/')) {
		AUTO_CLOSE int fd = -1;

		*slash = '\0';
		fd = fs_open_beneath(root, rel, O_PATH | O_DIRECTORY);
		if (fd >= 0)
			return fstat(fd, st) < 0 ? -errno : 0;
	}
	return fstat(root, st) < 0 ? -errno : 0;
}

/* Must the staged object be copied to the host's filesystem first? */
static bool is_elsewhere(struct apply *a, const struct plan_rec *r)
{
	struct stat host, up;

	/*
	 * The answer is the same for all steps of one directory, which mostly follow each
	 * other.
	 */
	if (a->host >= 0 && a->elsewhere >= 0)
		return a->elsewhere;
	a->elsewhere = look_above(a, r, &host) == 0 &&
		       fstat(a->roots[r->layer].up, &up) == 0 && host.st_dev != up.st_dev;
	return a->elsewhere;
}

int apply_beside(struct apply *a, const struct plan_rec *r, bool make)
{
	AUTO_CLOSE int top = -1;
	struct stat st;
	int fd;

	fd = look_above(a, r, &st);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < a->nbeside; i++)
		if (a->beside[i].dev == st.st_dev && a->beside[i].layer == r->layer)
			return a->beside[i].fd;
	top = same_fs_top(a, r, st.st_dev);
	if (top < 0)
		return top;
	fd = open_beside(a, r, top, make);
	if (fd < 0)
		return fd;
	a->by_hand = a->by_hand || faccessat(fd, BY_HAND_MARK, F_OK, 0) == 0;
	a->beside = xrealloc(a->beside, (a->nbeside + 1) * sizeof(*a->beside));
	a->beside[a->nbeside++] = (struct beside){ r->layer, st.st_dev, fd };
	return fd;
}

static int write_text(int dir, const char *name, const struct buf *text)
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < text->len; done += (size_t)n) {
		n = FAULT_AT("stage.merge")
			    ? -1
			    : write(fd, text->data + done, text->len - done);
		if (n < 0)
			return -errno;
	}
	return 0;
}

/* Sets the attributes of the command's own version; the mtime is that of the merge. */
static int dress_merged(const struct place *p)
{
	AUTO_BUF struct buf attrs = BUF_INIT;
	struct ident own, now;
	int x = ident_at(p->up, p->name, &own);

	if (x == 0)
		x = meta_pack(p->up, p->name, &attrs);
	if (x == 0)
		x = ident_at(p->staged, p->sname, &now);
	own.mtime = now.mtime;
	if (x == 0)
		x = meta_own(p->staged, p->sname, &own, true);
	if (x == 0)
		x = meta_unpack(p->staged, p->sname, buf_str(&attrs), attrs.len);
	return x == 0 ? meta_set(p->staged, p->sname, &own, true) : x;
}

int apply_merge(struct apply *a, struct plan_rec *r, uint64_t serial,
		const struct buf *text, struct err *e)
{
	struct place p;
	int x;

	if (apply_at(a, r, &p, e) < 0)
		return -1;
	a->touched = true;
	r->flags |= PLAN_MERGED | (is_elsewhere(a, r) ? PLAN_CROSS : 0);
	r->serial = serial;
	x = r->flags & PLAN_CROSS ? apply_beside(a, r, true) : 0;
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (apply_at(a, r, &p, e) < 0)
		return -1;
	x = write_text(p.staged, p.sname, text);
	if (x == 0)
		x = dress_merged(&p);
	if (x == 0)
		x = ident_at(p.staged, p.sname, &r->after);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_relocate(struct apply *a, struct plan_rec *r, uint64_t serial, struct err *e)
{
	bool moves = r->kind == PLAN_REPLACE || r->kind == PLAN_CREATE;
	uint64_t objects = 0;
	struct place p;
	int x;

	if ((!moves && r->kind != PLAN_DELETE && !plan_is_apart(r)) ||
	    r->flags & PLAN_MERGED)
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (!is_elsewhere(a, r))
		return 0;
	a->touched = true;
	r->flags |= PLAN_CROSS;
	r->serial = serial;
	x = apply_beside(a, r, true);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (!moves || plan_is_apart(r)) /* no copy: a place alone */
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	x = copy_object(p.up, p.name, p.staged, p.sname, &objects);
	return x < 0 ? apply_failed(a, r, x, e) : dress_copy(a, r, &p, e);
}

static int sync_tree(int dirfd, const char *name)
{
	AUTO_CLOSE int fd = -1;
	struct fs_names names;
	struct stat st;
	int r = FAULT_POINT("stage.fsync");

	if (r < 0)
		return r;
	do {
		fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	} while (fd < 0 && errno == EACCES && ns_gain_override() == 0);
	/* A link or a socket becomes durable with its directory. */
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (fsync(fd) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return 0;
	r = fs_names_read(fd, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = sync_tree(fd, names.v[i]);
	fs_names_free(&names);
	return r;
}

int apply_sync_staged(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	int x;

	if ((r->kind != PLAN_REPLACE && r->kind != PLAN_CREATE) || r->flags & PLAN_LINKED)
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	x = sync_tree(p.staged, p.sname);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * A directory that may be searched and not read cannot be synced alone: the filesystem of
 * @root is.
 */
static int sync_dir(int dir, int root)
{
	if (dir < 0 || fsync(dir) == 0)
		return 0;
	if (errno != EBADF)
		return -errno;
	return syncfs(root) < 0 && errno != EBADF ? -errno : 0;
}

int apply_sync_dirs(struct apply *a, const struct plan_rec *r, struct err *e)
{
	/* The directory was synced for the step before. */
	bool again = a->host >= 0 && a->synced && apply_is_here(a, r);
	const struct roots *root;
	struct place p;
	int x = 0;

	if (apply_at(a, r, &p, e) < 0) /* a directory that an undo has taken away */
		return e->kind == ERR_CONFLICT ? 0 : -1;
	root = &a->roots[r->layer];
	a->synced = again;
	if (again && r->kind != PLAN_DIR && r->kind != PLAN_META)
		return 0;
	if (r->kind == PLAN_META || r->kind == PLAN_DIR) {
		AUTO_CLOSE int fd = -1;
		struct ident now;

		/*
		 * Opening a FIFO would be noticed at its other end; and an object that a
		 * directory had replaced may be there again.
		 */
		x = ident_at(p.host, p.name, &now);
		if (x == 0 && (S_ISREG(now.mode) || S_ISDIR(now.mode)))
			fd = fs_open_read(p.host, p.name);
		if (FAULT_AT("stage.fsync-meta") || (fd >= 0 && fsync(fd) < 0))
			x = -errno;
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	x = FAULT_POINT("stage.fsync-dir");
	if (x == 0)
		x = sync_dir(p.host, root->host);
	/* Steps of one directory come from the upper or (merged, aside) from `old`. */
	if (x == 0)
		x = sync_dir(r->flags & PLAN_CROSS ? p.staged : p.up, root->up);
	if (x == 0)
		x = sync_dir(p.old, root->old);
	a->synced = x == 0;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * A descriptor to sync the filesystem of @dir by, of a directory that may be read. A directory
 * that may only be searched is mostly on the same filesystem as the top of a layer. -errno.
 */
static int open_disk(const struct apply *a, int dir, dev_t dev)
{
	int flags = fcntl(dir, F_GETFL);
	struct stat st;

	if (flags >= 0 && !(flags & O_PATH))
		return fcntl(dir, F_DUPFD_CLOEXEC, 3);
	for (size_t i = 0; i < 2 * a->n; i++) {
		int fd = i % 2 ? a->roots[i / 2].up : a->roots[i / 2].host;

		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev)
			return fcntl(fd, F_DUPFD_CLOEXEC, 3);
	}
	return -EBADF;
}

void apply_note_disk(struct apply *a, int dir)
{
	struct stat st;
	int fd;

	if (dir < 0 || a->every_disk)
		return;
	fd = fstat(dir, &st);
	for (size_t i = 0; i < a->ndisks && fd == 0; i++)
		if (a->disks[i].dev == st.st_dev)
			return;
	if (fd == 0)
		fd = open_disk(a, dir, st.st_dev);
	if (fd < 0) {
		a->every_disk = true;
		return;
	}
	a->disks = xrealloc(a->disks, (a->ndisks + 1) * sizeof(*a->disks));
	a->disks[a->ndisks++] = (struct disk){ st.st_dev, fd };
}

int apply_syncfs(struct apply *a, struct err *e)
{
	int x = 0;

	for (size_t i = 0; i < a->ndisks && x == 0; i++) {
		x = FAULT_POINT("stage.syncfs");
		if (x == 0 && syncfs(a->disks[i].fd) < 0)
			x = -errno;
	}
	if (x == 0 && a->every_disk)
		sync();
	return x < 0 ? err_sys(e, x, "cannot write everything to the disk") : 0;
}
