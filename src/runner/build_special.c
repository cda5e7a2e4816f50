/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "runner/build.h"
#include "runner/build_special.h"
#include "sys/mount.h"

#define QUIET (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Mounts a read-only clone of @name in the mount at @dir over @name. */
static int lock_down(int dir, const char *name)
{
	AUTO_CLOSE int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int m = -1;

	if (at < 0)
		return errno == ENOENT ? 0 : -errno;
	m = mount_clone(at, "", false, QUIET | MOUNT_ATTR_RDONLY);
	return m < 0 ? m : mount_attach(m, at);
}

static int blank_out(int dir, const char *name)
{
	AUTO_CLOSE int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int m = -1;

	if (at < 0)
		return errno == ENOENT ? 0 : -errno;
	m = mount_clone(AT_FDCWD, "/dev/null", false, MOUNT_ATTR_RDONLY);
	return m < 0 ? m : mount_attach(m, at);
}

static bool is_blank(const char *name)
{
	static const char *const blank[] = {
		"kcore", "keys", "kmsg", "timer_list", "sched_debug", "latency_stats"
	};

	for (size_t i = 0; i < ARRAY_SIZE(blank); i++)
		if (strcmp(name, blank[i]) == 0)
			return true;
	return false;
}

/*
 * Root inside has the uid 0 of the host: procfs entries that only ownership guards
 * (core_pattern, sysrq) would let root through, and the mode and owner of an entry are those
 * of every procfs, the host's too. So everything but the processes is read-only. An ordinary
 * user has no rights there.
 */
static int guard_proc(struct build *b, struct err *e)
{
	AUTO_CLOSE int proc = build_target(b, "/proc", true, e);
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	int fd, r;

	if (proc < 0)
		return -1;
	fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_sys(e, errno, "cannot read the new /proc");
	while ((de = readdir(d))) {
		/* Links in procfs lead to the processes. */
		if (strchr(".0123456789", de->d_name[0]) || de->d_type == DT_LNK)
			continue;
		r = is_blank(de->d_name) ? blank_out(proc, de->d_name)
					 : lock_down(proc, de->d_name);
		if (r < 0)
			return err_sys(e, r, "cannot make /proc/%s read-only",
				       de->d_name);
	}
	return 0;
}

int build_proc(struct build *b, const struct step *s, struct err *e)
{
	int m = mount_new("proc", NULL, QUIET, NULL, 0);

	if (m < 0) {
		err_sys(e, m, "cannot mount a new /proc");
		if (m != -EPERM)
			return -1;
		e->kind = ERR_UNSUPPORTED;
		return err_hint(e, "a container masks parts of /proc: start it with "
				   "--security-opt systempaths=unconfined");
	}
	if (build_attach(b, m, s->target, true, e) < 0)
		return -1;
	return b->v->root ? guard_proc(b, e) : 0;
}

/*
 * The host's own device node, through a read-only mount: reading and writing reach the driver,
 * while mode, owner, ACL and times cannot change, access times included.
 */
static int add_node(int dev, const char *name)
{
	AUTO_FREE char *host = xasprintf("/dev/%s", name);
	AUTO_CLOSE int at = -1, m = -1;

	m = mount_clone(AT_FDCWD, host, false,
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (m < 0)
		return m;
	if (mknodat(dev, name, S_IFREG | 0666, 0) < 0)
		return -errno;
	at = openat(dev, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return at < 0 ? -errno : mount_attach(m, at);
}

static int add_pts(int dev)
{
	const char *opts[] = {
		"newinstance", "", "ptmxmode", "0666", "mode", "0620", NULL
	};
	AUTO_CLOSE int at = -1, m = -1;

	m = mount_new("devpts", opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, NULL, 0);
	if (m < 0)
		return m;
	if (mkdirat(dev, "pts", 0755) < 0)
		return -errno;
	at = openat(dev, "pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return at < 0 ? -errno : mount_attach(m, at);
}

int build_dev(struct build *b, const struct step *s, struct err *e)
{
	static const char *const nodes[] = { "null",   "zero",	  "full",
					     "random", "urandom", "tty" };
	static const char *const links[][2] = {
		{ "pts/ptmx", "ptmx" },		 { "/proc/self/fd", "fd" },
		{ "/proc/self/fd/0", "stdin" },	 { "/proc/self/fd/1", "stdout" },
		{ "/proc/self/fd/2", "stderr" },
	};
	AUTO_CLOSE int dev = -1;
	int m, r;

	if (build_corner(b, s->target, "dev", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e) <
	    0)
		return -1;
	dev = build_target(b, s->target, true, e);
	if (dev < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		r = add_node(dev, nodes[i]);
		if (r < 0)
			return err_sys(e, r, "cannot put /dev/%s into the sandbox",
				       nodes[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i][0], dev, links[i][1]) < 0)
			return err_sys(e, errno, "cannot make /dev/%s", links[i][1]);
	r = add_pts(dev);
	if (r < 0)
		return err_sys(e, r,
			       "cannot make terminals of the sandbox's own (devpts)");
	if (build_tmpfs(b, "/dev/shm", "1777", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e) <
	    0)
		return -1;
	if (access("/dev/mqueue", F_OK) < 0)
		return 0; /* as outside */
	m = mount_new("mqueue", NULL, QUIET, NULL, 0);
	return m < 0 ? 0 /* a kernel without POSIX queues */
		     : build_attach(b, m, "/dev/mqueue", true, e);
}

/* Links at the top of /run that lead elsewhere (current-system of NixOS) are kept. */
static int copy_links(int run)
{
	AUTO_CLOSEDIR DIR *d = opendir("/run");
	char target[PATH_MAX];
	struct dirent *de;
	ssize_t n;

	while (d && (de = readdir(d))) {
		if (de->d_type != DT_LNK)
			continue;
		n = readlinkat(dirfd(d), de->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		if (symlinkat(target, run, de->d_name) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* What is below the private /run stays writable when /run itself becomes read-only. */
static int open_again(struct build *b, int run, const char *name, uint64_t attrs,
		      struct err *e)
{
	AUTO_FREE char *path = xasprintf("/run/%s", name);
	int m = mount_clone(run, name, false, attrs);

	return m < 0 ? err_sys(e, m, "cannot bind %s", path)
		     : build_attach(b, m, path, true, e);
}

/*
 * /run holds the host's sockets (docker, D-Bus, agents): through a bind mount the inside could
 * talk to them. So /run is empty, except for what the plan shows of it.
 */
int build_run(struct build *b, const struct step *s, struct err *e)
{
	static const uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	struct stat st;
	char user[32];
	int r, run;

	if (stat("/run", &st) < 0)
		return err_sys(e, errno, "cannot look at /run");
	if (build_corner(b, s->target, "run", attrs, e) < 0)
		return -1;
	run = b->run = build_target(b, s->target, true, e);
	if (run < 0)
		return -1;
	snprintf(user, sizeof(user), "user/%u", (unsigned)geteuid());
	if (mkdirat(run, "lock", 0700) < 0 || fchmodat(run, "lock", 01777, 0) < 0 ||
	    mkdirat(run, "user", 0755) < 0 || mkdirat(run, user, 0700) < 0)
		return err_sys(e, errno, "cannot fill the private /run");
	r = copy_links(run);
	if (r < 0)
		return err_sys(e, r, "cannot fill the private /run");
	if (fchmodat(run, ".", st.st_mode & 07777, 0) < 0)
		return err_sys(e, errno, "cannot fill the private /run");
	return open_again(b, run, "lock", attrs, e) < 0
		       ? -1
		       : open_again(b, run, user, attrs, e);
}
