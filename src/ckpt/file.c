/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "ckpt/file.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "ckpt/state.h"

/*
 * "stetck", format 2 (small contents are packed). Numbers have the byte order of this machine:
 * the file never leaves it.
 */
static const char magic[8] = "stetck\0\2";

enum { SET = 1, GONE = 2 };

struct head {
	char magic[8];
	int64_t number, parent;
	uint64_t records;
};

/* The fixed part of an entry. */
struct fixed {
	uint32_t layer, flags;
	uint32_t mode, uid, gid, nlink;
	uint64_t ino, size, rdev, obj;
	int64_t btime, mtime, ctime;
	uint32_t nrel, nlinktext, nxattrs, zero;
};

void ck_encode(struct buf *out, const struct ck_entry *e)
{
	struct fixed f = { .layer = e->layer,
			   .flags = e->flags & ~(uint32_t)CK_EARLY,
			   .mode = e->id.mode,
			   .uid = e->id.uid,
			   .gid = e->id.gid,
			   .nlink = e->id.nlink,
			   .ino = e->id.ino,
			   .size = e->id.size,
			   .rdev = e->rdev,
			   .obj = e->obj,
			   .btime = e->id.btime,
			   .mtime = e->id.mtime,
			   .ctime = e->id.ctime,
			   .nrel = (uint32_t)strlen(e->rel) + 1,
			   .nlinktext = (uint32_t)strlen(e->link) + 1,
			   .nxattrs = (uint32_t)e->nxattrs };

	buf_add(out, &f, sizeof(f));
	buf_add(out, e->rel, f.nrel);
	buf_add(out, e->link, f.nlinktext);
	buf_add(out, e->nxattrs ? e->xattrs : "", f.nxattrs);
}

bool ck_decode(const char **p, const char *end, struct ck_entry **out)
{
	struct ck_entry e = { 0 };
	struct fixed f;
	uint64_t need;

	if ((size_t)(end - *p) < sizeof(f))
		return false;
	memcpy(&f, *p, sizeof(f));
	need = (uint64_t)f.nrel + f.nlinktext + f.nxattrs;
	if ((uint64_t)(end - *p) - sizeof(f) < need || !f.nrel || !f.nlinktext)
		return false;
	e.rel = *p + sizeof(f);
	e.link = e.rel + f.nrel;
	e.xattrs = e.link + f.nlinktext;
	e.nxattrs = f.nxattrs;
	if (memchr(e.rel, '\0', f.nrel) != e.rel + f.nrel - 1 ||
	    memchr(e.link, '\0', f.nlinktext) != e.link + f.nlinktext - 1)
		return false;
	e.layer = f.layer;
	e.flags = f.flags;
	e.rdev = f.rdev;
	e.obj = f.obj;
	e.id = (struct ident){ .ino = f.ino,
			       .btime = f.btime,
			       .mode = f.mode,
			       .uid = f.uid,
			       .gid = f.gid,
			       .nlink = f.nlink,
			       .size = f.size,
			       .mtime = f.mtime,
			       .ctime = f.ctime };
	*out = ck_entry_new(&e);
	*p = e.xattrs + e.nxattrs;
	return true;
}

static void file_name(int64_t number, char name[32])
{
	snprintf(name, 32, "%" PRId64 ".ck", number);
}

static void add_record(struct buf *b, struct head *h, char kind, const struct ck_entry *e)
{
	static const struct ck_entry none = { .link = "", .xattrs = "" };
	struct ck_entry gone = none;

	buf_addc(b, kind);
	if (kind == GONE) {
		gone.layer = e->layer;
		gone.rel = e->rel;
		e = &gone;
	}
	ck_encode(b, e);
	h->records++;
}

/* Is the entry unchanged in everything that a later scan compares? */
static bool unchanged(const struct ck_entry *a, const struct ck_entry *b)
{
	return a == b ||
	       (ck_same(a, b) && a->id.ino == b->id.ino && a->id.ctime == b->id.ctime &&
		(a->flags | CK_EARLY) == (b->flags | CK_EARLY));
}

static void difference(struct buf *b, struct head *h, const struct ck_state *before,
		       const struct ck_state *now)
{
	size_t i = 0, k = 0;

	while (i < before->n || k < now->n) {
		const struct ck_entry *x = i < before->n ? before->v[i] : NULL;
		const struct ck_entry *y = k < now->n ? now->v[k] : NULL;
		int c = !x ? 1 : !y ? -1 : ck_order(x->layer, x->rel, y->layer, y->rel);

		if (c < 0)
			add_record(b, h, GONE, x);
		else if (c > 0 || !unchanged(x, y))
			add_record(b, h, SET, y);
		i += c <= 0;
		k += c >= 0;
	}
}

int ck_save(int dir, int64_t number, int64_t parent, const struct ck_state *before,
	    const struct ck_state *now, struct err *e)
{
	struct head h = { .number = number, .parent = parent };
	AUTO_BUF struct buf b = BUF_INIT;
	AUTO_CLOSE int fd = -1;
	char name[32], tmp[40];
	uint64_t sum;
	int r;

	memcpy(h.magic, magic, sizeof(magic));
	buf_add(&b, &h, sizeof(h));
	difference(&b, &h, before, now);
	memcpy(b.data, &h, sizeof(h));
	sum = XXH64(b.data, b.len, 0);
	buf_add(&b, &sum, sizeof(sum));
	file_name(number, name);
	snprintf(tmp, sizeof(tmp), "%s.new", name);
	unlinkat(dir, tmp, 0);
	r = FAULT_POINT("ckpt.save");
	if (r == 0) {
		fd = openat(dir, tmp,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : ck_write_at(fd, b.data, b.len, 0);
	}
	if (r == 0 && (FAULT_AT("ckpt.rename") || renameat(dir, tmp, dir, name) < 0))
		r = -errno;
	if (r < 0) {
		unlinkat(dir, tmp, 0);
		return err_sys(e, r, "cannot write checkpoint %" PRId64, number);
	}
	return 0;
}

static int corrupt(int64_t number, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "checkpoint %" PRId64 " is damaged", number);
}

static int read_file(int dir, int64_t number, struct buf *out, struct err *e)
{
	AUTO_CLOSE int fd = -1;
	char name[32], chunk[65536];
	uint64_t sum;
	ssize_t n;

	file_name(number, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
			       ? err_set(e, ERR_CORRUPT,
					 "checkpoint %" PRId64 " has lost its file",
					 number)
			       : err_sys(e, errno, "cannot read checkpoint %" PRId64,
					 number);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "cannot read checkpoint %" PRId64, number);
	if (out->len < sizeof(struct head) + sizeof(sum) ||
	    memcmp(out->data, magic, sizeof(magic)) != 0)
		return corrupt(number, e);
	memcpy(&sum, out->data + out->len - sizeof(sum), sizeof(sum));
	if (XXH64(out->data, out->len - sizeof(sum), 0) != sum)
		return corrupt(number, e);
	return 0;
}

/* The paths that newer states have an entry for: the newest entry of a path counts. */
struct met {
	struct ck_entry **v; /* hash table */
	bool *gone;
	size_t n, cap;
};

static size_t slot_of(const struct met *m, const struct ck_entry *e)
{
	size_t i = XXH64(e->rel, strlen(e->rel), e->layer) & (m->cap - 1);

	while (m->v[i] && (m->v[i]->layer != e->layer || strcmp(m->v[i]->rel, e->rel)))
		i = (i + 1) & (m->cap - 1);
	return i;
}

static void met_grow(struct met *m)
{
	struct met old = *m;

	m->cap = old.cap ? 2 * old.cap : 1024;
	m->v = xcalloc(m->cap, sizeof(struct ck_entry *));
	m->gone = xcalloc(m->cap, sizeof(*m->gone));
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i]) {
			size_t k = slot_of(m, old.v[i]);

			m->v[k] = old.v[i];
			m->gone[k] = old.gone[i];
		}
	free(old.v);
	free(old.gone);
}

static void met_add(struct met *m, struct ck_entry *e, bool gone)
{
	size_t i;

	if (2 * m->n >= m->cap)
		met_grow(m);
	i = slot_of(m, e);
	if (m->v[i]) {
		ck_unref(e);
		return;
	}
	m->v[i] = e;
	m->gone[i] = gone;
	m->n++;
}

static int read_into(int dir, int64_t number, struct met *m, int64_t *parent,
		     struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;
	const char *p, *end;
	struct ck_entry *en;
	struct head h;

	if (read_file(dir, number, &b, e) < 0)
		return -1;
	memcpy(&h, b.data, sizeof(h));
	if (h.number != number || h.parent >= number)
		return corrupt(number, e);
	p = b.data + sizeof(h);
	end = b.data + b.len - sizeof(uint64_t);
	for (uint64_t i = 0; m && i < h.records; i++) {
		char kind = p < end ? *p++ : 0;

		if ((kind != SET && kind != GONE) || !ck_decode(&p, end, &en))
			return corrupt(number, e);
		met_add(m, en, kind == GONE);
	}
	*parent = h.parent;
	return 0;
}

static bool has_file(int dir, int64_t number)
{
	char name[32];

	file_name(number, name);
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int ck_load(int dir, int64_t number, struct ck_state *out, struct err *e)
{
	struct met m = { 0 };
	int64_t at = number;
	int r = 0;

	*out = (struct ck_state){ 0 };
	while (r == 0 && at >= 0) {
		if (at == 0 && !has_file(dir, 0))
			break;
		r = read_into(dir, at, &m, &at, e);
	}
	for (size_t i = 0; i < m.cap; i++) {
		if (!m.v[i])
			continue;
		if (r == 0 && !m.gone[i])
			ck_state_add(out, m.v[i]);
		else
			ck_unref(m.v[i]);
	}
	free(m.v);
	free(m.gone);
	ck_state_sort(out);
	return r;
}

int ck_remove(int dir, int64_t number)
{
	char name[32];

	file_name(number, name);
	return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

int ck_objects(int dir, int64_t number, uint64_t **v, size_t *n, struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;
	const char *p, *end;
	struct ck_entry *en;
	struct head h;

	if (number == 0 && !has_file(dir, 0))
		return 0;
	if (read_file(dir, number, &b, e) < 0)
		return -1;
	memcpy(&h, b.data, sizeof(h));
	p = b.data + sizeof(h);
	end = b.data + b.len - sizeof(uint64_t);
	*v = xrealloc(*v, (*n + h.records + 1) * sizeof(**v));
	for (uint64_t i = 0; i < h.records; i++) {
		if (p++ >= end || !ck_decode(&p, end, &en))
			return corrupt(number, e);
		if (en->obj)
			(*v)[(*n)++] = en->obj;
		ck_unref(en);
	}
	return 0;
}
