/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of the virtual machine: modules, the disk, the tests, the end. It lives in
 * the initramfs and stays PID 1: orphans of the tests are its to bury.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STAGE "/var/lib/stet-stage"

/* What the tests are comes on the second disk, as a tar file without a file system. */
static const char work[] = "mkdir -p " STAGE " && tar -C " STAGE " -xf /dev/vdb && "
			   "exec /usr/bin/python3 -B " STAGE "/tests/vm/inside.py " STAGE;

_Noreturn static void end(const char *why)
{
	if (why)
		fprintf(stderr, "init: %s: %s\n", why, strerror(errno));
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void must_mount(const char *what, const char *where, const char *type,
		       unsigned long flags)
{
	mkdir(where, 0755);
	if (mount(what, where, type, flags, NULL) < 0)
		end(where);
}

static void load_modules(void)
{
	char path[256] = "/modules/";
	const size_t at = strlen(path);
	FILE *list = fopen("/modules/list", "re");
	int fd;

	if (!list)
		end("/modules/list");
	while (fgets(path + at, (int)(sizeof(path) - at), list)) {
		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 ||
		    (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
			end(path);
		close(fd);
	}
	fclose(list);
}

static void wait_for_disk(const char *path)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (int i = 0; i < 3000 && access(path, F_OK) < 0; i++)
		nanosleep(&pause, NULL);
}

static void enter_disk(void)
{
	static const char *const kept[] = { "/dev", "/proc", "/sys" };
	char where[32];

	wait_for_disk("/dev/vda");
	must_mount("/dev/vda", "/disk", "ext4", 0);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		snprintf(where, sizeof(where), "/disk%s", kept[i]);
		must_mount(kept[i], where, NULL, MS_MOVE);
	}
	if (chdir("/disk") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 ||
	    chroot(".") < 0 || chdir("/") < 0)
		end("/disk");
}

static void begin_work(void)
{
	char *const argv[] = { "/bin/sh", "-c", (char *)work, NULL };
	char *const envp[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
			       "HOME=/root", "LANG=C.UTF-8", "TERM=dumb", NULL };

	setsid();
	execve(argv[0], argv, envp);
	end(argv[0]);
}

int main(void)
{
	pid_t tests, pid;

	must_mount("proc", "/proc", "proc", 0);
	must_mount("sysfs", "/sys", "sysfs", 0);
	must_mount("dev", "/dev", "devtmpfs", 0);
	load_modules();
	enter_disk();
	tests = fork();
	if (tests < 0)
		end("fork");
	if (tests == 0)
		begin_work();
	do
		pid = wait(NULL);
	while (pid != tests && (pid >= 0 || errno == EINTR));
	kill(-1, SIGKILL);
	end(NULL);
}
