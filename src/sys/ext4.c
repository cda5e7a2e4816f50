/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ext4.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The kernel's name of the disk that @fd lies on. */
static bool disk_of(int fd, char *out, size_t size)
{
	char name[64], link[PATH_MAX];
	const char *base;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return false;
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	n = readlink(name, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	base = strrchr(link, '/');
	return base && snprintf(out, size, "%s", base + 1) < (int)size;
}

/* The options in force say how data and journal go together, if there is one. */
static bool lacks_journal(int dir)
{
	char disk[NAME_MAX + 1], name[sizeof(disk) + 32], text[4096];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	if (!disk_of(dir, disk, sizeof(disk)))
		return false;
	snprintf(name, sizeof(name), "/proc/fs/ext4/%s/options", disk);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return !strstr(text, "\ndata=");
}

bool ext4_spread(const char *dir)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* What the kernel reads and writes: the request's number says long. */
	uint32_t flags;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return false;
	if (flags & FS_TOPDIR_FL)
		return true;
	if (!lacks_journal(fd))
		return false;
	flags |= FS_TOPDIR_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}
