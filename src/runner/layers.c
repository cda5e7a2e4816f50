/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "layer/overlay.h"
#include "runner/build.h"
#include "runner/layers.h"
#include "sys/mountinfo.h"

enum { SKELETON_FILE_MAX = 64 * 1024 * 1024 };

const struct step *build_main(const struct view *v)
{
	const struct step *s = v->workspace ? view_seen_through(v, v->workspace) : NULL;

	return s && s->kind == STEP_OVERLAY ? s : NULL;
}

/*
 * The rights that the user has there, as the bits of an owner: see upper_mode() in
 * snap/store.c.
 */
static mode_t seen_mode(const char *host, const struct stat *st)
{
	mode_t m = st->st_mode & 07777;

	if (st->st_uid == geteuid() || geteuid() == 0)
		return m;
	m &= 07077;
	m |= access(host, R_OK) == 0 ? 0400 : 0;
	m |= access(host, W_OK) == 0 ? 0200 : 0;
	m |= access(host, X_OK) == 0 ? 0100 : 0;
	return m;
}

/* ACLs are copied, too: a merged directory has those of its topmost layer. */
static void copy_xattrs(const char *host, int dir, const char *rel)
{
	AUTO_FREE char *at = xasprintf("/proc/self/fd/%d/%s", dir, rel);
	char names[4096], value[4096];
	ssize_t n = listxattr(host, names, sizeof(names)), len;

	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		if (strncmp(p, OVERLAY_MARK, strlen(OVERLAY_MARK)) == 0)
			continue;
		len = getxattr(host, p, value, sizeof(value));
		if (len >= 0)
			setxattr(at, p, value, (size_t)len, 0); /* as far as tmpfs can */
	}
}

/* Makes one directory of the fix layer, with the attributes of the host's. */
static int fix_dir(int fix, const char *rel, const char *host, const struct stat *st)
{
	if (mkdirat(fix, rel, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (geteuid() == 0 && fchownat(fix, rel, st->st_uid, st->st_gid, 0) < 0)
		return -errno;
	if (fchmodat(fix, rel, seen_mode(host, st), 0) < 0)
		return -errno;
	copy_xattrs(host, fix, rel);
	return 0;
}

/* Makes a directory with an entry in it; the mount on it hides its attributes. */
static int put_mount_point(int fix, const char *rel)
{
	AUTO_FREE char *in = xasprintf("%s/mount-point", rel);

	if ((mkdirat(fix, rel, 0755) < 0 && errno != EEXIST) ||
	    (mknodat(fix, in, S_IFREG, 0) < 0 && errno != EEXIST))
		return -errno;
	return 0;
}

/* Makes the missing directories from @slash on and lets @put make the object at @rel. */
static int fix_below(int fix, const char *base, char *rel, char *slash,
		     int (*put)(int fix, const char *rel))
{
	AUTO_FREE char *host = NULL;
	struct stat st;
	int r;

	if (!slash)
		return put(fix, rel);
	*slash = '\0';
	host = xasprintf("%s/%s", strcmp(base, "/") == 0 ? "" : base, rel);
	r = stat(host, &st) < 0 ? -errno : fix_dir(fix, rel, host, &st);
	*slash = '/';
	if (r == 0)
		r = fix_below(fix, base, rel, strchr(slash + 1, '/'), put);
	if (r < 0)
		return r;
	/* The attributes are set when nothing more is put into the directory. */
	*slash = '\0';
	r = utimensat(fix, rel, (struct timespec[]){ st.st_atim, st.st_mtim }, 0);
	*slash = '/';
	return r < 0 ? -errno : 0;
}

/*
 * Makes an object for @path in the fix layer of the tree at @base, and the directories above
 * it.
 */
static int fix_path(int fix, const char *base, const char *path,
		    int (*put)(int fix, const char *rel))
{
	AUTO_FREE char *rel = xstrdup(path + (strcmp(base, "/") == 0 ? 0 : strlen(base)) +
				      1);

	return fix_below(fix, base, rel, strchr(rel, '/'), put);
}

static int new_dir(struct build *b, const char *what, struct err *e)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "%s%u", what, b->serial++);
	if (mkdirat(b->stage, name, 0755) < 0)
		return err_sys(e, errno, "cannot make a layer in memory");
	fd = openat(b->stage, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "cannot open a layer in memory") : fd;
}

static int copy_bytes(int in, int out)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(in, chunk, sizeof(chunk))) > 0)
		if (write(out, chunk, (size_t)n) != n)
			return errno ? -errno : -ENOSPC;
	return n < 0 ? -errno : 0;
}

static int skeleton_file(int host, int skel, const char *name, const struct stat *st)
{
	AUTO_CLOSE int in = openat(host, name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_CLOSE int out = -1;
	int r;

	if (in < 0)
		return 0; /* unreadable outside: not there inside */
	out = openat(skel, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_bytes(in, out);
	if (r < 0 || fchmod(out, st->st_mode & 07777) < 0)
		return r < 0 ? r : -errno;
	return futimens(out, (struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno
										  : 0;
}

static int skeleton_entry(int host, int skel, const char *name)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mkdirat(skel, name, 0755) < 0 ? -errno : 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(host, name, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		return symlinkat(target, skel, name) < 0 ? -errno : 0;
	}
	if (S_ISREG(st.st_mode) && st.st_size <= SKELETON_FILE_MAX)
		return skeleton_file(host, skel, name, &st);
	if (S_ISREG(st.st_mode))
		return -EFBIG;
	/* Sockets and FIFOs are made anew: the same type, and not the host's. */
	if (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode))
		return mknodat(skel, name, st.st_mode, 0) < 0 ? -errno : 0;
	return 0;
}

/* Copies the level of the directory itself: its directories get mounts of their own. */
static int skeleton(struct build *b, const struct step *s, struct err *e)
{
	AUTO_CLOSE int skel = new_dir(b, "skel", e);
	AUTO_CLOSEDIR DIR *d = opendir(s->source);
	struct dirent *de;
	int r;

	if (skel < 0)
		return -1;
	if (!d)
		return err_sys(e, errno, "cannot read %s", s->source);
	while ((de = readdir(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", s->source, de->d_name);

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		r = view_hides(b->v, path) ? 0
					   : skeleton_entry(dirfd(d), skel, de->d_name);
		if (r == -EFBIG) {
			err_set(e, ERR_UNSUPPORTED,
				"%s is too large to copy, and mounts below %s forbid an overlay",
				path, s->source);
			return err_hint(e, "move it into a directory of its own");
		}
		if (r < 0)
			return err_sys(e, r, "cannot prepare %s", path);
	}
	return TAKE_FD(skel);
}

/*
 * Is @other mounted on a directory in the overlay of @s? That directory must not be empty
 * beneath its mount. A process with a mount namespace of its own, without this mount, could
 * remove the empty directory through a descriptor of the one above, and the kernel would take
 * the mount away from all namespaces: /proc, say, which PID 1 relies on.
 */
static bool is_mounted_in(const struct build *b, const struct step *s,
			  const struct step *other)
{
	AUTO_FREE char *above = xstrdup(other->target);
	char *slash = strrchr(above, '/');
	struct stat st;

	if (other == s || !slash[1] || view_hides(b->v, other->target) ||
	    view_seen_through(b->v, other->target) != other)
		return false;
	slash[slash == above] = '\0';
	return view_seen_through(b->v, above) == s &&
	       fstatat(AT_FDCWD, other->target, &st,
		       AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* Puts the mount points into the fix layer, which is made if need be, or into a skeleton. */
static int keep_mount_points(struct build *b, const struct step *s, int *layer,
			     struct err *e)
{
	for (size_t i = 0; i < b->v->nsteps; i++) {
		const struct step *other = &b->v->steps[i];
		int r;

		if (!is_mounted_in(b, s, other))
			continue;
		if (*layer < 0)
			*layer = new_dir(b, "fix", e);
		if (*layer < 0)
			return -1;
		r = fix_path(*layer, s->source, other->target, put_mount_point);
		if (r < 0)
			return err_sys(e, r, "cannot keep what is mounted on %s",
				       other->target);
	}
	return 0;
}

int build_lowers(struct build *b, const struct step *s, int lower[3], struct err *e)
{
	AUTO_CLOSE int fix = -1;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < b->v->nhidden && !s->skeleton; i++) {
		const char *path = b->v->hidden[i];

		if (view_seen_through(b->v, path) != s || strcmp(path, s->target) == 0 ||
		    access(path, F_OK) < 0)
			continue;
		if (fix < 0)
			fix = new_dir(b, "fix", e);
		if (fix < 0)
			return -1;
		r = fix_path(fix, s->source, path, overlay_whiteout);
		if (r < 0)
			return err_sys(e, r, "cannot hide %s", path);
	}
	if (!s->skeleton && keep_mount_points(b, s, &fix, e) < 0)
		return -1;
	if (fix >= 0)
		lower[n++] = TAKE_FD(fix);
	lower[n] = s->skeleton ? skeleton(b, s, e)
			       : open(s->source,
				      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lower[n] < 0 && !s->skeleton)
		err_sys(e, errno, "cannot open %s", s->source);
	if (lower[n] < 0)
		return -1;
	return s->skeleton ? keep_mount_points(b, s, &lower[n], e) : 0;
}
