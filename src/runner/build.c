/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/build.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "runner/build_special.h"
#include "runner/layers.h"
#include "runner/show.h"
#include "runner/unmount.h"
#include "sys/mount.h"
#include "sys/mountinfo.h"

/* Bytes that a command may put into the private /run and /dev. */
#define STAGE_ROOM (256ULL << 20)

int build_open(const struct build *b, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	long fd;

	while (*path == '/')
		path++;
	fd = syscall(SYS_openat2, b->root, *path ? path : ".", &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/*
 * Makes the directories above a target inside a private directory, with the modes of the
 * host's.
 */
static int make_dirs(struct build *b, const char *path)
{
	AUTO_FREE char *p = xstrdup(path);
	struct stat st;

	for (char *slash = strchr(p + 1, '/');; slash = strchr(slash + 1, '/')) {
		AUTO_CLOSE int fd = -1;
		char *name;

		if (slash)
			*slash = '\0';
		name = strrchr(p, '/') + 1;
		name[-1] = '\0';
		fd = build_open(b, p);
		name[-1] = '/';
		if (fd < 0)
			return fd;
		if (mkdirat(fd, name, 0755) == 0) {
			if (stat(p, &st) == 0 &&
			    fchmodat(fd, name, st.st_mode & 07777, 0) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int make_file(struct build *b, const char *path)
{
	AUTO_FREE char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	AUTO_CLOSE int dir = -1, fd = -1;
	int r = make_dirs(b, *parent ? parent : "/");

	if (r < 0)
		return r;
	dir = build_open(b, parent);
	if (dir < 0)
		return dir;
	fd = openat(dir, strrchr(path, '/') + 1,
		    O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : 0;
}

int build_target(struct build *b, const char *target, bool dir, struct err *e)
{
	int fd = build_open(b, target);
	int r;

	if (fd == -ENOENT) {
		r = dir ? make_dirs(b, target) : make_file(b, target);
		fd = r < 0 ? r : build_open(b, target);
	}
	if (fd < 0)
		return err_sys(e, fd, "no place to mount on at %s", target);
	return fd;
}

/* The mount of the first step becomes the root in which all others are put. */
static int attach_root(struct build *b, int m, struct err *e)
{
	AUTO_CLOSE int mount = m, at = -1;
	int r;

	if (mkdirat(b->stage, "root", 0755) < 0)
		return err_sys(e, errno, "cannot make the new root");
	at = openat(b->stage, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return err_sys(e, errno, "cannot open the new root");
	r = mount_attach(mount, at);
	if (r < 0)
		return err_sys(e, r, "cannot mount the new root");
	b->root = openat(b->stage, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return b->root < 0 ? err_sys(e, errno, "cannot enter the new root") : 0;
}

int build_attach(struct build *b, int m, const char *target, bool dir, struct err *e)
{
	AUTO_CLOSE int mount = m, at = -1;
	int r;

	if (strcmp(target, "/") == 0)
		return attach_root(b, TAKE_FD(mount), e);
	at = build_target(b, target, dir, e);
	if (at < 0)
		return -1;
	r = mount_attach(mount, at);
	return r < 0 ? err_sys(e, r, "cannot mount on %s", target) : 0;
}

int build_tmpfs(struct build *b, const char *target, const char *mode, uint64_t attrs,
		struct err *e)
{
	const char *opts[] = { "mode", mode, NULL };
	int m = mount_new("tmpfs", opts, attrs, NULL, 0);

	if (m < 0)
		return err_sys(e, m, "cannot make a tmpfs for %s", target);
	return build_attach(b, m, target, true, e);
}

int build_corner(struct build *b, const char *target, const char *name, uint64_t attrs,
		 struct err *e)
{
	int m = mkdirat(b->stage, name, 0755) < 0
			? -errno
			: mount_clone(b->stage, name, false, attrs);

	if (m < 0)
		return err_sys(e, m, "cannot make a directory in memory for %s", target);
	return build_attach(b, m, target, true, e);
}

static int build_bind(struct build *b, const struct step *s, struct err *e)
{
	struct stat st;
	int m;

	if (lstat(s->source, &st) < 0)
		return errno == ENOENT && s->spare
			       ? 0
			       : err_sys(e, errno, "cannot look at %s", s->source);
	m = strcmp(s->target, "/") == 0
		    ? b->base
		    : mount_clone(AT_FDCWD, s->source, !s->single, s->attrs);
	if (m < 0)
		return err_sys(e, m, "cannot bind %s%s", s->source,
			       s->attrs & MOUNT_ATTR_RDONLY ? " read-only" : "");
	return build_attach(b, m, s->target, S_ISDIR(st.st_mode), e);
}

/* What is seen there, by no name of the host's, which others may have changed meanwhile. */
static int build_pin(struct build *b, const struct step *s, struct err *e)
{
	AUTO_CLOSE int at = build_open(b, s->target);
	int m = at < 0 ? at : mount_clone(at, "", true, 0);

	return m < 0 ? err_sys(e, m, "cannot keep %s from being renamed", s->target)
		     : build_attach(b, m, s->target, true, e);
}

static int build_scratch(struct build *b, const struct step *s, struct err *e)
{
	int m = mount_clone(AT_FDCWD, b->v->layers[s->layer].dir, false, s->attrs);

	if (m < 0)
		return err_sys(e, m, "cannot bind the private %s", s->target);
	return build_attach(b, m, s->target, true, e);
}

static int overlay_failed(const struct build *b, const struct step *s, int r,
			  const char *why, struct err *e)
{
	err_sys(e, r, "cannot overlay %s%s%s", s->source, *why ? ": " : "", why);
	if ((r == -ENOSPC || r == -EDQUOT) && !path_within(b->v->workspace, s->source))
		return err_hint(e,
				"free some space there, or leave it out: --read-only "
				"'%s', or --hide '%s'",
				s->source, s->source);
	if (r == -ENOSPC || r == -EDQUOT)
		return -1;
	if (r == -EPERM || r == -ENODEV)
		e->kind = ERR_UNSUPPORTED;
	return err_hint(e, "`stet doctor` says what this machine lacks");
}

static int build_overlay(struct build *b, const struct step *s, struct err *e)
{
	const char *dir = b->v->layers[s->layer].dir;
	AUTO_FREE char *up = xasprintf("%s/up", dir), *wk = xasprintf("%s/wk", dir);
	struct overlay_spec o = { .lower = { -1, -1, -1 }, .attrs = s->attrs };
	char why[256] = "";
	int m;

	if (build_lowers(b, s, o.lower, e) < 0)
		return -1;
	unmount_await(dir);
	o.upper = open(up, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	o.work = open(wk, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	m = o.upper < 0 || o.work < 0 ? -errno : mount_overlay(&o, why, sizeof(why));
	cleanup_close(&o.upper);
	cleanup_close(&o.work);
	for (size_t i = 0; i < ARRAY_SIZE(o.lower); i++)
		cleanup_close(&o.lower[i]);
	if (m < 0)
		return overlay_failed(b, s, m, why, e);
	idle_layers_add(b->far, b->v, s->layer);
	if (build_attach(b, m, s->target, true, e) < 0)
		return -1;
	if (s == build_main(b->v))
		b->main = strcmp(s->target, "/") ? build_open(b, s->target)
						 : fcntl(b->root, F_DUPFD_CLOEXEC, 0);
	return 0;
}

int build_mask(struct build *b, const struct step *s, struct err *e)
{
	AUTO_CLOSE int at = build_open(b, s->target);
	const char *name;
	struct stat st;
	bool dir;
	int m, r;

	if (at == -ENOENT)
		return 0;
	if (at < 0 || fstat(at, &st) < 0)
		return err_sys(e, at < 0 ? at : -errno, "cannot hide %s", s->target);
	dir = S_ISDIR(st.st_mode);
	name = !dir ? "nofile" : s->mode ? "emptydir" : "nodir";
	if (dir ? mkdirat(b->stage, name, s->mode) : mknodat(b->stage, name, S_IFREG, 0))
		if (errno != EEXIST)
			return err_sys(e, errno, "cannot hide %s", s->target);
	m = mount_clone(b->stage, name, false,
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID |
				MOUNT_ATTR_NOEXEC);
	if (m < 0)
		return err_sys(e, m, "cannot hide %s", s->target);
	r = mount_attach(m, at);
	close(m);
	return r < 0 ? err_sys(e, r, "cannot hide %s", s->target) : 0;
}

static int build_tmpfs_step(struct build *b, const struct step *s, struct err *e)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%o", s->mode);
	return build_tmpfs(b, s->target, mode, s->attrs, e);
}

static int (*const do_step[])(struct build *, const struct step *, struct err *) = {
	[STEP_BIND] = build_bind,     [STEP_OVERLAY] = build_overlay,
	[STEP_SHOW] = build_show,     [STEP_SCRATCH] = build_scratch,
	[STEP_PROC] = build_proc,     [STEP_TMPFS] = build_tmpfs_step,
	[STEP_DEV] = build_dev,	      [STEP_RUN] = build_run,
	[STEP_SOCKET] = build_socket, [STEP_PIN] = build_pin,
	[STEP_MASK] = build_mask,
};

static void log_step(const struct step *s)
{
	AUTO_BUF struct buf b = BUF_INIT;

	if (!log_enabled())
		return;
	step_describe(s, &b);
	log_debug("%s", buf_str(&b));
}

static int open_stage(struct build *b, struct err *e)
{
	const char *opts[] = { "mode", "755", "size", "1g", NULL };
	AUTO_CLOSE int m = -1;
	int r;

	b->under = open(b->v->stage, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->under < 0)
		return err_sys(e, errno, "cannot open %s", b->v->stage);
	m = mount_new("tmpfs", opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, NULL, 0);
	r = m < 0 ? m : mount_attach(m, b->under);
	if (r < 0)
		return err_sys(e, r, "cannot mount a tmpfs to build the sandbox in");
	b->stage = open(b->v->stage, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return b->stage < 0 ? err_sys(e, errno, "cannot open %s", b->v->stage) : 0;
}

/*
 * /run gets the mode of the host's, though it belongs to the user: nothing more is made in it.
 */
static int close_run(struct build *b, struct err *e)
{
	AUTO_CLOSE int run = b->run;
	int r = run < 0 ? 0 : mount_close(run);

	return r < 0 ? err_sys(e, r, "cannot make the private /run read-only") : 0;
}

int build_view(const struct view *v, int *main, struct idle_layers *far, struct err *e)
{
	struct build b = { .v = v,
			   .under = -1,
			   .stage = -1,
			   .root = -1,
			   .base = -1,
			   .main = -1,
			   .run = -1,
			   .far = far };
	const struct step *first = &v->steps[0];
	int r;

	/*
	 * The host's root is cloned before anything is mounted: our own stage must not be in
	 * it.
	 */
	if (first->kind == STEP_BIND)
		b.base = mount_clone(AT_FDCWD, first->source, true, first->attrs);
	if (open_stage(&b, e) < 0)
		return -1;
	for (size_t i = 0; i < v->nsteps; i++) {
		log_step(&v->steps[i]);
		if (do_step[v->steps[i].kind](&b, &v->steps[i], e) < 0)
			return -1;
	}
	/* All that is needed is in it: what the command may add, in /run and /dev, is little. */
	r = mount_bound(b.stage, STAGE_ROOM);
	if (r < 0)
		return err_sys(e, r, "cannot bound what is held in memory");
	if (close_run(&b, e) < 0)
		return -1;
	log_debug("all mounted");
	close(b.stage);
	close(b.under);
	*main = b.main;
	return b.root;
}

int build_enter(int root, struct err *e)
{
	int r = mount_pivot(root);

	close(root);
	return r < 0 ? err_sys(e, r, "cannot change to the new root") : 0;
}
