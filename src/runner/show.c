/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "runner/build.h"
#include "runner/layers.h"
#include "runner/show.h"
#include "sys/mount.h"
#include "sys/mountinfo.h"

/*
 * An overlay without an upper needs two lowers: an empty directory on the same filesystem, if
 * we have one outside of the tree, since files and directories then have one device number.
 */
static int add_empty(struct build *b, const struct step *s, struct overlay_spec *o,
		     struct err *e)
{
	size_t n = 0;
	struct stat at, ours;

	while (o->lower[n] >= 0)
		n++;
	if (n > 1)
		return 0;
	if (b->under >= 0 && fstat(o->lower[0], &at) == 0 &&
	    fstat(b->under, &ours) == 0 && at.st_dev == ours.st_dev &&
	    !path_within(b->v->stage, s->source)) {
		o->lower[n] = fcntl(b->under, F_DUPFD_CLOEXEC, 0);
	} else {
		if (mkdirat(b->stage, "empty", 0755) < 0 && errno != EEXIST)
			return err_sys(e, errno, "cannot make an empty layer");
		o->lower[n] = openat(b->stage, "empty",
				     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return o->lower[n] < 0 ? err_sys(e, errno, "cannot open an empty layer") : 0;
}

static int show_tree(struct build *b, const struct step *s, struct err *e)
{
	struct overlay_spec o = {
		.lower = { -1, -1, -1 }, .upper = -1, .work = -1, .attrs = s->attrs
	};
	char why[256] = "";
	int m, r = build_lowers(b, s, o.lower, e);

	if (r == 0)
		r = add_empty(b, s, &o, e);
	m = r < 0 ? r : mount_overlay(&o, why, sizeof(why));
	for (size_t i = 0; i < ARRAY_SIZE(o.lower); i++)
		cleanup_close(&o.lower[i]);
	if (r < 0)
		return -1;
	if (m >= 0)
		return build_attach(b, m, s->target, true, e);
	if (s->spare) {
		log_debug("%s cannot be overlaid: %s", s->target, why);
		return build_mask(b, s, e);
	}
	err_sys(e, m, "cannot overlay %s%s%s", s->source, *why ? ": " : "", why);
	return err_hint(e, "leave it out: --hide '%s'", s->source);
}

/* Sockets and FIFOs are made anew, not the host's; devices are left out. */
static int copy_entry(int host, int level, const char *name, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode))
		return mknodat(level, name, S_IFREG | 0444, 0);
	if (S_ISDIR(st->st_mode))
		return mkdirat(level, name, 0755);
	if (S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode))
		return mknodat(level, name, st->st_mode, 0);
	if (!S_ISLNK(st->st_mode))
		return 0;
	n = readlinkat(host, name, target, sizeof(target) - 1);
	if (n < 0)
		return errno == ENOENT ? 0 : -1; /* gone by now */
	target[n] = '\0';
	return symlinkat(target, level, name);
}

static bool is_covered(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->nsteps; i++)
		if (strcmp(v->steps[i].target, path) == 0)
			return true;
	return false;
}

static int dress(int level, const char *name, const struct stat *st)
{
	if (S_ISDIR(st->st_mode) && fchmodat(level, name, st->st_mode & 07777, 0) < 0)
		return -1;
	return utimensat(level, name, (struct timespec[]){ st->st_atim, st->st_mtim },
			 AT_SYMLINK_NOFOLLOW);
}

/* Copies one level of a directory; @files gets the names of its files, each with its NUL. */
static int copy_level(struct build *b, const struct step *s, DIR *d, int level,
		      struct buf *files, struct err *e)
{
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", s->source[1] ? s->source : "",
						 de->d_name);

		bool covered = is_covered(b->v, path);

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
		    view_hides(b->v, path))
			continue;
		/* Only the name of a covered object is ever seen. */
		if (covered && de->d_type == DT_DIR)
			st = (struct stat){ .st_mode = S_IFDIR };
		else if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (copy_entry(dirfd(d), level, de->d_name, &st) < 0)
			return err_sys(e, errno, "cannot prepare %s", path);
		if (S_ISREG(st.st_mode))
			buf_add(files, de->d_name, strlen(de->d_name) + 1);
		if ((S_ISLNK(st.st_mode) || (S_ISDIR(st.st_mode) && !covered)) &&
		    dress(level, de->d_name, &st) < 0 && errno != ENOENT)
			return err_sys(e, errno, "cannot prepare %s", path);
	}
	return 0;
}

/* Mounts a file, the host's own, read-only, in a directory whose level is a copy. */
static int bind_file(int host, int level, const char *name)
{
	AUTO_CLOSE int m = mount_clone(host, name, false,
				       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOSUID);
	AUTO_CLOSE int at = -1;
	struct stat st;

	if (m < 0)
		return m == -ENOENT ? 0 : m;
	if (fstat(m, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	at = openat(level, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? -errno : mount_attach(m, at);
}

static int bind_files(const struct step *s, DIR *d, int level, const struct buf *files,
		      struct err *e)
{
	const char *name = buf_str(files), *end = name + files->len;

	for (; name < end; name += strlen(name) + 1) {
		int r = bind_file(dirfd(d), level, name);

		if (r < 0)
			return err_sys(e, r, "cannot bind %s/%s", s->source, name);
	}
	return 0;
}

/* Makes the directories down to mounts below, where the host's directory cannot be read. */
static int make_ways(struct build *b, const struct step *s, int level, struct err *e)
{
	for (size_t i = 0; i < b->v->nsteps; i++) {
		const char *below = b->v->steps[i].target;
		AUTO_FREE char *name = NULL;

		if (!path_within(below, s->target) || strcmp(below, s->target) == 0)
			continue;
		below += s->target[1] ? strlen(s->target) + 1 : 1;
		name = xstrndup(below, strcspn(below, "/"));
		if (mkdirat(level, name, 0755) < 0 && errno != EEXIST)
			return err_sys(e, errno, "cannot prepare %s", s->target);
	}
	return 0;
}

static int show_level(struct build *b, const struct step *s, struct err *e)
{
	AUTO_CLOSEDIR DIR *d = opendir(s->source);
	AUTO_CLOSE int level = -1, seen = -1;
	AUTO_BUF struct buf files = BUF_INIT;
	char name[32];
	struct stat st;
	int m;

	snprintf(name, sizeof(name), "level%u", b->serial++);
	if (stat(s->source, &st) < 0)
		return err_sys(e, errno, "cannot look at %s", s->source);
	if (mkdirat(b->stage, name, 0700) < 0)
		return err_sys(e, errno, "cannot make a directory in memory");
	level = openat(b->stage, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (level < 0)
		return err_sys(e, errno, "cannot open a directory in memory");
	if ((d ? copy_level(b, s, d, level, &files, e) : make_ways(b, s, level, e)) < 0)
		return -1;
	if (fchmod(level, st.st_mode & 07777) < 0 ||
	    futimens(level, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
		return err_sys(e, errno, "cannot prepare %s", s->target);
	m = mount_clone(b->stage, name, false, s->attrs);
	if (m < 0)
		return err_sys(e, m, "cannot bind the copy of %s", s->source);
	if (build_attach(b, m, s->target, true, e) < 0)
		return -1;
	seen = build_target(b, s->target, true, e);
	return seen < 0 ? -1 : bind_files(s, d, seen, &files, e);
}

/* In a tree of the host the name exists, unless the command has removed it. */
static int socket_place(struct build *b, const struct step *s, struct err *e)
{
	const struct step *through = view_seen_through(b->v, s->target);
	int at;

	if (!through || (through->kind != STEP_OVERLAY && through->kind != STEP_SHOW))
		return build_target(b, s->target, false, e);
	at = build_open(b, s->target);
	return at < 0 ? err_sys(e, at, "no place for the socket %s", s->target) : at;
}

int build_socket(struct build *b, const struct step *s, struct err *e)
{
	AUTO_CLOSE int m = mount_clone(AT_FDCWD, s->source, false, s->attrs);
	AUTO_CLOSE int at = -1;
	struct stat st;
	int r = m < 0 ? m : 0;

	if (r == 0 && (fstat(m, &st) < 0 || !S_ISSOCK(st.st_mode)))
		r = -ENOTSOCK;
	if (r == 0)
		at = socket_place(b, s, e);
	if (r == 0 && at >= 0)
		r = mount_attach(m, at);
	if (s->spare || (r == 0 && at >= 0))
		return 0;
	return r < 0 ? err_sys(e, r, "cannot open the socket %s to the command",
			       s->target)
		     : -1;
}

int build_show(struct build *b, const struct step *s, struct err *e)
{
	/* Directories beside a mount point may appear and disappear. */
	if (faccessat(AT_FDCWD, s->source, F_OK, AT_EACCESS) < 0 && errno == ENOENT &&
	    s != b->v->steps)
		return 0;
	return s->skeleton ? show_level(b, s, e) : show_tree(b, s, e);
}
