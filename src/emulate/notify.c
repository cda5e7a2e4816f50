/* SPDX-License-Identifier: Apache-2.0 */
#include "emulate/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "emulate/caller.h"
#include "emulate/movedir.h"
#include "sys/fsuid.h"
#include "sys/procmem.h"

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
static const struct sock_filter filter_pinned[] = {
#include "filter_pinned.inc"
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

int notify_pin(void)
{
	struct sock_fprog prog = {
		.len = ARRAY_SIZE(filter_pinned),
		.filter = (struct sock_filter *)(uintptr_t)filter_pinned
	};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
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

/* The result of a helper if the kernel has to answer the call. */
enum { LEAVE = 1 };

/* One helper at a time in a mount: two must not empty the same directory. */
static int wait_for_turn(const struct notify *n, uint64_t mount)
{
	struct flock turn = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)(mount & INT32_MAX),
			      .l_len = 1 };
	int r;

	do /* let go by the kernel, whatever becomes of us */
		r = fcntl(n->turn, F_SETLKW, &turn);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Tries what the kernel can do, then what it cannot. */
static int rename_places(const struct notify *n, const struct caller_place *from,
			 const struct caller_place *to, unsigned flags,
			 const struct fsuid *caller)
{
	int r;

	if (renameat2(from->dir, from->name, to->dir, to->name, flags) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	r = wait_for_turn(n, from->mount);
	if (r < 0)
		return r;
	if (!unotify_valid(&n->u, n->u.req->id))
		return -ENOENT;
	/* The helper before may have moved it away. */
	if (renameat2(from->dir, from->name, to->dir, to->name, flags) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	if (flags == RENAME_EXCHANGE)
		return movedir_exchange(from->dir, from->name, to->dir, to->name, caller);
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EXDEV;
	if (flags & RENAME_NOREPLACE &&
	    faccessat(to->dir, to->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return movedir(from->dir, from->name, to->dir, to->name, caller);
}

/* Does the path end in a slash? Then it can only be a directory. */
static bool has_slash(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

static bool is_directory(const struct caller_place *p)
{
	struct stat st;

	return fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/*
 * Resolves both names: first with rights over the caller, then with no more than the caller's
 * own.
 */
static int find_places(const struct notify *n, const struct rename_args *a,
		       const char *old, const char *new, struct caller_place *from,
		       struct caller_place *to, struct fsuid *caller)
{
	pid_t pid = (pid_t)n->u.req->pid;

	if (caller_start(from, &n->mounts, pid, a->olddir, old) < 0 ||
	    caller_start(to, &n->mounts, pid, a->newdir, new) < 0)
		return LEAVE;
	if (!unotify_valid(&n->u, n->u.req->id))
		return -ENOENT;
	if (fsuid_take(caller, pid, viewmounts_users(&n->mounts, pid)) < 0)
		return -EPERM;
	if (caller_find(from, &n->mounts) < 0 || caller_find(to, &n->mounts) < 0 ||
	    from->mount != to->mount)
		return LEAVE;
	if (a->flags != RENAME_EXCHANGE)
		return is_directory(from) ? 0 : LEAVE;
	if (!is_directory(from) && (has_slash(old) || !is_directory(to)))
		return LEAVE;
	return has_slash(new) && !is_directory(to) ? LEAVE : 0;
}

/* Carries out the rename for the caller; runs in a child. */
static int rename_for(const struct notify *n, const struct rename_args *a,
		      const char *old)
{
	struct caller_place from = { .path = CALLPATH_NONE, .dir = -1 }, to = from;
	struct fsuid caller;
	char new[PATH_MAX];
	int r;

	if (procmem_string((pid_t)n->u.req->pid, a->new, new, sizeof(new)) < 0)
		return LEAVE;
	r = find_places(n, a, old, new, &from, &to, &caller);
	if (r == 0)
		r = rename_places(n, &from, &to, a->flags, &caller);
	caller_end(&from);
	caller_end(&to);
	return r;
}

/*
 * Can the kernel refuse this rename with EXDEV, because a directory is renamed? Other renames
 * are let through.
 */
static bool concerns_directory(const struct notify *n, const struct rename_args *a,
			       const char *old)
{
	pid_t pid = (pid_t)n->u.req->pid;
	char new[PATH_MAX];

	if (caller_is_directory(&n->mounts, pid, a->olddir, old))
		return true;
	return a->flags == RENAME_EXCHANGE &&
	       procmem_string(pid, a->new, new, sizeof(new)) >= 0 &&
	       caller_is_directory(&n->mounts, pid, a->newdir, new);
}

/* A move needs two descriptors for each level of a tree. */
static void allow_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int serve_rename(struct notify *n)
{
	const struct seccomp_notif *req = n->u.req;
	struct rename_args a;
	char old[PATH_MAX];
	pid_t child;
	int r;

	decode(&req->data, &a);
	if (procmem_string((pid_t)req->pid, a.old, old, sizeof(old)) < 0 ||
	    !concerns_directory(n, &a, old))
		return unotify_answer(&n->u, req->id, 0, true);
	child = fork();
	if (child < 0)
		return unotify_answer(&n->u, req->id, -ENOMEM, false);
	if (child > 0) {
		n->renames++;
		helpers_add(&n->helpers, child, req->id);
		return 0;
	}
	allow_descriptors();
	r = rename_for(n, &a, old);
	log_debug("rename of directory %s: %s", old,
		  r < 0	       ? strerror(-r)
		  : r == LEAVE ? "left to the kernel"
			       : "done");
	unotify_answer(&n->u, req->id, r == LEAVE ? 0 : r, r == LEAVE);
	_exit(0);
}

void notify_reaped(struct notify *n, pid_t pid, int status)
{
	uint64_t call;

	if (!helpers_has(&n->helpers, pid))
		return;
	if (WIFSTOPPED(status)) {
		/* A caller waits for the helper, and other helpers may wait for their turn. */
		kill(pid, SIGCONT);
		return;
	}
	call = helpers_remove(&n->helpers, pid);
	/* The helper was killed: no other process will answer its caller. */
	if (status)
		unotify_answer(&n->u, call, -EIO, false);
}

/* Is the caller git? Only its name is looked at: no process gains anything by it. */
static bool is_git(pid_t pid)
{
	char name[64], exe[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	n = readlink(name, exe, sizeof(exe) - 1);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	base = strrchr(exe, '/');
	return base && strcmp(base, "/git") == 0;
}

/* Is @path a regular file that existed before anything ran inside? */
static bool is_older(const struct notify *n, const char *path)
{
	struct stat st;

	return caller_stat((pid_t)n->u.req->pid, path, &st) && S_ISREG(st.st_mode) &&
	       (st.st_ctim.tv_sec < n->began.tv_sec ||
		(st.st_ctim.tv_sec == n->began.tv_sec &&
		 st.st_ctim.tv_nsec < n->began.tv_nsec));
}

/*
 * A new link to a file of the host gets another inode number than the first name. git compares
 * the two and gives up if they differ; if it cannot link, it copies. So git is told EXDEV.
 * Other programs do not compare, and get their link.
 */
static int serve_link(struct notify *n)
{
	const struct seccomp_notif *req = n->u.req;
	pid_t pid = (pid_t)req->pid;
	char old[PATH_MAX];
	bool refuse = is_git(pid) &&
		      procmem_string(pid, req->data.args[0], old, sizeof(old)) >= 0 &&
		      is_older(n, old);

	return unotify_answer(&n->u, req->id, refuse ? -EXDEV : 0, !refuse);
}

/*
 * prlimit(2) on another process. The pid is in a register, so the call that is let through is
 * the one that was checked. A helper that gets that pid only later then fails as if it had
 * been killed.
 */
static int serve_limits(struct notify *n)
{
	const struct seccomp_notif *req = n->u.req;
	bool ours = viewmounts_is_ours(&n->mounts, (pid_t)req->pid,
				       (pid_t)req->data.args[0]);

	return unotify_answer(&n->u, req->id, ours ? -EPERM : 0, !ours);
}

static int serve_exec(struct notify *n)
{
	gate_request(n->gate);
	return 0;
}

/* Every call that the filter holds (emulate/genfilter.c), and what answers it. */
static const struct handler {
	int nr;
	int (*serve)(struct notify *n);
} handlers[] = {
	{ SYS_execve, serve_exec },	 { SYS_execveat, serve_exec },
	{ SYS_rename, serve_rename },	 { SYS_renameat, serve_rename },
	{ SYS_renameat2, serve_rename }, { SYS_link, serve_link },
	{ SYS_prlimit64, serve_limits },
};

int notify_serve(struct notify *n)
{
	int r = unotify_recv(&n->u);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (handlers[i].nr != n->u.req->data.nr)
			continue;
		r = handlers[i].serve(n);
		return r == -ENOENT ? 0 : r;
	}
	/* The filter and the table differ: the call must not pass unseen. */
	return unotify_answer(&n->u, n->u.req->id, -ENOSYS, false);
}
