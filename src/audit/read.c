/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/parts.h"
#include "audit/read.h"
#include "audit/volumes.h"
#include "base/cleanup.h"

#define END_MARK ",\"hash\":\""
enum { END_LEN = sizeof(END_MARK) - 1 + HASH_HEX + 2, LINE_MAX_LEN = 16 << 20 };

static bool all_hex(const char *s)
{
	return strspn(s, "0123456789abcdef") >= HASH_HEX;
}

/* The parts of a line that make it a record; false if it is none. */
static bool take_apart(const char *line, size_t len, uint64_t *seq,
		       char prev[HASH_HEX + 1], char hash[HASH_HEX + 1])
{
	int n = 0;

	if (len < END_LEN + 20 || line[len - 1] != '}' || line[len - 2] != '"' ||
	    memcmp(line + len - END_LEN, END_MARK, sizeof(END_MARK) - 1) != 0 ||
	    sscanf(line, "{\"seq\":%20" SCNu64 ",\"prev\":\"%64[0-9a-f]\",%n", seq, prev,
		   &n) != 2 ||
	    n == 0 || strlen(prev) != HASH_HEX)
		return false;
	memcpy(hash, line + len - 2 - HASH_HEX, HASH_HEX);
	hash[HASH_HEX] = '\0';
	return all_hex(hash);
}

const char *chain_follow(struct chain *c, const char *line, size_t len, uint64_t *seq)
{
	char prev[HASH_HEX + 1] = "", hash[HASH_HEX + 1], real[HASH_HEX + 1];
	const char *wrong = NULL;

	*seq = 0;
	/* A NUL would end every comparison too early. */
	if (memchr(line, '\0', len) || !take_apart(line, len, seq, prev, hash)) {
		*seq = 0;
		return "is no record";
	}
	hash_hex(line, len - END_LEN, real);
	if (strcmp(hash, real) != 0)
		wrong = "was edited: its hash does not fit";
	else if (*seq != c->seq + 1)
		wrong = *seq > c->seq + 1
				? "does not follow: records before it are missing"
				: "is out of order";
	else if (strcmp(prev, c->hash) != 0)
		wrong = "does not follow: the record before it was another one";
	c->seq = *seq;
	memcpy(c->hash, hash, sizeof(c->hash));
	return wrong;
}

struct audit_reader {
	int dir, fd, notify;
	struct volumes shelf; /* volumes that are still to be read, from `volume` on */
	size_t volume;
	bool live;	 /* fd is audit.jsonl itself */
	bool again;	 /* it begins with what was told already, perhaps */
	off_t offset;	 /* in fd */
	struct buf text; /* read, from `at` on not yet told */
	size_t at;
	uint64_t number;
	struct chain chain;
};

/* The next volume, or at last the file that is written to. */
static int next_volume(struct audit_reader *r)
{
	char name[VOLUME_NAME] = AUDIT_LOG;
	int fd;

	r->live = r->volume == r->shelf.n;
	if (!r->live)
		volume_name(r->shelf.v[r->volume++], name);
	fd = openat(r->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	cleanup_close(&r->fd);
	r->fd = fd;
	r->offset = 0;
	return 0;
}

/* Lists the volumes; those that were read already are left out. */
static int look_up(struct audit_reader *r)
{
	int e;

	volumes_free(&r->shelf);
	r->volume = 0;
	e = volumes_list(r->dir, &r->shelf);
	while (r->volume < r->shelf.n && r->shelf.v[r->volume] <= r->chain.seq)
		r->volume++;
	return e < 0 ? e : next_volume(r);
}

int audit_reader_open(const char *dir, struct audit_reader **out)
{
	AUTO_FREE char *path = xasprintf("%s/" AUDIT_LOG, dir);
	AUTO_CLOSE int d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct audit_reader *r;
	int e;

	if (d < 0)
		return -errno;
	r = xcalloc(1, sizeof(*r));
	r->fd = r->notify = -1;
	r->dir = TAKE_FD(d);
	anchor_read(r->dir, &r->chain);
	e = look_up(r);
	if (e < 0) {
		audit_reader_close(r);
		return e;
	}
	r->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r->notify >= 0)
		inotify_add_watch(r->notify, path, IN_MODIFY);
	*out = r;
	return 0;
}

void audit_reader_close(struct audit_reader *r)
{
	if (!r)
		return;
	cleanup_close(&r->dir);
	cleanup_close(&r->fd);
	cleanup_close(&r->notify);
	volumes_free(&r->shelf);
	buf_free(&r->text);
	free(r);
}

/*
 * Has the file become a volume since it was opened? Then the bytes just read may be of a later
 * file, at an offset that means nothing there: everything that was not reported yet is read
 * again.
 */
static int put_aside(struct audit_reader *r)
{
	struct volumes now;
	bool moved;
	int e = volumes_list(r->dir, &now);

	if (e < 0)
		return e;
	moved = now.n && (!r->shelf.n || now.v[now.n - 1] > r->shelf.v[r->shelf.n - 1]);
	volumes_free(&now);
	if (!moved)
		return 0;
	r->again = true;
	buf_reset(&r->text);
	r->at = 0;
	e = look_up(r);
	return e < 0 ? e : 1;
}

/* Reads on: 1 if there may be something now. */
static int fill(struct audit_reader *r)
{
	char chunk[65536];
	ssize_t n;
	int e;

	if (r->at) {
		memmove(r->text.data, r->text.data + r->at, r->text.len - r->at);
		buf_truncate(&r->text, r->text.len - r->at);
		r->at = 0;
	}
	if (r->text.len > LINE_MAX_LEN)
		return -EFBIG;
	do
		n = pread(r->fd, chunk, sizeof(chunk), r->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	e = r->live ? put_aside(r) : 0;
	if (e)
		return e;
	if (n == 0 && !r->live) {
		e = next_volume(r);
		return e < 0 ? e : 1;
	}
	r->offset += n;
	buf_add(&r->text, chunk, (size_t)n);
	return n > 0;
}

/* Was this line reported before the file became a volume? */
static bool told(struct audit_reader *r, const char *text)
{
	uint64_t seq = 0;

	if (!r->again)
		return false;
	if (sscanf(text, "{\"seq\":%20" SCNu64 ",", &seq) == 1 && seq > r->chain.seq)
		r->again = false;
	return r->again;
}

int audit_read(struct audit_reader *r, struct audit_line *l)
{
	char *nl;
	int n;

	for (;;) {
		nl = r->text.len > r->at
			     ? memchr(r->text.data + r->at, '\n', r->text.len - r->at)
			     : NULL;
		if (nl) {
			*nl = '\0';
			if (!told(r, r->text.data + r->at))
				break;
			r->at = (size_t)(nl - r->text.data) + 1;
			continue;
		}
		n = fill(r);
		if (n <= 0)
			return n;
	}
	*l = (struct audit_line){ .text = r->text.data + r->at,
				  .len = (size_t)(nl - r->text.data) - r->at,
				  .number = ++r->number };
	l->wrong = chain_follow(&r->chain, l->text, l->len, &l->seq);
	l->sound = !l->wrong;
	r->at += l->len + 1;
	return 1;
}

int audit_wait(struct audit_reader *r)
{
	struct pollfd p = { .fd = r->notify, .events = POLLIN };
	char events[4096];

	/* Without inotify, or if it misses something, the file is looked at now and then. */
	if (poll(&p, 1, 1000) < 0)
		return -errno;
	while (p.revents && read(r->notify, events, sizeof(events)) > 0)
		;
	return 0;
}

struct verify {
	audit_complain *fn;
	void *arg;
	struct chain head;
	bool head_seen; /* a line with the head's number, */
	bool head_same; /* and hash */
	bool torn;	/* the line before was no record: the next may explain it */
	uint64_t records, last;
};

static void check_line(struct verify *v, const struct audit_reader *r,
		       const struct audit_line *l)
{
	bool explains = v->torn && l->sound && strstr(l->text, "\"event\":\"torn\"");

	if (v->torn && !explains)
		v->fn(v->arg, l->number - 1, "is no record");
	v->torn = !l->seq;
	if (!l->seq)
		return;
	if (l->wrong)
		v->fn(v->arg, l->number, l->wrong);
	if (l->sound && strstr(l->text, "\"event\":\"head lost\""))
		v->fn(v->arg, l->number, "says that " AUDIT_HEAD " had been lost");
	v->records++;
	if (l->seq > v->last)
		v->last = l->seq;
	if (l->seq == v->head.seq) {
		v->head_seen = true;
		v->head_same = strcmp(r->chain.hash, v->head.hash) == 0;
	}
}

static void check_end(struct verify *v, const struct audit_reader *r, int head)
{
	AUTO_FREE char *missing = NULL;

	if (v->torn)
		v->fn(v->arg, r->number, "is no record");
	if (r->text.len > r->at)
		v->fn(v->arg, r->number + 1,
		      "is only the beginning of a record: a crash; the next record says so");
	if (head == -ENOENT && v->records)
		v->fn(v->arg, 0,
		      AUDIT_HEAD " is missing: whether the end is whole is not known");
	else if (head < 0 && head != -ENOENT)
		v->fn(v->arg, 0, AUDIT_HEAD " is damaged");
	else if (head == 0 && v->head.seq > v->last) {
		uint64_t n = v->head.seq - v->last;

		missing = xasprintf("%s: %" PRIu64 " record%s%s %s missing",
				    r->number ? "is the last" : AUDIT_LOG " is empty", n,
				    n == 1 ? "" : "s", r->number ? " after it" : "",
				    n == 1 ? "is" : "are");
		v->fn(v->arg, r->number, missing);
	} else if (head == 0 && v->head.seq && (!v->head_seen || !v->head_same))
		v->fn(v->arg, r->number, "is not the end that " AUDIT_HEAD " tells of");
}

int audit_verify(const char *dir, audit_complain *fn, void *arg, uint64_t *records,
		 struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/" AUDIT_HEAD, dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct verify v = { .fn = fn, .arg = arg };
	struct audit_reader *reader = NULL;
	struct audit_line l;
	int head, r;

	*records = 0;
	r = audit_reader_open(dir, &reader);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, "cannot open %s/" AUDIT_LOG, dir);
	/*
	 * No process may write while the two are compared: otherwise the head could be ahead
	 * of the lines read.
	 */
	if (fd >= 0)
		flock(fd, LOCK_SH);
	head = fd < 0 ? -ENOENT : head_read(fd, &v.head);
	if (!reader) {
		if (head == 0 && v.head.seq)
			fn(arg, 0, AUDIT_LOG " is missing");
		return 0;
	}
	while ((r = audit_read(reader, &l)) > 0)
		check_line(&v, reader, &l);
	if (r == 0)
		check_end(&v, reader, head);
	*records = v.records;
	audit_reader_close(reader);
	return r < 0 ? err_sys(e, r, "cannot read %s/" AUDIT_LOG, dir) : 0;
}
