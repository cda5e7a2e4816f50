/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to execute a program. The argument is FILE,WORD: each way executes touch(1), a copy
 * or an alias of it, with these two operands. FILE is there afterwards if it ran.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define TOUCH "/usr/bin/touch"

static char *args[4];

static void parse(const char *arg)
{
	char *copy = strdup(arg), *comma = strchr(copy, ',');

	args[0] = (char *)"touch";
	args[1] = copy;
	if (comma) {
		*comma = '\0';
		args[2] = comma + 1;
	}
}

/* What became of a child that exits with errno if its exec fails. */
static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	if (WIFSIGNALED(status)) {
		probe_say("killed(%d)", WTERMSIG(status));
		return PROBE_SAID;
	}
	return -WEXITSTATUS(status);
}

static int copy_to(const char *from, int out)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	char buffer[65536];
	ssize_t n;

	if (in < 0 || out < 0)
		return -1;
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			return -1;
	close(in);
	return n < 0 ? -1 : 0;
}

static int try_fork(const char *arg)
{
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		execv(TOUCH, args);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_vfork(const char *arg)
{
	pid_t pid;

	parse(arg);
	pid = vfork();
	if (pid == 0) {
		execv(TOUCH, args);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_spawn(const char *arg)
{
	pid_t pid;
	int r;

	parse(arg);
	r = posix_spawn(&pid, TOUCH, NULL, NULL, args, environ);
	return r ? -r : wait_for(pid);
}

/* The process' first thread waits; another one becomes the program. */
static void *exec_here(void *arg)
{
	(void)arg;
	execv(TOUCH, args);
	_exit(errno);
}

static int try_thread(const char *arg)
{
	pthread_t t;
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		if (pthread_create(&t, NULL, exec_here, NULL) != 0)
			_exit(ENOMEM);
		for (;;)
			pause();
	}
	return wait_for(pid);
}

static pthread_barrier_t all_are_there;

static void *exec_with_the_rest(void *arg)
{
	pthread_barrier_wait(&all_are_there);
	return exec_here(arg);
}

/* Several threads at once: one of them wins. */
static int try_threads(const char *arg)
{
	enum { OTHERS = 4 };
	pthread_t t;
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		/* While one of them executes something no other can be made. */
		pthread_barrier_init(&all_are_there, NULL, OTHERS + 1);
		for (int i = 0; i < OTHERS; i++)
			if (pthread_create(&t, NULL, exec_with_the_rest, NULL) != 0)
				_exit(ENOMEM);
		exec_with_the_rest(NULL);
	}
	return wait_for(pid);
}

/* Shares memory with its parent, which does not wait. */
static int exec_shared(void *arg)
{
	(void)arg;
	execv(TOUCH, args);
	return errno;
}

static int try_clone_vm(const char *arg)
{
	size_t size = 1 << 20;
	char *stack = malloc(size);

	parse(arg);
	return wait_for(clone(exec_shared, stack + size, CLONE_VM | SIGCHLD, NULL));
}

static int exec_at(int dir, const char *path, int flags)
{
	pid_t pid = fork();

	if (pid == 0) {
		syscall(SYS_execveat, dir, path, args, environ, flags);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_execveat(const char *arg)
{
	parse(arg);
	return exec_at(open("/usr", O_PATH | O_DIRECTORY), "bin/touch", 0);
}

static int try_descriptor(const char *arg)
{
	parse(arg);
	return exec_at(open(TOUCH, O_RDONLY | O_CLOEXEC), "", AT_EMPTY_PATH);
}

static int try_memfd(const char *arg)
{
	int fd = memfd_create("touch", MFD_CLOEXEC);

	parse(arg);
	if (copy_to(TOUCH, fd) < 0)
		return -errno;
	return exec_at(fd, "", AT_EMPTY_PATH);
}

static int exec_name(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execv(path, args);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_memfd_name(const char *arg)
{
	int fd = memfd_create("touch", 0);
	char path[64];

	parse(arg);
	if (copy_to(TOUCH, fd) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return exec_name(path);
}

static int make_copy(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	int r = copy_to(TOUCH, fd);

	close(fd);
	return r;
}

static int try_copy(const char *arg)
{
	parse(arg);
	return make_copy("innocent") < 0 ? -errno : exec_name("./innocent");
}

static int try_deleted(const char *arg)
{
	int fd;

	parse(arg);
	if (make_copy("gone") < 0)
		return -errno;
	fd = open("gone", O_RDONLY | O_CLOEXEC);
	if (unlink("gone") < 0)
		return -errno;
	return exec_at(fd, "", AT_EMPTY_PATH);
}

static int try_symlink(const char *arg)
{
	parse(arg);
	if (symlink(TOUCH, "alias") < 0 && errno != EEXIST)
		return -errno;
	return exec_name("alias");
}

static int try_proc_root(const char *arg)
{
	parse(arg);
	return exec_name("/proc/self/root" TOUCH);
}

/* Through the loader: the kernel sees another program. */
static int try_loader(const char *arg)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2",
					       "/lib/ld-linux-aarch64.so.1" };
	char *more[5] = { (char *)"ld.so", (char *)TOUCH };
	pid_t pid;
	size_t i;

	parse(arg);
	more[2] = args[1];
	more[3] = args[2];
	for (i = 0; access(loaders[i], X_OK) < 0; i++)
		if (i == 1)
			return -ENOENT;
	pid = fork();
	if (pid == 0) {
		execv(loaders[i], more);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_many_args(const char *arg)
{
	size_t n = 20000, i;
	char **many = calloc(n + 1, sizeof(*many));
	pid_t pid;

	parse(arg);
	for (i = 0; i < n; i++)
		many[i] = args[1];
	many[0] = args[0];
	many[n - 1] = args[2];
	pid = fork();
	if (pid == 0) {
		execv(TOUCH, many);
		_exit(errno);
	}
	return wait_for(pid);
}

static int try_long_arg(const char *arg)
{
	size_t n = 100000;
	char *text = malloc(n);
	pid_t pid;

	parse(arg);
	memset(text, 'x', n);
	text[n - 1] = '\0';
	pid = fork();
	if (pid == 0) {
		/* An option that it takes: --time=… would not do. */
		char *more[] = { args[0], args[1], args[2], (char *)"-d", text, NULL };

		execv("/bin/true", more);
		_exit(errno);
	}
	return wait_for(pid);
}

/* Errors that are the kernel's to give, whoever gives them. */
static int try_errors(const char *arg)
{
	static const struct {
		const char *path;
		int err;
	} cases[] = {
		{ "/usr/bin/no-such-program", ENOENT },
		{ "/no-such-directory/touch", ENOENT },
		{ "no/such/thing", ENOENT },
		{ "", ENOENT },
		{ "/usr/bin/touch/x", ENOTDIR },
		{ "/usr/bin/touch/", ENOTDIR },
		{ "/usr/bin", EACCES },
		{ "plain", EACCES },
		{ "loop", ELOOP },
		{ "dangling", ENOENT },
		{ "script", ENOEXEC },
		{ "badshebang", ENOENT },
		{ "/proc/self/fd/999", ENOENT },
		{ "locked/prog", EACCES },
	};
	size_t i;
	int n = 0;

	parse(arg);
	close(open("plain", O_WRONLY | O_CREAT, 0644));
	symlink("loop", "loop");
	symlink("nothing-there", "dangling");
	close(open("script", O_WRONLY | O_CREAT, 0755));
	i = (size_t)open("badshebang", O_WRONLY | O_CREAT, 0755);
	write((int)i, "#!/no/such/interpreter\n", 23);
	close((int)i);
	mkdir("locked", 0700);
	make_copy("locked/prog");
	chmod("locked/prog", 0644);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = exec_name(cases[i].path);

		if (r != -cases[i].err) {
			printf("%s: %d, not %d\n", cases[i].path, -r, cases[i].err);
			n++;
		}
	}
	return n ? -EINVAL : 0;
}

static int try_bad_pointers(const char *arg)
{
	pid_t pid;
	int r;

	(void)arg;
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execve, 8, args, environ);
		_exit(errno);
	}
	r = wait_for(pid);
	if (r != -EFAULT)
		return -EINVAL;
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execve, "/bin/true", 8, environ);
		_exit(errno);
	}
	r = wait_for(pid);
	if (r != -EFAULT)
		return -EINVAL;
	pid = fork();
	if (pid == 0) { /* no arguments at all: the kernel makes an empty one */
		syscall(SYS_execve, "/bin/true", NULL, environ);
		_exit(errno);
	}
	return wait_for(pid);
}

/* A closed door, then the next: as execvp does with a script without an interpreter. */
static int try_after_failure(const char *arg)
{
	pid_t pid;

	parse(arg);
	close(open("empty", O_WRONLY | O_CREAT, 0755));
	pid = fork();
	if (pid == 0) {
		execv("./empty", args);
		execv("./empty", args);
		execv(TOUCH, args);
		_exit(errno);
	}
	return wait_for(pid);
}

/* Nothing of a failed exec may stick: stopped and continued as anybody else. */
static int try_stop_after_failure(const char *arg)
{
	int status;
	pid_t pid;

	(void)arg;
	close(open("empty", O_WRONLY | O_CREAT, 0755));
	pid = fork();
	if (pid == 0) {
		execv("./empty", args);
		raise(SIGSTOP);
		_exit(7);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return -EINVAL;
	kill(pid, SIGCONT);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 7)
		return -EINVAL;
	return 0;
}

/* Already traced by us when it executes: nobody else can look at it. */
static int try_traced(const char *arg)
{
	int status;
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(TOUCH, args);
		_exit(errno);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		ptrace(PTRACE_CONT, pid, 0,
		       (long)(sig == SIGTRAP || sig == SIGSTOP ? 0 : sig));
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Its standard error is a pipe that is full and that nobody reads. */
static int try_full_pipe(const char *arg)
{
	static char page[4096];
	int fds[2], flags;
	pid_t pid;

	parse(arg);
	if (pipe(fds) < 0)
		return -errno;
	flags = fcntl(fds[1], F_GETFL);
	fcntl(fds[1], F_SETFL, flags | O_NONBLOCK);
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	fcntl(fds[1], F_SETFL, flags);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 2);
		execv(TOUCH, args);
		_exit(errno);
	}
	return wait_for(pid);
}

#ifdef __x86_64__
static int try_int80(const char *arg)
{
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
		long rc;

		strcpy(low, TOUCH);
		__asm__ volatile("int $0x80"
				 : "=a"(rc)
				 : "a"(11L), "b"(low), "c"(0L), "d"(0L)
				 : "memory", "r8", "r9", "r10", "r11");
		_exit((int)-rc);
	}
	return wait_for(pid);
}

static int try_x32(const char *arg)
{
	pid_t pid;

	parse(arg);
	pid = fork();
	if (pid == 0) {
		syscall(0x40000000 + 520, TOUCH, args, environ);
		_exit(errno);
	}
	return wait_for(pid);
}
#else
static int try_int80(const char *arg)
{
	(void)arg;
	return -ENOSYS;
}
#define try_x32 try_int80
#endif

const struct probe probes_exec[] = {
	{ "exec-fork", try_fork },
	{ "exec-vfork", try_vfork },
	{ "exec-spawn", try_spawn },
	{ "exec-thread", try_thread },
	{ "exec-threads", try_threads },
	{ "exec-clone-vm", try_clone_vm },
	{ "exec-at", try_execveat },
	{ "exec-descriptor", try_descriptor },
	{ "exec-memfd", try_memfd },
	{ "exec-memfd-name", try_memfd_name },
	{ "exec-copy", try_copy },
	{ "exec-deleted", try_deleted },
	{ "exec-symlink", try_symlink },
	{ "exec-proc-root", try_proc_root },
	{ "exec-loader", try_loader },
	{ "exec-many-args", try_many_args },
	{ "exec-long-arg", try_long_arg },
	{ "exec-errors", try_errors },
	{ "exec-bad-pointers", try_bad_pointers },
	{ "exec-after-failure", try_after_failure },
	{ "exec-stop-after-failure", try_stop_after_failure },
	{ "exec-traced", try_traced },
	{ "exec-full-pipe", try_full_pipe },
	{ "exec-int80", try_int80 },
	{ "exec-x32", try_x32 },
	{ NULL, NULL },
};
