/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/ident.h"
#include "layer/meta.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "sys/ns.h"

static int copy_range(int in, int out, off_t from, off_t to)
{
	char chunk[65536];

	while (from < to) {
		size_t want = (uint64_t)(to - from) < sizeof(chunk) ? (size_t)(to - from)
								    : sizeof(chunk);
		ssize_t n = pread(in, chunk, want, from);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		if (pwrite(out, chunk, (size_t)n, from) != n)
			return errno ? -errno : -ENOSPC;
		from += n;
	}
	return 0;
}

int copy_data(int in, int out, off_t size, bool share)
{
	off_t data = 0, hole;
	int r = 0;

	if (share && ioctl(out, FICLONE, in) == 0)
		return 0;
	if (ftruncate(out, size) < 0)
		return -errno;
	while (r == 0 && data < size) {
		data = lseek(in, data, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = copy_range(in, out, data, hole);
		data = hole;
	}
	return r;
}

static int copy_file(int fromdir, const char *from, int todir, const char *to, off_t size)
{
	AUTO_CLOSE int in = -1, out = -1;

	do {
		in = fs_open_read(fromdir, from);
	} while (in == -EACCES && ns_gain_override() == 0);
	if (in < 0)
		return in;
	out = openat(todir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	return out < 0 ? -errno : copy_data(in, out, size, true);
}

static int copy_link(int fromdir, const char *from, int todir, const char *to)
{
	AUTO_BUF struct buf target = BUF_INIT;
	int r = fs_readlink(fromdir, from, &target);

	if (r == 0 && symlinkat(buf_str(&target), todir, to) < 0)
		r = -errno;
	return r;
}

static int copy_dir(int fromdir, const char *from, int todir, const char *to,
		    uint64_t *objects)
{
	AUTO_CLOSE int in = -1, out = -1;
	struct fs_names names;
	int r;

	do {
		in = openat(fromdir, from,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} while (in < 0 && errno == EACCES && ns_gain_override() == 0);
	if (in < 0 || mkdirat(todir, to, 0700) < 0)
		return -errno;
	out = openat(todir, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return -errno;
	r = fs_names_read(in, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = copy_object(in, names.v[i], out, names.v[i], objects);
	fs_names_free(&names);
	return r;
}

int copy_attrs(int fromdir, const char *from, int todir, const char *to)
{
	AUTO_BUF struct buf attrs = BUF_INIT;
	int r = meta_pack(fromdir, from, &attrs);

	return r == 0 ? meta_unpack(todir, to, buf_str(&attrs), attrs.len) : r;
}

int copy_object(int fromdir, const char *from, int todir, const char *to,
		uint64_t *objects)
{
	AUTO_BUF struct buf attrs = BUF_INIT;
	struct ident id;
	struct stat st;
	int r = FAULT_POINT("copy.object");

	if (r < 0)
		return r;
	if (fstatat(fromdir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (overlay_is_whiteout(&st))
		return 0;
	(*objects)++;
	if (S_ISREG(st.st_mode))
		r = copy_file(fromdir, from, todir, to, st.st_size);
	else if (S_ISDIR(st.st_mode))
		r = copy_dir(fromdir, from, todir, to, objects);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(fromdir, from, todir, to);
	else
		r = mknodat(todir, to, (st.st_mode & S_IFMT) | 0600, st.st_rdev) < 0
			    ? -errno
			    : 0;
	if (r == 0)
		r = ident_at(fromdir, from, &id);
	if (r == 0)
		r = meta_pack(fromdir, from, &attrs);
	if (r == 0 && attrs.len)
		r = meta_unpack(todir, to, buf_str(&attrs), attrs.len);
	return r == 0 ? meta_set(todir, to, &id, true) : r;
}
