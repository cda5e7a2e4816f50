/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "snap/hide.h"
#include "snap/plan.h"
#include "snap/show.h"
#include "snap/store.h"
#include "snap/trees.h"

/* More directories beside mount points than this are not shown. */
enum { SHOWN_MAX = 400 };

#define SHOWN_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV)

/*
 * Types of filesystem that know neither sockets nor FIFOs: then it need not be looked at through an
 * overlay, which many of these forbid. That a filesystem is read-only says nothing: a socket may
 * have been bound there before, and a FIFO connects whoever opens it.
 */
static bool holds_no_sockets(const struct mountpoint *m)
{
	static const char *const plain[] = {
		"vfat",	      "msdos",	   "exfat",    "sysfs",	  "cgroup",
		"cgroup2",    "cpuset",	   "resctrl",  "debugfs", "tracefs",
		"securityfs", "selinuxfs", "smackfs",  "bpf",	  "pstore",
		"configfs",   "fusectl",   "efivarfs", "nsfs",	  "binfmt_misc",
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (strcmp(m->fstype, plain[i]) == 0)
			return true;
	return false;
}

bool plan_has_step(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->v->nsteps; i++)
		if (strcmp(p->v->steps[i].target, path) == 0)
			return true;
	return false;
}

/* Left out: what is made anew, or hidden, or has its step already. */
static bool is_done(const struct plan *p, const char *path)
{
	for (size_t i = 0; p->private_dirs[i]; i++)
		if (strcmp(path, p->private_dirs[i]) == 0)
			return true;
	return plan_is_remade(path) || plan_is_veiled(p, path) || plan_has_step(p, path);
}

static bool has_mounts_below(const struct plan *p, const char *path)
{
	/* Root may leave them out. */
	for (size_t i = 0; !p->v->root && i < p->mi.n; i++)
		if (path_within(p->mi.v[i].target, path) &&
		    strcmp(p->mi.v[i].target, path) != 0)
			return true;
	return false;
}

/*
 * Is the directory empty? Then its name, in the level around it, is all that can be seen. A
 * mount point is not opened: that could mount something, or wait for a server. A directory
 * with more links than an empty one can have, which most filesystems count, is not opened
 * either.
 */
static bool is_empty(const struct plan *p, const char *path, const struct stat *st)
{
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	if (st->st_nlink <= 2 && strcmp(mountinfo_of(&p->mi, path)->target, path) != 0)
		d = opendir(path);
	while (d && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			return false;
	return d;
}

static bool may_enter(const char *path)
{
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

static int show_below(struct plan *p, const char *path, const char *why, struct err *e)
{
	if (is_done(p, path))
		return 0;
	if (p->nshown < SHOWN_MAX || has_mounts_below(p, path))
		return plan_show(p, path, why, e);
	plan_step(p, STEP_MASK, path, NULL, 0, "too much beside a mount point");
	return 0;
}

int plan_show_mounts(struct plan *p, const char *path, const char *why, struct err *e)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];

		if (m->visible && path_within(m->target, path) &&
		    strcmp(m->target, path) != 0 && may_enter(m->target) &&
		    show_below(p, m->target, why, e) < 0)
			return -1;
	}
	return 0;
}

/* Adds one step for the directory's own level, and one for each directory in it. */
static int show_level(struct plan *p, const char *path, uint64_t attrs, const char *why,
		      struct err *e)
{
	AUTO_CLOSEDIR DIR *d = opendir(path);
	struct dirent *de;

	plan_step(p, STEP_SHOW, path, path, attrs, why)->skeleton = true;
	while (d && (de = readdir(d))) {
		AUTO_FREE char *sub = xasprintf("%s/%s", path[1] ? path : "", de->d_name);
		struct stat st;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
		    (de->d_type != DT_DIR && de->d_type != DT_UNKNOWN) ||
		    lstat(sub, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (!is_done(p, sub) && !is_empty(p, sub, &st) &&
		    show_below(p, sub, why, e) < 0)
			return -1;
	}
	return d ? 0 : plan_show_mounts(p, path, why, e);
}

bool plan_file(struct plan *p, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return false;
	if (is_done(p, path))
		return true;
	if (S_ISREG(st.st_mode)) {
		struct step *s = plan_step(p, STEP_BIND, path, path,
					   SHOWN_ATTRS | MOUNT_ATTR_NOSUID,
					   "mounted on a file");

		s->single = s->spare = true;
	} else {
		plan_step(p, STEP_MASK, path, NULL, 0, "the host's own");
	}
	return true;
}

int plan_show(struct plan *p, const char *path, const char *why, struct err *e)
{
	const struct mountpoint *m = mountinfo_of(&p->mi, path);
	uint64_t attrs = plan_attrs(m) | SHOWN_ATTRS;
	bool dead = plan_is_dead(m), bare = dead || holds_no_sockets(m);
	struct step *s;

	if (strcmp(m->target, path) == 0 && plan_file(p, path))
		return 0;
	if (plan_is_window(m) || (dead && !p->v->root)) {
		plan_step(p, STEP_MASK, path, NULL, 0, "the host's own");
		return 0;
	}
	/* A user who cannot enter the directory reaches nothing in it. */
	if (bare || !may_enter(path)) {
		s = plan_step(p, STEP_BIND, path, path, attrs, why);
		s->single = p->v->root;
		s->spare = true;
		return bare && !p->v->root ? plan_show_mounts(p, path, why, e) : 0;
	}
	p->nshown++;
	if (has_mounts_below(p, path))
		return show_level(p, path, attrs, why, e);
	s = plan_step(p, STEP_SHOW, path, path, attrs, why);
	s->spare = strcmp(m->target, "/") != 0;
	return 0;
}
