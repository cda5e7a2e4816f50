/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that reach the whole machine, or around a filter. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* A key that the host put into its session keyring. */
static int try_keyring(const char *description)
{
	return probe_rc(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING,
				"user", description, 0));
}

static int try_key_by_id(const char *id)
{
	char data[64];

	return probe_rc(syscall(SYS_keyctl, KEYCTL_READ, atol(id), data, sizeof(data)));
}

static int try_add_key(const char *arg)
{
	(void)arg;
	return probe_rc(
		syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_SESSION_KEYRING));
}

static int try_io_uring(const char *arg)
{
	char params[256] = { 0 };

	(void)arg;
	return probe_rc(syscall(SYS_io_uring_setup, 1, params));
}

static int try_userfaultfd(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}

static int try_bpf(const char *arg)
{
	char attr[128] = { 0 };

	(void)arg;
	return probe_rc(syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, attr, sizeof(attr)));
}

static int try_perf(const char *arg)
{
	char attr[128] = { 0 };

	(void)arg;
	return probe_rc(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}

static int try_socket(const char *family)
{
	return probe_rc(socket(atoi(family), SOCK_STREAM, 0));
}

static int try_socket_raw(const char *family)
{
	return probe_rc(socket(atoi(family), SOCK_RAW, 0));
}

static int try_init_module(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_init_module, NULL, 0, ""));
}

static int try_kexec(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}

static int try_settime(const char *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &ts);
	return probe_rc(syscall(SYS_clock_settime, CLOCK_REALTIME, &ts));
}

static int try_acct(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_acct, "probe-acct"));
}

static int try_swapon(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_swapon, "/proc/self/exe", 0));
}

static int try_syslog(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_syslog, 5 /* clear */, NULL, 0));
}

static int try_sethostname(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_sethostname, "probe", 5));
}

static int try_memfd_exec(const char *arg)
{
	static char *const argv[] = { (char *)"probe", NULL };
	int self = open("/proc/self/exe", O_RDONLY), fd, status;
	char buffer[65536];
	ssize_t n;
	pid_t pid;

	(void)arg;
	fd = memfd_create("probe", 0);
	if (self < 0 || fd < 0)
		return -errno;
	while ((n = read(self, buffer, sizeof(buffer))) > 0)
		if (write(fd, buffer, (size_t)n) != n)
			return -errno;
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
		_exit(errno);
	}
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
}

#ifdef __x86_64__
/* System calls in the 32-bit manner: a filter must not be blind to them. */
static int int80(long nr, long a, long b, long c)
{
	long rc;

	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return rc < 0 ? (int)rc : 0;
}

static int try_int80_io_uring(const char *arg)
{
	void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	(void)arg;
	return int80(425, 1, (long)low, 0);
}

static int try_int80_add_key(const char *arg)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	(void)arg;
	memcpy(low, "user", 5);
	return int80(286, (long)low, (long)low, 0);
}

static int try_x32_getpid(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(0x40000000 + SYS_getpid));
}
#else
static int try_int80_io_uring(const char *arg)
{
	(void)arg;
	return -ENOSYS;
}
#define try_int80_add_key try_int80_io_uring
#define try_x32_getpid try_int80_io_uring
#endif

const struct probe probes_kernel[] = {
	{ "keyring", try_keyring },
	{ "key-by-id", try_key_by_id },
	{ "add-key", try_add_key },
	{ "io-uring", try_io_uring },
	{ "userfaultfd", try_userfaultfd },
	{ "bpf", try_bpf },
	{ "perf", try_perf },
	{ "socket", try_socket },
	{ "socket-raw", try_socket_raw },
	{ "init-module", try_init_module },
	{ "kexec", try_kexec },
	{ "settime", try_settime },
	{ "acct", try_acct },
	{ "swapon", try_swapon },
	{ "syslog-clear", try_syslog },
	{ "sethostname", try_sethostname },
	{ "memfd-exec", try_memfd_exec },
	{ "int80-io-uring", try_int80_io_uring },
	{ "int80-add-key", try_int80_add_key },
	{ "x32-getpid", try_x32_getpid },
	{ NULL, NULL },
};
