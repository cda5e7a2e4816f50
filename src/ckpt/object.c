/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "layer/copy.h"

/*
 * A new file costs more than the few bytes that most files have. So small contents go into a
 * pack, one for each scan of a layer. The pack consists of blocks, each of which belongs to
 * one file, so that their space can be given back one by one. The number of such an object is
 * made of the number of the pack and of its first block.
 */
#define PACKED (UINT64_C(1) << 63)
#define BLOCK_BITS 32
#define PACK_OF(obj) ((obj) & ~((UINT64_C(1) << BLOCK_BITS) - 1))
#define BLOCK_OF(obj) ((off_t)((obj) & ((UINT64_C(1) << BLOCK_BITS) - 1)))

enum { BLOCK = 4096, GATHERED = 4 * CK_SMALL };

bool ck_is_packed(uint64_t obj)
{
	return obj & PACKED;
}

void ck_object_name(uint64_t obj, char name[CK_OBJECT_NAME])
{
	snprintf(name, CK_OBJECT_NAME, "%016" PRIx64,
		 ck_is_packed(obj) ? PACK_OF(obj) : obj);
}

int ck_new_number(uint64_t *obj)
{
	do {
		if (getrandom(obj, sizeof(*obj), 0) != sizeof(*obj))
			return -errno;
		*obj &= ~PACKED;
	} while (!*obj);
	return 0;
}

/* --- keeping --- */

static int create(int objects, uint64_t obj)
{
	char name[CK_OBJECT_NAME];
	int fd;

	ck_object_name(obj, name);
	fd = openat(objects, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	return fd < 0 ? -errno : fd;
}

int ck_write_at(int fd, const char *data, size_t n, off_t at)
{
	while (n) {
		ssize_t w = pwrite(fd, data, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -ENOSPC;
		data += w;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

static int flush(struct ck_packer *p)
{
	int r = ck_write_at(p->fd, p->data, p->n, (off_t)p->blocks * BLOCK - (off_t)p->n);

	p->n = 0;
	return r;
}

static int open_pack(struct ck_packer *p, int objects)
{
	int r = ck_end_pack(p);

	if (r < 0)
		return r;
	do {
		r = ck_new_number(&p->number);
		p->number = PACK_OF(p->number) | PACKED;
		p->fd = r < 0 ? r : create(objects, p->number);
	} while (p->fd == -EEXIST);
	p->blocks = 0;
	if (!p->data)
		p->data = xmalloc(GATHERED);
	return p->fd < 0 ? p->fd : 0;
}

int ck_end_pack(struct ck_packer *p)
{
	int r = p->fd < 0 ? 0 : flush(p);

	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	return r;
}

void ck_free_pack(struct ck_packer *p)
{
	cleanup_close(&p->fd);
	free(p->data);
}

static int keep_small(struct ck_packer *p, int objects, int in, size_t size,
		      uint64_t *obj)
{
	size_t room = (size + BLOCK - 1) / BLOCK * BLOCK;
	ssize_t n;
	int r = 0;

	if (p->fd < 0 || p->blocks >= UINT32_MAX - CK_SMALL / BLOCK)
		r = open_pack(p, objects);
	else if (p->n + room > GATHERED)
		r = flush(p);
	if (r < 0)
		return r;
	n = pread(in, p->data + p->n, size, 0);
	if (n < 0)
		return -errno;
	/* The file became shorter while it was read. */
	if ((size_t)n < size)
		return -ESTALE;
	memset(p->data + p->n + size, 0, room - size);
	*obj = p->number | p->blocks;
	p->n += room;
	p->blocks += (uint32_t)(room / BLOCK);
	return 0;
}

static int keep_large(int objects, int in, off_t size, uint64_t *obj)
{
	AUTO_CLOSE int out = -1;
	char name[CK_OBJECT_NAME];
	struct stat st;
	int r = ck_new_number(obj);

	if (r < 0)
		return r;
	out = create(objects, *obj);
	if (out < 0)
		return out;
	r = copy_data(in, out, size, size >= CK_REFLINK_MIN);
	/* The file became shorter while it was read: the next look will show that. */
	if (r == -EIO && fstat(in, &st) == 0 && st.st_size < size)
		r = 0;
	if (r < 0) {
		ck_object_name(*obj, name);
		unlinkat(objects, name, 0);
	}
	return r;
}

int ck_keep(struct ck_packer *p, int objects, int in, const struct stat *st, size_t size,
	    uint64_t *obj)
{
	int r = FAULT_POINT("ckpt.object");

	if (r < 0)
		return r;
	/* A file with holes keeps them, and is not packed. */
	if (size && size <= CK_SMALL && (uint64_t)st->st_blocks * 512 >= size)
		return keep_small(p, objects, in, size, obj);
	return keep_large(objects, in, (off_t)size, obj);
}

/* --- reading --- */

static int open_kept(const struct ck_layer *l, uint64_t obj)
{
	char name[CK_OBJECT_NAME];
	int fd;

	ck_object_name(obj, name);
	fd = openat(l->objects, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ck_read_packed(const struct ck_layer *l, const struct ck_entry *e, char *block,
		   struct ck_opened *last)
{
	ssize_t n;

	if (!ck_is_packed(e->obj) || e->id.size > CK_SMALL)
		return -EUCLEAN;
	if (last->fd < 0 || last->number != PACK_OF(e->obj)) {
		cleanup_close(&last->fd);
		last->fd = open_kept(l, e->obj);
		last->number = PACK_OF(e->obj);
	}
	if (last->fd < 0)
		return last->fd;
	n = pread(last->fd, block, e->id.size, BLOCK_OF(e->obj) * BLOCK);
	if (n < 0)
		return -errno;
	return (uint64_t)n == e->id.size ? 0 : -EUCLEAN;
}

int ck_open_object(const struct ck_layer *l, const struct ck_entry *e)
{
	AUTO_CLOSE int in = -1;
	struct stat st;

	if (!e->obj)
		return -ENODATA;
	in = open_kept(l, e->obj);
	if (in < 0)
		return TAKE_FD(in);
	if (fstat(in, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size == e->id.size ? TAKE_FD(in) : -EUCLEAN;
}

int ck_copy_object(const struct ck_layer *l, const struct ck_entry *e, int out)
{
	AUTO_CLOSE int in = -1;
	struct ck_opened pack = { .fd = -1 };
	char block[CK_SMALL];
	int r;

	if (ck_is_packed(e->obj)) {
		r = ck_read_packed(l, e, block, &pack);
		cleanup_close(&pack.fd);
		return r < 0 ? r : ck_write_at(out, block, e->id.size, 0);
	}
	in = ck_open_object(l, e);
	if (in < 0)
		return TAKE_FD(in);
	return copy_data(in, out, (off_t)e->id.size, e->id.size >= CK_REFLINK_MIN);
}

/* The next offset from @at on that is not in a hole of both files; @size: there is none. */
static off_t next_data(int a, int b, off_t at, off_t size)
{
	off_t x = lseek(a, at, SEEK_DATA), y;

	if (x < 0)
		x = errno == ENXIO ? size : at;
	y = lseek(b, at, SEEK_DATA);
	if (y < 0)
		y = errno == ENXIO ? size : at;
	return x < y ? x : y;
}

int ck_has_content(const struct ck_layer *l, const struct ck_entry *e, int in)
{
	AUTO_CLOSE int fd = open_kept(l, e->obj);
	off_t from = ck_is_packed(e->obj) ? BLOCK_OF(e->obj) * BLOCK : 0;
	const off_t size = (off_t)e->id.size;
	char x[32768], y[32768];
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(in, &st) < 0)
		return -errno;
	if (st.st_size != size)
		return 0;
	for (off_t at = 0; at < size;) {
		size_t want = sizeof(x);
		ssize_t a, b;

		/*
		 * All processes may be stopped meanwhile: holes, however large, are not read.
		 */
		if (!ck_is_packed(e->obj)) {
			at = next_data(in, fd, at, size);
			if (at >= size)
				break;
		}
		/* The object ends where the next one begins. */
		if ((uint64_t)(size - at) < want)
			want = (size_t)(size - at);
		a = pread(in, x, want, at);
		b = pread(fd, y, want, from + at);
		if (a < 0 || b < 0)
			return -errno;
		if (a != b || a == 0 || memcmp(x, y, (size_t)a) != 0)
			return 0;
		at += a;
	}
	return 1;
}

/* --- giving back --- */

/* The index of the first of the sorted numbers that is not less than @obj. */
static size_t position(const uint64_t *used, size_t n, uint64_t obj)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if (used[mid] < obj)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static void give_back(const struct ck_layer *l, const struct ck_entry *e)
{
	AUTO_CLOSE int fd = -1;
	char name[CK_OBJECT_NAME];

	ck_object_name(e->obj, name);
	fd = openat(l->objects, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	/* If a hole cannot be punched, the space is given back with the rest of the pack. */
	if (fd >= 0)
		(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 BLOCK_OF(e->obj) * BLOCK,
				 (off_t)((e->id.size + BLOCK - 1) / BLOCK) * BLOCK);
}

void ck_sweep(const struct ck_layers *layers, const struct ck_state *gone,
	      const uint64_t *used, size_t n)
{
	for (size_t i = 0; i < gone->n; i++) {
		const struct ck_entry *e = gone->v[i];
		const struct ck_layer *l = &layers->v[e->layer];
		char name[CK_OBJECT_NAME];
		size_t at = position(used, n, e->obj), pack;

		if (!e->obj || (at < n && used[at] == e->obj))
			continue;
		pack = position(used, n, PACK_OF(e->obj));
		if (ck_is_packed(e->obj) && pack < n &&
		    PACK_OF(used[pack]) == PACK_OF(e->obj)) {
			give_back(l, e);
			continue;
		}
		ck_object_name(e->obj, name);
		unlinkat(l->objects, name, 0);
	}
}
