/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "gate/image_cache.h"
#include "gate/programs.h"
#include "sys/callpath.h"
#include "sys/fs.h"
#include "sys/procmem.h"

void image_free(struct image *i)
{
	free(i->exe);
	free(i->cwd);
	free(i->args);
	*i = (struct image){ 0 };
}

/*
 * The name of something of @pid in /proc. A task that we hold or have stopped keeps its pid.
 * If it is killed nevertheless, what we see of another process has no effect: the answer is
 * refused.
 */
struct proc_name {
	char s[64];
};

static struct proc_name in_proc(pid_t pid, const char *what)
{
	struct proc_name n;

	snprintf(n.s, sizeof(n.s), "/proc/%d/%s", (int)pid, what);
	return n;
}

/* The arguments of execve (three) or execveat (five). */
struct call {
	int dirfd;
	uint64_t path, argv;
	unsigned flags;
};

static void decode(const struct seccomp_data *d, struct call *c)
{
	if (d->nr == SYS_execve)
		*c = (struct call){ AT_FDCWD, d->args[0], d->args[1], 0 };
	else
		*c = (struct call){ (int)d->args[0], d->args[1], d->args[2],
				    (unsigned)d->args[4] };
}

/* Turns CAP_DAC_OVERRIDE off or on: with it we would see more than the caller. */
static void set_override(bool on)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];
	const uint32_t bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;

	if (syscall(SYS_capget, &h, d) < 0)
		return;
	d[0].effective = on ? d[0].effective | (d[0].permitted & bits)
			    : d[0].effective & ~bits;
	syscall(SYS_capset, &h, d);
}

/* Does the path surely not exist, seen with the caller's rights? */
static bool surely_absent(const struct image_place *place, pid_t pid, struct callpath *p)
{
	struct stat st;
	bool absent;

	if (place->root) /* another user inside sees less than we do: the kernel will tell */
		return stat(in_proc(pid, "").s, &st) == 0 && st.st_uid == 0 &&
		       callpath_is_absent(p);
	if (callpath_hold(p) < 0)
		return false;
	set_override(false);
	absent = callpath_is_absent(p);
	set_override(true);
	return absent;
}

/* Opens the program with O_PATH; -EAGAIN if only the kernel can find it. */
static int open_program(const struct image_place *place, pid_t pid, const struct call *c,
			const char *path)
{
	struct callpath p;
	int fd;

	if (!*path && !(c->flags & AT_EMPTY_PATH))
		return -ENOENT;
	fd = callpath_start(&p, pid, c->dirfd, path);
	if (fd == 0) {
		fd = callpath_open(&p, c->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
		if (fd < 0 && (fd != -ENOENT || !surely_absent(place, pid, &p)))
			fd = -EAGAIN;
	} else {
		fd = -EAGAIN;
	}
	callpath_end(&p);
	return fd;
}

static char *read_link(int dir, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text));

	return n <= 0 || n == sizeof(text) ? NULL : xstrndup(text, (size_t)n);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

/* Looks at the file; @fd: O_PATH; i->exe and i->st are known. */
static void look_at_file(const struct image_place *place, int fd, struct image *i)
{
	static const char gone[] = " (deleted)";
	size_t n = strlen(i->exe);

	if (i->st.st_nlink == 0) {
		i->flags |= EXE_DELETED;
		if (strncmp(i->exe, "/memfd:", 7) == 0)
			i->flags |= EXE_MEMFD;
		if (n > sizeof(gone) && strcmp(i->exe + n - sizeof(gone) + 1, gone) == 0)
			i->exe[n - sizeof(gone) + 1] = '\0';
	}
	if (is_later(&i->st.st_ctim, &place->since)) {
		i->flags |= EXE_BUILT_HERE;
		i->known_as = programs_find(fd, &i->st);
	}
	if (programs_loader(i->known_as ? i->known_as : i->exe))
		i->flags |= EXE_LOADER;
}

static void unknown(struct image *i)
{
	free(i->exe);
	i->exe = NULL;
	i->flags |= EXE_UNKNOWN;
}

static void look_at(const struct image_place *place, int fd, struct image *i)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", fd);
	i->exe = read_link(place->fds, name);
	if (!i->exe || *i->exe != '/' || fstat(fd, &i->st) < 0 || !S_ISREG(i->st.st_mode))
		unknown(i);
	else
		look_at_file(place, fd, i);
}

/* Is it an absolute path, without flags, that means the same for every caller? */
static bool may_recall(const struct call *c, const char *path)
{
	return *path == '/' && !c->flags && strncmp(path, "/proc/", 6) != 0 &&
	       strncmp(path, "/dev/", 5) != 0;
}

/* Resolves the path. 0 or the -errno with which the call is certain to fail. */
static int resolve(const struct image_place *place, pid_t pid, const struct call *c,
		   const char *path, struct image *out)
{
	AUTO_CLOSE int fd = open_program(place, pid, c, path);

	if (fd < 0 && fd != -EAGAIN)
		return fd;
	if (fd < 0)
		unknown(out);
	else
		look_at(place, fd, out);
	/* No user may execute it, root and ACLs included: its name does not matter then. */
	if (out->exe && !(out->st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))) {
		image_free(out);
		return -EACCES;
	}
	if (out->exe && may_recall(c, path))
		image_cache_put(place->recall, path, out);
	return 0;
}

int image_asked(const struct image_place *place, const struct seccomp_notif *req,
		struct image *out)
{
	pid_t pid = (pid_t)req->pid;
	struct procmem_exec seen;
	struct call c;
	ssize_t n;
	int r;

	*out = (struct image){ 0 };
	decode(&req->data, &c);
	n = procmem_exec(pid, c.path, c.argv, &seen);
	if (n < 0)
		return n == -ENAMETOOLONG || n == -EFAULT ? (int)n : -EPERM;
	if (!may_recall(&c, seen.path) ||
	    !image_cache_get(place->recall, seen.path, out)) {
		r = resolve(place, pid, &c, seen.path, out);
		if (r < 0)
			return r;
	}
	out->args = procmem_args(pid, c.argv, &seen, &out->args_len, &out->argc);
	if (!out->args)
		return errno == EFAULT || errno == E2BIG ? -errno : -EPERM;
	return 0;
}

const char *image_cwd(struct image *i, pid_t pid)
{
	if (!i->placed)
		i->cwd = read_link(AT_FDCWD, in_proc(pid, "cwd").s);
	i->placed = true;
	return i->cwd;
}

int image_again(const struct image_place *place, const struct seccomp_notif *req,
		struct image *i)
{
	image_cache_drop(place->recall, i->recalled);
	image_free(i);
	return image_asked(place, req, i);
}

static int read_args(pid_t pid, struct image *out)
{
	AUTO_CLOSE int fd = open(in_proc(pid, "cmdline").s, O_RDONLY | O_CLOEXEC);
	AUTO_BUF struct buf b = BUF_INIT;
	char some[8192];
	ssize_t n;

	if (fd < 0)
		return -errno;
	do { /* less than there is room for: it is all */
		n = read(fd, some, sizeof(some));
		buf_add(&b, some, n > 0 ? (size_t)n : 0);
		if (b.len > PROCMEM_ARGS_MAX)
			return -E2BIG;
	} while (n == sizeof(some));
	if (n < 0 || !b.len || b.data[b.len - 1])
		return n < 0 ? -errno : -EFAULT;
	for (size_t i = 0; i < b.len; i++)
		out->argc += !b.data[i];
	out->args_len = b.len;
	out->args = buf_take(&b);
	return 0;
}

/*
 * Reads the arguments from the stack that the kernel has made for the new program: a count,
 * that many pointers, a null, the pointers of the environment; behind them, at a random
 * distance of up to 8 KiB, the bytes of the arguments, which end where the environment's
 * begin. False: the stack looks otherwise, ask /proc.
 */
static bool read_stack(pid_t pid, uint64_t sp, struct image *out)
{
	uint64_t v[1536], start, end;
	const char *bytes = (const char *)v;
	ssize_t got = procmem_bytes(pid, sp, v, sizeof(v));
	size_t n = got < 0 ? 0 : (size_t)got, len, i;

	if (n < 3 * sizeof(*v) || !v[0] || v[0] > n / sizeof(*v) - 3 || v[v[0] + 1])
		return false;
	start = v[1];
	end = v[v[0] + 2];
	if (start < sp || end <= start || end - sp > n)
		return false;
	len = (size_t)(end - start);
	bytes += start - sp;
	if (bytes[len - 1])
		return false;
	for (i = 0; i < len; i++)
		out->argc += !bytes[i];
	if (out->argc != v[0]) {
		out->argc = 0;
		return false;
	}
	out->args = memcpy(xmalloc(len), bytes, len);
	out->args_len = len;
	return true;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/*
 * Is it the file that was asked for, unchanged? Then we know the rest. A new name would have
 * moved its ctime.
 */
static bool is_as_asked(pid_t pid, const struct image *asked, struct image *out)
{
	if (!asked->exe || stat(in_proc(pid, "exe").s, &out->st) < 0 ||
	    out->st.st_dev != asked->st.st_dev || out->st.st_ino != asked->st.st_ino ||
	    !out->st.st_nlink || !same_time(&out->st.st_ctim, &asked->st.st_ctim))
		return false;
	out->exe = xstrdup(asked->exe);
	out->flags = asked->flags;
	out->known_as = asked->known_as;
	return true;
}

int image_committed(const struct image_place *place, pid_t pid, uint64_t sp,
		    const struct image *asked, struct image *out)
{
	AUTO_CLOSE int fd = -1;
	int r;

	*out = (struct image){ 0 };
	r = sp && read_stack(pid, sp, out) ? 0 : read_args(pid, out);
	if (r < 0)
		return r;
	image_cwd(out, pid);
	if (is_as_asked(pid, asked, out))
		return 0;
	image_cache_drop(place->recall, asked->recalled);
	fd = open(in_proc(pid, "exe").s, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	look_at(place, fd, out);
	return out->exe ? 0 : -ENOENT;
}

bool image_is_program(const struct image *i)
{
#if defined(__x86_64__)
	const unsigned machine = EM_X86_64;
#elif defined(__aarch64__)
	const unsigned machine = EM_AARCH64;
#else
	const unsigned machine = EM_NONE;
#endif
	AUTO_CLOSE int fd = fs_open_view(i->exe, O_RDONLY, false);
	struct stat st;
	Elf64_Ehdr h;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == i->st.st_dev &&
	       st.st_ino == i->st.st_ino && read(fd, &h, sizeof(h)) == sizeof(h) &&
	       memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 &&
	       h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_machine == machine &&
	       machine != EM_NONE;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool image_same(const struct image *asked, const struct image *now)
{
	return asked->flags == now->flags && same_text(asked->exe, now->exe) &&
	       asked->exe && asked->st.st_dev == now->st.st_dev &&
	       asked->st.st_ino == now->st.st_ino &&
	       same_text(asked->known_as, now->known_as) &&
	       (!asked->placed || same_text(asked->cwd, now->cwd)) &&
	       asked->args_len == now->args_len &&
	       memcmp(asked->args, now->args, asked->args_len) == 0;
}

void image_facts(const struct image *i, struct exec_facts *f, const char ***argv)
{
	const char *p = i->args;

	*argv = xcalloc(i->argc + 1, sizeof(**argv));
	for (size_t k = 0; k < i->argc; k++, p += strlen(p) + 1)
		(*argv)[k] = p;
	*f = (struct exec_facts){ .exe = i->exe,
				  .known_as = i->known_as,
				  .flags = i->flags,
				  .argv = *argv,
				  .argc = i->argc,
				  .cwd = i->cwd };
}

static bool read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	AUTO_CLOSE int fd = open(in_proc(pid, file).s, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

pid_t image_tracer(pid_t tid)
{
	static const char key[] = "\nTracerPid:\t";
	char text[4096];
	const char *at;

	if (!read_proc(tid, "status", text, sizeof(text)))
		return 0;
	at = strstr(text, key);
	return at ? (pid_t)atoi(at + sizeof(key) - 1) : 0;
}

pid_t image_parent(pid_t pid)
{
	char text[512];
	const char *at;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return 0;
	/* The name before it may hold anything, parentheses too. */
	at = strrchr(text, ')');
	return at && strlen(at) > 4 ? (pid_t)atoi(at + 4) : 0;
}
