/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"

/*
 * The file: magic, then records, each as length, payload, length (so that it can be read from
 * either end), then an end mark with the number of records and a checksum of everything
 * before. Host byte order: a plan never leaves its machine.
 */
static const char magic[8] = "stetpl2\n";

struct end_mark {
	uint32_t zero; /* no record is 0 bytes long */
	uint32_t version;
	uint64_t count;
	uint64_t checksum;
};

/* Fixed part of a record; the strings follow, NUL-terminated, then the two blobs. */
struct fixed {
	uint32_t kind, flags, layer, rel_len, link_len, nxbefore, nxafter, pad;
	uint64_t serial;
	struct ident before, after;
};

enum { BUFFER = 256 * 1024, RECORD_MAX = 64 * 1024 * 1024 };

struct plan_writer {
	int dirfd, fd;
	char *name;
	struct buf buf;
	uint64_t count;
	uint64_t base; /* serials of different plans do not meet in old/ */
	XXH64_state_t hash;
};

int plan_create(int dirfd, const char *name, struct plan_writer **out, struct err *e)
{
	struct plan_writer *w;
	int fd = FAULT_POINT("plan.create");

	if (fd == 0)
		fd = openat(dirfd, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	else
		errno = -fd;
	if (fd < 0)
		return err_sys(e, errno, "cannot write the change list");
	w = xcalloc(1, sizeof(*w));
	w->dirfd = dirfd;
	w->fd = fd;
	w->name = xstrdup(name);
	w->base = XXH64(name, strlen(name), (uint64_t)getpid()) << 24;
	XXH64_reset(&w->hash, 0);
	buf_add(&w->buf, magic, sizeof(magic));
	*out = w;
	return 0;
}

int plan_flush(struct plan_writer *w, struct err *e)
{
	size_t done = 0;
	ssize_t n = FAULT_POINT("plan.write");

	if (n < 0)
		return err_sys(e, (int)n, "cannot write the change list");
	XXH64_update(&w->hash, buf_str(&w->buf), w->buf.len);
	while (done < w->buf.len) {
		n = write(w->fd, w->buf.data + done, w->buf.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "cannot write the change list");
		done += (size_t)n;
	}
	buf_reset(&w->buf);
	return 0;
}

int plan_add_as(struct plan_writer *w, struct plan_rec *r, uint64_t serial, struct err *e)
{
	const char *link = r->link ? r->link : "";
	struct fixed f = { .kind = r->kind,
			   .flags = r->flags,
			   .layer = r->layer,
			   .rel_len = (uint32_t)strlen(r->rel),
			   .link_len = (uint32_t)strlen(link),
			   .nxbefore = r->nxbefore,
			   .nxafter = r->nxafter,
			   .before = r->before,
			   .after = r->after };
	uint32_t len;

	w->count++;
	f.serial = r->serial = serial;
	len = (uint32_t)(sizeof(f) + f.rel_len + 1 + f.link_len + 1 + f.nxbefore +
			 f.nxafter);
	buf_add(&w->buf, &len, sizeof(len));
	buf_add(&w->buf, &f, sizeof(f));
	buf_add(&w->buf, r->rel, f.rel_len + 1);
	buf_add(&w->buf, link, f.link_len + 1);
	buf_add(&w->buf, r->xbefore, f.nxbefore);
	buf_add(&w->buf, r->xafter, f.nxafter);
	buf_add(&w->buf, &len, sizeof(len));
	return w->buf.len >= BUFFER ? plan_flush(w, e) : 0;
}

void plan_rec_copy(struct plan_rec *to, const struct plan_rec *from)
{
	char *x = NULL;

	*to = *from;
	to->rel = xstrdup(from->rel);
	to->link = NULL;
	if (from->nxbefore || from->nxafter) {
		x = xmalloc((size_t)from->nxbefore + from->nxafter);
		memcpy(x, from->xbefore, from->nxbefore);
		memcpy(x + from->nxbefore, from->xafter, from->nxafter);
	}
	to->xbefore = x;
	to->xafter = x ? x + from->nxbefore : NULL;
}

void plan_rec_free(struct plan_rec *r)
{
	free((char *)(uintptr_t)r->rel);
	free((char *)(uintptr_t)r->xbefore);
}

uint64_t plan_next(const struct plan_writer *w)
{
	return w->base + w->count + 1;
}

int plan_add(struct plan_writer *w, struct plan_rec *r, struct err *e)
{
	return plan_add_as(w, r, plan_next(w), e);
}

static void writer_free(struct plan_writer *w)
{
	close(w->fd);
	buf_free(&w->buf);
	free(w->name);
	free(w);
}

static int finish(struct plan_writer *w, bool sync, struct err *e)
{
	struct end_mark end = { .version = 1, .count = w->count };
	int r = plan_flush(w, e);

	if (r == 0) {
		end.checksum = XXH64_digest(&w->hash);
		buf_add(&w->buf, &end, sizeof(end));
		r = plan_flush(w, e);
	}
	if (r == 0 && sync) {
		r = FAULT_POINT("plan.fsync");
		if (r == 0 && (fsync(w->fd) < 0 || fsync(w->dirfd) < 0))
			r = -errno;
		if (r < 0)
			r = err_sys(e, r, "cannot write the change list");
	}
	if (r < 0)
		plan_abandon(w);
	else
		writer_free(w);
	return r;
}

int plan_finish(struct plan_writer *w, uint64_t *n, struct err *e)
{
	*n = w->count;
	return finish(w, true, e);
}

int plan_finish_lazily(struct plan_writer *w, struct err *e)
{
	return finish(w, false, e);
}

void plan_abandon(struct plan_writer *w)
{
	if (!w)
		return;
	if (!FAULT_AT("plan.unlink"))
		unlinkat(w->dirfd, w->name, 0);
	writer_free(w);
}

struct plan {
	int fd;
	uint64_t end; /* offset of the end mark */
	uint64_t count;
	char *window; /* a piece of the file: [at, at + len) */
	uint64_t at;
	size_t len, cap;
};

static int corrupt(struct err *e)
{
	return err_set(e, ERR_CORRUPT, "a change list is damaged");
}

/* Makes the bytes [off, off + len) available; reads ahead in the direction of the walk. */
static const char *peek(struct plan *p, uint64_t off, size_t len, bool backwards)
{
	size_t want = len > BUFFER ? len : BUFFER;
	uint64_t from = off;
	ssize_t n;

	if (off >= p->at && off + len <= p->at + p->len)
		return p->window + (off - p->at);
	if (backwards && off + len > want)
		from = off + len - want;
	else if (backwards)
		from = 0;
	if (want > p->cap) {
		p->window = xrealloc(p->window, want);
		p->cap = want;
	}
	n = pread(p->fd, p->window, want, (off_t)from);
	p->at = from;
	p->len = n < 0 ? 0 : (size_t)n;
	return off >= p->at && off + len <= p->at + p->len ? p->window + (off - p->at)
							   : NULL;
}

static int verify(struct plan *p, uint64_t size, struct err *e)
{
	struct end_mark end;
	XXH64_state_t hash;
	const char *s;

	if (size < sizeof(magic) + sizeof(end))
		return corrupt(e);
	p->end = size - sizeof(end);
	s = peek(p, p->end, sizeof(end), true);
	if (!s)
		return corrupt(e);
	memcpy(&end, s, sizeof(end));
	if (end.zero || end.version != 1)
		return corrupt(e);
	XXH64_reset(&hash, 0);
	for (uint64_t off = 0; off < p->end;) {
		size_t n = p->end - off < BUFFER ? p->end - off : BUFFER;

		s = peek(p, off, n, false);
		if (!s || (off == 0 && memcmp(s, magic, sizeof(magic)) != 0))
			return corrupt(e);
		XXH64_update(&hash, s, n);
		off += n;
	}
	p->count = end.count;
	return XXH64_digest(&hash) == end.checksum ? 0 : corrupt(e);
}

int plan_open(int dirfd, const char *name, struct plan **out, struct err *e)
{
	struct plan *p;
	struct stat st;
	int fd = FAULT_AT("plan.open")
			 ? -1
			 : openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(e, errno, "cannot read the change list");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	p = xcalloc(1, sizeof(*p));
	p->fd = fd;
	if (verify(p, (uint64_t)st.st_size, e) < 0) {
		plan_close(p);
		return -1;
	}
	*out = p;
	return 0;
}

void plan_close(struct plan *p)
{
	if (!p)
		return;
	close(p->fd);
	free(p->window);
	free(p);
}

uint64_t plan_count(const struct plan *p)
{
	return p->count;
}

/* Decodes the @len bytes at @s. The checksum was right: this guards against our own bugs. */
static int decode(const char *s, size_t len, struct plan_rec *r)
{
	struct fixed f;

	if (len < sizeof(f))
		return -1;
	memcpy(&f, s, sizeof(f));
	if (len !=
	    sizeof(f) + (uint64_t)f.rel_len + 1 + f.link_len + 1 + f.nxbefore + f.nxafter)
		return -1;
	s += sizeof(f);
	*r = (struct plan_rec){ .kind = f.kind,
				.flags = f.flags,
				.layer = f.layer,
				.serial = f.serial,
				.before = f.before,
				.after = f.after,
				.rel = s,
				.link = s + f.rel_len + 1,
				.nxbefore = f.nxbefore,
				.nxafter = f.nxafter };
	r->xbefore = r->link + f.link_len + 1;
	r->xafter = r->xbefore + f.nxbefore;
	return r->rel[f.rel_len] || r->link[f.link_len] ? -1 : 0;
}

int plan_each(struct plan *p, bool backwards, plan_fn *fn, void *arg, struct err *e)
{
	uint64_t off = backwards ? p->end : sizeof(magic);
	struct plan_rec r;
	uint32_t len;
	const char *s;
	int x;

	while (backwards ? off > sizeof(magic) : off < p->end) {
		s = peek(p, backwards ? off - sizeof(len) : off, sizeof(len), backwards);
		if (!s)
			return corrupt(e);
		memcpy(&len, s, sizeof(len));
		if (len > RECORD_MAX || (backwards && off < len + 2 * sizeof(len)))
			return corrupt(e);
		if (backwards)
			off -= len + 2 * sizeof(len);
		s = peek(p, off + sizeof(len), len, backwards);
		if (!s || decode(s, len, &r) < 0)
			return corrupt(e);
		x = fn(arg, &r, e);
		if (x)
			return x;
		if (!backwards)
			off += len + 2 * sizeof(len);
	}
	return 0;
}
