/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sys/guise.h"
#include "sys/movedir.h"
#include "sys/peek.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
static const struct sock_filter filter[] = {
#include "filter.inc"
};
static const struct sock_filter filter_gate[] = {
#include "filter_gate.inc"
};
static const struct sock_filter filter_lone[] = {
#include "filter_lone.inc"
};
static const struct sock_filter filter_lone_gate[] = {
#include "filter_lone_gate.inc"
};

#define FILTER(f)                \
	{                        \
		f, ARRAY_SIZE(f) \
	}
static const struct {
	const struct sock_filter *v;
	size_t n;
} filters[2][2] = { { FILTER(filter), FILTER(filter_gate) },
		    { FILTER(filter_lone), FILTER(filter_lone_gate) } };

int notify_install(bool gate, bool lone)
{
	const struct sock_filter *f = filters[lone][gate].v;
	struct sock_fprog prog = { .len = (unsigned short)filters[lone][gate].n,
				   .filter = (struct sock_filter *)(uintptr_t)f };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER |
				  SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
			  &prog);

	if (fd < 0 && errno == EINVAL) /* before 5.19 */
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			     SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	return fd < 0 ? -errno : (int)fd;
}

/* The two names of a rename, whichever of the three calls it was. */
struct rename_args {
	int olddir, newdir;
	uint64_t old, new;
	unsigned flags;
};

static void decode(const struct seccomp_data *d, struct rename_args *a)
{
	bool at = d->nr != SYS_rename;

	*a = (struct rename_args){ .olddir = at ? (int)d->args[0] : AT_FDCWD,
				   .newdir = at ? (int)d->args[2] : AT_FDCWD,
				   .old = at ? d->args[1] : d->args[0],
				   .new = at ? d->args[3] : d->args[1],
				   .flags = d->nr == SYS_renameat2 ? (unsigned)d->args[4]
								   : 0 };
}

/* The directory a path starts from, as a name of ours. */
static void base_name(pid_t pid, int dirfd, const char *path, char *out, size_t len)
{
	if (path[0] == '/')
		snprintf(out, len, "/proc/%d/root", (int)pid);
	else if (dirfd == AT_FDCWD)
		snprintf(out, len, "/proc/%d/cwd", (int)pid);
	else
		snprintf(out, len, "/proc/%d/fd/%d", (int)pid, dirfd);
}

static bool is_directory(pid_t pid, int dirfd, const char *path)
{
	char base[64], full[PATH_MAX + sizeof(base) + 1];
	struct stat st;

	base_name(pid, dirfd, path, base, sizeof(base));
	snprintf(full, sizeof(full), "%s/%s", base, path);
	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The directory above the last component, and that component. */
struct place {
	int dir;
	char name[NAME_MAX + 1];
};

static int find_place(int base, char *path, struct place *p)
{
	size_t n = strlen(path);
	char *slash, *name;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EBUSY;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(p->name, name, strlen(name) + 1);
	*name = '\0';
	while (*path == '/')
		path++; /* the base is the caller's root already */
	p->dir = openat(base, *path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->dir < 0 ? -errno : 0;
}

static int open_base(pid_t pid, int dirfd, const char *path)
{
	char name[64];
	int fd;

	base_name(pid, dirfd, path, name, sizeof(name));
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A caller in a chroot of its own resolves links against another root than we would. */
static bool same_root(pid_t pid)
{
	struct stat a, b;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	return stat(name, &a) == 0 && stat("/", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* In a child: the rename, done for the caller. */
static int rename_for(const struct notify *n, const struct rename_args *a, char *old)
{
	struct place from = { .dir = -1 }, to = { .dir = -1 };
	AUTO_CLOSE int oldbase = -1, newbase = -1;
	pid_t pid = (pid_t)n->u.req->pid;
	struct guise caller;
	char new[PATH_MAX];
	ssize_t len = peek_string(pid, a->new, new, sizeof(new));
	int r;

	if (len < 0)
		return (int)len;
	if (!same_root(pid))
		return -EXDEV;
	oldbase = open_base(pid, a->olddir, old);
	newbase = open_base(pid, a->newdir, new);
	if (oldbase < 0 || newbase < 0)
		return oldbase < 0 ? oldbase : newbase;
	r = unotify_valid(&n->u, n->u.req->id) ? guise_take(&caller, pid) : -ENOENT;
	if (r == 0)
		r = find_place(oldbase, old, &from);
	if (r == 0)
		r = find_place(newbase, new, &to);
	if (r < 0)
		return r;
	if (syscall(SYS_renameat2, from.dir, from.name, to.dir, to.name, a->flags) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	if (a->flags == RENAME_EXCHANGE)
		return movedir_exchange(from.dir, from.name, to.dir, to.name, &caller);
	if (a->flags & ~(unsigned)RENAME_NOREPLACE)
		return -EXDEV;
	if (a->flags & RENAME_NOREPLACE &&
	    faccessat(to.dir, to.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return movedir(from.dir, from.name, to.dir, to.name, &caller);
}

/* Is it one that the kernel may refuse? Else it is let through. */
static bool concerns_directory(pid_t pid, const struct rename_args *a, const char *old)
{
	char new[PATH_MAX];

	if (is_directory(pid, a->olddir, old))
		return true;
	return a->flags == RENAME_EXCHANGE &&
	       peek_string(pid, a->new, new, sizeof(new)) >= 0 &&
	       is_directory(pid, a->newdir, new);
}

static int serve_rename(struct notify *n)
{
	const struct seccomp_notif *req = n->u.req;
	struct rename_args a;
	char old[PATH_MAX];
	pid_t child;
	int r;

	decode(&req->data, &a);
	if (peek_string((pid_t)req->pid, a.old, old, sizeof(old)) < 0 ||
	    !concerns_directory((pid_t)req->pid, &a, old))
		return unotify_answer(&n->u, req->id, 0, true);
	child = fork();
	if (child < 0)
		return unotify_answer(&n->u, req->id, -ENOMEM, false);
	if (child > 0) {
		n->renames++;
		helpers_add(&n->helpers, child);
		return 0;
	}
	r = rename_for(n, &a, old);
	log_debug("rename of directory %s: %s", old, r < 0 ? strerror(-r) : "done");
	unotify_answer(&n->u, req->id, r, false);
	_exit(0);
}

int notify_serve(struct notify *n)
{
	int r = unotify_recv(&n->u), nr;

	if (r <= 0)
		return r;
	nr = n->u.req->data.nr;
	if (nr == SYS_execve || nr == SYS_execveat) {
		gate_request(n->gate);
		return 0;
	}
	r = serve_rename(n);
	return r == -ENOENT ? 0 : r;
}
