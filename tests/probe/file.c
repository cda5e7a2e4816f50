/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a file or directory given by its path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

static int try_write(const char *path)
{
	return probe_write_file(path, "PROBE");
}

static int try_append(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND), rc;

	if (fd < 0)
		return -errno;
	rc = probe_rc(write(fd, "PROBE", 5));
	close(fd);
	return rc;
}

static int try_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_unlink(const char *path)
{
	return probe_rc(unlink(path));
}

static int try_rmdir(const char *path)
{
	return probe_rc(rmdir(path));
}

static int try_mkdir(const char *path)
{
	return probe_rc(mkdir(path, 0755));
}

static int try_rename(const char *path)
{
	char to[4096];

	snprintf(to, sizeof(to), "%s.renamed", path);
	return probe_rc(rename(path, to));
}

static int try_link(const char *path)
{
	char to[4096];

	snprintf(to, sizeof(to), "%s.linked", path);
	return probe_rc(link(path, to));
}

static int try_chmod(const char *path)
{
	return probe_rc(chmod(path, 0777));
}

static int try_chown(const char *path)
{
	return probe_rc(chown(path, 12345, 12345));
}

static int try_truncate(const char *path)
{
	return probe_rc(truncate(path, 0));
}

static int try_utimes(const char *path)
{
	static const struct timespec ts[2] = { { 1, 1 }, { 1, 1 } };

	return probe_rc(utimensat(AT_FDCWD, path, ts, 0));
}

static int try_setxattr(const char *path)
{
	return probe_rc(setxattr(path, "user.probe", "1", 1, 0));
}

static int try_mmap_write(const char *path)
{
	int fd = open(path, O_RDWR);
	char *p;

	if (fd < 0)
		return -errno;
	p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	p[0] = 'P';
	return probe_rc(msync(p, 1, MS_SYNC));
}

/* A descriptor opened for reading must not become one for writing by mprotect. */
static int try_mmap_upgrade(const char *path)
{
	int fd = open(path, O_RDONLY);
	char *p;

	if (fd < 0)
		return -errno;
	p = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	if (mprotect(p, 1, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	p[0] = 'P';
	return 0;
}

static int try_fallocate(const char *path)
{
	int fd = open(path, O_RDWR), rc;

	if (fd < 0)
		return -errno;
	rc = probe_rc(fallocate(fd, 0, 0, 65536));
	close(fd);
	return rc;
}

/* Through a symbolic link of our own. */
static int try_symlink_write(const char *path)
{
	unlink("probe-link");
	if (symlink(path, "probe-link") < 0)
		return -errno;
	return probe_write_file("probe-link", "PROBE");
}

/* Through a read-only descriptor reopened for writing. */
static int try_reopen_write(const char *path)
{
	char name[64];
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return probe_write_file(name, "PROBE");
}

static int try_open_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	ssize_t n;
	char c;

	if (fd < 0)
		return -errno;
	n = read(fd, &c, 1);
	if (n != 0)
		return probe_rc(n);
	probe_say("empty");
	return PROBE_SAID;
}

/* Opens only: for things where a byte written could do harm. */
static int try_open_write(const char *path)
{
	return probe_rc(open(path, O_WRONLY | O_NONBLOCK));
}

static int try_stat(const char *path)
{
	struct stat st;

	return probe_rc(lstat(path, &st));
}

static int try_exec(const char *path)
{
	/* Only whether the kernel would load it counts. */
	execl(path, path, (char *)NULL);
	return -errno;
}

static int try_mknod_block(const char *arg)
{
	unsigned major = 0, minor = 0;

	if (sscanf(arg, "%u:%u", &major, &minor) != 2)
		return -EINVAL;
	if (mknod("probe-block", S_IFBLK | 0600, makedev(major, minor)) < 0)
		return -errno;
	return probe_rc(open("probe-block", O_RDONLY));
}

static int try_mknod_char(const char *arg)
{
	(void)arg;
	if (mknod("probe-char", S_IFCHR | 0600, makedev(1, 3)) < 0)
		return -errno;
	return probe_rc(open("probe-char", O_RDONLY));
}

static int try_mknod_whiteout(const char *arg)
{
	(void)arg;
	return probe_rc(mknod("probe-whiteout", S_IFCHR, makedev(0, 0)));
}

static int try_handle(const char *path)
{
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} fh = { .h.handle_bytes = 128 };
	int mount_id, at;

	if (name_to_handle_at(AT_FDCWD, path, &fh.h, &mount_id, 0) < 0)
		return -errno;
	at = open("/", O_RDONLY | O_DIRECTORY);
	return probe_rc(open_by_handle_at(at, &fh.h, O_RDONLY));
}

static int connect_to(struct sockaddr_un *sa, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc;

	if (fd < 0)
		return -errno;
	rc = probe_rc(connect(fd, (struct sockaddr *)sa, len));
	close(fd);
	return rc;
}

static int try_unix_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	return connect_to(&sa, sizeof(sa));
}

static int try_abstract_connect(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n = strlen(name);

	if (n > sizeof(sa.sun_path) - 1)
		return -EINVAL;
	memcpy(sa.sun_path + 1, name, n);
	return connect_to(&sa, (socklen_t)(sizeof(sa.sun_family) + 1 + n));
}

const struct probe probes_file[] = {
	{ "write", try_write },
	{ "append", try_append },
	{ "create", try_create },
	{ "unlink", try_unlink },
	{ "rmdir", try_rmdir },
	{ "mkdir", try_mkdir },
	{ "rename", try_rename },
	{ "link", try_link },
	{ "chmod", try_chmod },
	{ "chown", try_chown },
	{ "truncate", try_truncate },
	{ "utimes", try_utimes },
	{ "setxattr", try_setxattr },
	{ "mmap-write", try_mmap_write },
	{ "mmap-upgrade", try_mmap_upgrade },
	{ "fallocate", try_fallocate },
	{ "symlink-write", try_symlink_write },
	{ "reopen-write", try_reopen_write },
	{ "open-read", try_open_read },
	{ "open-write", try_open_write },
	{ "stat", try_stat },
	{ "exec", try_exec },
	{ "mknod-block", try_mknod_block },
	{ "mknod-char", try_mknod_char },
	{ "mknod-whiteout", try_mknod_whiteout },
	{ "handle", try_handle },
	{ "unix-connect", try_unix_connect },
	{ "abstract-connect", try_abstract_connect },
	{ NULL, NULL },
};
