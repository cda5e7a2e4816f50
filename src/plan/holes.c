/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/meta.h"
#include "plan/holes.h"
#include "plan/parts.h"
#include "sys/fs.h"

/*
 * overlayfs copies a file a MiB at a time, from the first byte that is not in a hole: holes in
 * the rest of that MiB become zeros on the disk. Those are turned into holes again where the
 * host has a hole.
 */
enum { CHUNK = 64 * 1024, BLOCK = 4096 };

struct dig {
	int host, up;
	off_t end; /* of the shorter one */
	size_t block;
	char *chunk;
};

static bool is_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static int punch(struct dig *d, off_t at, off_t len)
{
	if (FAULT_AT("holes.punch") ||
	    fallocate(d->up, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len) < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	return 0;
}

/* Punches holes where the staged file has zeros between @at and @end, a hole of the host's. */
static int dig_hole(struct dig *d, off_t at, off_t end)
{
	int r = 0;

	while (at < end && r == 0) {
		off_t data = lseek(d->up, at, SEEK_DATA);
		size_t want = CHUNK, zero = 0;
		ssize_t n;

		if (data < 0 || data >= end)
			return data < 0 && errno != ENXIO ? -errno : 0;
		at = data;
		if ((off_t)want > end - at)
			want = (size_t)(end - at);
		n = pread(d->up, d->chunk, want, at);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		while (zero + d->block <= (size_t)n && is_zero(d->chunk + zero, d->block))
			zero += d->block;
		if (zero) {
			r = punch(d, at, (off_t)zero);
			at += (off_t)zero;
		} else {
			at += (off_t)d->block;
		}
	}
	return r;
}

static int dig_all(struct dig *d)
{
	off_t at = 0;
	int r = 0;

	while (at < d->end && r == 0) {
		off_t hole = lseek(d->host, at, SEEK_HOLE);
		off_t data;

		if (hole < 0 || hole >= d->end)
			break;
		data = lseek(d->host, hole, SEEK_DATA);
		if (data < 0 || data > d->end)
			data = d->end;
		r = dig_hole(d, hole, data);
		at = data;
	}
	return r;
}

int apply_holes(struct apply *a, struct plan_rec *r, struct err *e)
{
	AUTO_CLOSE int host = -1, up = -1;
	struct timespec times[2];
	struct stat hst, ust;
	struct place p;
	struct dig d;
	int x;

	if (!S_ISREG(r->before.mode) || !S_ISREG(r->after.mode) || r->before.size < BLOCK)
		return 0;
	if (apply_at(a, r, &p, e) < 0)
		return e->kind == ERR_CONFLICT ? 0 : -1;
	if (fstatat(p.host, p.name, &hst, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (uint64_t)hst.st_blocks * 512 >= (uint64_t)hst.st_size)
		return 0;
	host = fs_open_read(p.host, p.name);
	up = openat(p.up, p.name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (host < 0 || up < 0 || fstat(host, &hst) < 0 || fstat(up, &ust) < 0 ||
	    !S_ISREG(hst.st_mode) || !S_ISREG(ust.st_mode))
		return 0;
	d = (struct dig){ .host = host,
			  .up = up,
			  .end = hst.st_size < ust.st_size ? hst.st_size : ust.st_size,
			  .block = ust.st_blksize < BLOCK ? (size_t)ust.st_blksize
							  : BLOCK,
			  .chunk = xmalloc(CHUNK) };
	a->touched = true;
	/* Punching moves the mtime: it is noted until it is set again. */
	x = meta_note_mtime(up, &ust, times);
	if (x == 0)
		x = dig_all(&d);
	free(d.chunk);
	if (x == 0 && (FAULT_AT("holes.utimes") || futimens(up, times) < 0))
		x = -errno;
	if (x == 0)
		x = meta_drop_mtime(up);
	if (x == 0)
		x = ident_at(p.up, p.name, &r->after);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}
