/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: disklog IMAGE LOG MOUNTPOINT
 *
 * Serves one file, MOUNTPOINT/disk, whose contents are those of IMAGE, and writes down in
 * LOG what reaches it, in order: a record for every write, every range made zero, and every
 * flush. A loop device on it is a disk of which each moment can be made again.
 *
 * One thread, and the record is written before the answer is given: the size of LOG at any
 * time says how far the disk had come by then.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISK_WRITE = 1, DISK_ZERO = 2, DISK_FLUSH = 3, DISK_MAX_WRITE = 1 << 20 };

struct record {
	uint64_t kind, off, len; /* the data follow, for a write */
};

static int image, record_log;

static int put(int fd, const char *s, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, s, n);

		if (k < 0 && errno != EINTR)
			return -errno;
		if (k > 0) {
			s += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

static int note(uint64_t kind, uint64_t off, uint64_t len, const char *data)
{
	struct record r = { kind, off, len };
	int x = put(record_log, (const char *)&r, sizeof(r));

	return x == 0 && data ? put(record_log, data, len) : x;
}

static void *disk_init(struct fuse_conn_info *c, struct fuse_config *cfg)
{
	cfg->kernel_cache = 0;
	c->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
	c->max_write = DISK_MAX_WRITE;
	return NULL;
}

static int disk_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	memset(st, 0, sizeof(*st));
	if (strcmp(path, "/") == 0) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
		return 0;
	}
	if (strcmp(path, "/disk") != 0)
		return -ENOENT;
	if (fstat(image, st) < 0)
		return -errno;
	st->st_mode = S_IFREG | 0600;
	return 0;
}

static int disk_open(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	fi->direct_io = 1;
	return 0;
}

static int disk_read(const char *path, char *s, size_t n, off_t off,
		     struct fuse_file_info *fi)
{
	ssize_t k = pread(image, s, n, off);

	(void)path;
	(void)fi;
	return k < 0 ? -errno : (int)k;
}

static int disk_write(const char *path, const char *s, size_t n, off_t off,
		      struct fuse_file_info *fi)
{
	int x = note(DISK_WRITE, (uint64_t)off, n, s);

	(void)path;
	(void)fi;
	if (x < 0)
		return x;
	return pwrite(image, s, n, off) == (ssize_t)n ? (int)n : -EIO;
}

/* What is discarded reads as zero, like what is made zero. */
static int disk_fallocate(const char *path, int mode, off_t off, off_t len,
			  struct fuse_file_info *fi)
{
	int x;

	(void)path;
	(void)fi;
	if (!(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)))
		return -EOPNOTSUPP;
	x = note(DISK_ZERO, (uint64_t)off, (uint64_t)len, NULL);
	if (x < 0)
		return x;
	return fallocate(image, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len) < 0
		       ? -errno
		       : 0;
}

static int disk_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	(void)fi;
	return note(DISK_FLUSH, 0, 0, NULL);
}

static const struct fuse_operations operations = {
	.init = disk_init,
	.getattr = disk_getattr,
	.open = disk_open,
	.read = disk_read,
	.write = disk_write,
	.fallocate = disk_fallocate,
	.fsync = disk_fsync,
};

int main(int argc, char **argv)
{
	char *args[] = { argv[0], (char[]){ "-f" }, (char[]){ "-s" }, argv[argc - 1],
			 NULL };

	if (argc != 4) {
		fprintf(stderr, "usage: disklog IMAGE LOG MOUNTPOINT\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no disk outlives its test */
	image = open(argv[1], O_RDWR | O_CLOEXEC);
	record_log = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
			  0600);
	if (image < 0 || record_log < 0) {
		perror("disklog");
		return 1;
	}
	return fuse_main(4, args, &operations, NULL);
}
