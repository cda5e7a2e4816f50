/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: probe NAME[=ARGUMENT]...
 *
 * Tries forbidden things and prints one line for each: "NAME: ok", "NAME: denied(ERRNO)",
 * "NAME: killed(SIGNAL)", or an answer of its own. Static, so that it depends on nothing
 * that a sandbox could have arranged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static const char *current;

const char *probe_errno_name(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {
		{ EPERM, "EPERM" },
		{ ENOENT, "ENOENT" },
		{ ESRCH, "ESRCH" },
		{ EIO, "EIO" },
		{ ENXIO, "ENXIO" },
		{ EBADF, "EBADF" },
		{ EACCES, "EACCES" },
		{ EFAULT, "EFAULT" },
		{ EBUSY, "EBUSY" },
		{ EEXIST, "EEXIST" },
		{ EXDEV, "EXDEV" },
		{ ENODEV, "ENODEV" },
		{ ENOTDIR, "ENOTDIR" },
		{ EINVAL, "EINVAL" },
		{ ENOTTY, "ENOTTY" },
		{ ENOSPC, "ENOSPC" },
		{ EROFS, "EROFS" },
		{ ENOSYS, "ENOSYS" },
		{ ELOOP, "ELOOP" },
		{ ENOKEY, "ENOKEY" },
		{ ESTALE, "ESTALE" },
		{ EOVERFLOW, "EOVERFLOW" },
		{ EOPNOTSUPP, "EOPNOTSUPP" },
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ EAFNOSUPPORT, "EAFNOSUPPORT" },
		{ EPROTONOSUPPORT, "EPROTONOSUPPORT" },
		{ EUSERS, "EUSERS" },
		{ ENOEXEC, "ENOEXEC" },
		{ ENAMETOOLONG, "ENAMETOOLONG" },
		{ ENOTEMPTY, "ENOTEMPTY" },
		{ EISDIR, "EISDIR" },
		{ EINTR, "EINTR" },
		{ EMLINK, "EMLINK" },
	};
	static char number[16];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].err == err)
			return names[i].name;
	snprintf(number, sizeof(number), "%d", err);
	return number;
}

void probe_say(const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", current);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

int probe_rc(long rc)
{
	return rc < 0 ? -errno : 0;
}

int probe_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = probe_rc(write(fd, text, strlen(text)));
	close(fd);
	return rc;
}

static const struct probe *find(const char *name)
{
	static const struct probe *const tables[] = { probes_file, probes_proc,
						      probes_ns,   probes_kernel,
						      probes_exec, probes_race,
						      probes_paths };
	const struct probe *p;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (p = tables[i]; p->name; p++)
			if (strcmp(p->name, name) == 0)
				return p;
	return NULL;
}

static void try(const struct probe *p, const char *arg)
{
	pid_t pid;
	int rc, status;

	current = p->name;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		rc = p->try(arg);
		if (rc == 0)
			probe_say("ok");
		else if (rc < 0)
			probe_say("denied(%s)", probe_errno_name(-rc));
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		probe_say("could not fork");
	else if (WIFSIGNALED(status))
		probe_say("killed(%d)", WTERMSIG(status));
}

int main(int argc, char **argv)
{
	const struct probe *p;
	char *arg;
	int i;

	if (argc > 2 && strcmp(argv[1], "victim") == 0)
		return probe_victim(argv);
	for (i = 1; i < argc; i++) {
		arg = strchr(argv[i], '=');
		if (arg)
			*arg++ = '\0';
		p = find(argv[i]);
		if (!p) {
			fprintf(stderr, "probe: what is %s?\n", argv[i]);
			return 2;
		}
		try(p, arg ? arg : "");
	}
	return 0;
}
