/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/fold.h"
#include "audit/parts.h"
#include "audit/read.h"
#include "audit/record.h"
#include "audit/volumes.h"
#include "base/cleanup.h"

#define HEAD_FORMAT "stet-audit 1 %020" PRIu64 " %020" PRIu64 " %s\n"
/* Bytes of a record besides its fields: number and two hashes. */
enum { RECORD_FRAME = 180 };

enum { HEAD_LEN = 13 + 21 + 21 + HASH_HEX + 1, TAIL_MAX = 1 << 20, GATHER_MAX = 1 << 16 };

struct audit {
	int dir, log, head;
	uint64_t full; /* of the size of a volume */
	uint64_t lost; /* records that could not be written */
	bool held;     /* the lock is ours; records gather in @line */
	uint64_t gathered;
	struct chain chain; /* under the lock: where it stands with what is in @line */
	struct fold *fold;  /* NULL: nothing was executed yet */
	struct buf body, line;
};

void hash_hex(const void *data, size_t len, char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, data);
	sha256_digest(&ctx, sizeof(raw), raw);
	for (size_t i = 0; i < sizeof(raw); i++) {
		hex[2 * i] = digits[raw[i] >> 4];
		hex[2 * i + 1] = digits[raw[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void chain_start(struct chain *c)
{
	*c = (struct chain){ 0 };
	memset(c->hash, '0', HASH_HEX);
}

int head_write(int fd, const struct chain *c)
{
	char text[HEAD_LEN + 1];

	snprintf(text, sizeof(text), HEAD_FORMAT, c->seq, c->size, c->hash);
	return pwrite(fd, text, HEAD_LEN, 0) == HEAD_LEN ? 0 : -EIO;
}

int head_read(int fd, struct chain *c)
{
	char text[HEAD_LEN + 1], again[HEAD_LEN + 1];
	ssize_t n = pread(fd, text, HEAD_LEN, 0);

	chain_start(c);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	text[n] = '\0';
	if (n != HEAD_LEN || sscanf(text, "stet-audit 1 %20" SCNu64 " %20" SCNu64 " %64s",
				    &c->seq, &c->size, c->hash) != 3)
		return -EBADMSG;
	snprintf(again, sizeof(again), HEAD_FORMAT, c->seq, c->size, c->hash);
	return strcmp(text, again) == 0 ? 0 : -EBADMSG;
}

int audit_open(const char *dir, struct audit **out)
{
	AUTO_CLOSE int d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int log = -1, head = -1;
	struct audit *a;

	if (d < 0)
		return -errno;
	log = openat(d, AUDIT_LOG, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (log < 0)
		return -errno;
	head = openat(d, AUDIT_HEAD, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (head < 0)
		return -errno;
	a = xcalloc(1, sizeof(*a));
	a->dir = TAKE_FD(d);
	a->full = AUDIT_VOLUME_MAX;
	a->log = TAKE_FD(log);
	a->head = TAKE_FD(head);
	*out = a;
	return 0;
}

/* Appends the record whose fields are in a->body, behind *c. */
static void add_line(struct audit *a, struct chain *c)
{
	size_t from = a->line.len;

	buf_addf(&a->line, "{\"seq\":%" PRIu64 ",\"prev\":\"%s\",", ++c->seq, c->hash);
	buf_add(&a->line, buf_str(&a->body), a->body.len);
	hash_hex(a->line.data + from, a->line.len - from, c->hash);
	buf_addf(&a->line, ",\"hash\":\"%s\"}\n", c->hash);
}

static void add_trouble(struct audit *a, struct chain *c, const char *event, uint64_t n)
{
	struct buf kept = a->body;

	a->body = (struct buf)BUF_INIT;
	record_trouble(event, n, &a->body);
	add_line(a, c);
	buf_free(&a->body);
	a->body = kept;
}

/*
 * The file is longer than the head says: a writer was killed between the two. Whole lines that
 * follow the chain are adopted; a torn line is ended with a newline. Returns its length.
 */
static uint64_t adopt(struct audit *a, struct chain *c, uint64_t size)
{
	uint64_t len = size - c->size, seq;
	AUTO_FREE char *text = NULL;
	char *p, *end;

	/* No writer of ours leaves that much: the chain goes on behind it. */
	if (len > TAIL_MAX)
		return len;
	text = xmalloc(len + 1);
	if (pread(a->log, text, len, (off_t)c->size) != (ssize_t)len)
		return len;
	text[len] = '\0';
	for (p = text; (end = memchr(p, '\n', len - (size_t)(p - text))); p = end + 1) {
		struct chain next = *c;

		if (chain_follow(&next, p, (size_t)(end - p), &seq))
			break;
		next.size += (uint64_t)(end - p) + 1;
		*c = next;
	}
	return len - (uint64_t)(p - text);
}

/* Finds the end of the chain without a head: behind the last line that is a record. */
static void find_end(struct audit *a, struct chain *c, uint64_t size)
{
	uint64_t from = size > TAIL_MAX ? size - TAIL_MAX : 0, len = size - from, seq;
	AUTO_FREE char *text = xmalloc(len + 1);
	struct chain last;
	char *p, *end;

	if (pread(a->log, text, len, (off_t)from) != (ssize_t)len)
		len = 0;
	text[len] = '\0';
	for (p = text; (end = memchr(p, '\n', len - (size_t)(p - text))); p = end + 1) {
		chain_start(&last);
		chain_follow(&last, p, (size_t)(end - p), &seq);
		if (seq)
			*c = last;
	}
	c->size = size;
}

/*
 * Under the lock: finds the end of the chain, and what has to be said about how it was found.
 */
static int catch_up(struct audit *a, struct chain *c)
{
	struct stat st;
	uint64_t size, torn;
	int r;

	if (fstat(a->log, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	r = head_read(a->head, c);
	if (r == -ENOENT && size == 0)
		return 0;
	if (r < 0) {
		find_end(a, c, size);
		add_trouble(a, c, "head lost", c->seq);
		return 0;
	}
	if (size == 0 && c->size && volumes_has(a->dir, c->seq)) {
		; /* somebody was killed who had just put it on the shelf */
	} else if (size < c->size) {
		add_trouble(a, c, "cut", c->size - size);
	} else if (size > c->size) {
		torn = adopt(a, c, size);
		if (torn) {
			buf_addc(&a->line, '\n');
			add_trouble(a, c, "torn", torn);
		}
	}
	c->size = size;
	return 0;
}

static int write_all(int fd, const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(fd, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		s += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * Turns a full file into a volume. If that fails, the file grows; the next record tries again.
 */
static void turn_over(struct audit *a, struct chain *c)
{
	uint64_t gone;

	if (c->size >= a->full && !a->line.len &&
	    volumes_put(a->dir, a->log, c, &gone) == 0 && gone)
		add_trouble(a, c, "pruned", gone);
}

static int lock_books(struct audit *a)
{
	int r;

	while (flock(a->head, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	buf_reset(&a->line);
	a->gathered = 0;
	r = catch_up(a, &a->chain);
	if (r < 0) {
		flock(a->head, LOCK_UN);
		return r;
	}
	turn_over(a, &a->chain);
	if (a->lost)
		add_trouble(a, &a->chain, "lost", a->lost);
	return 0;
}

static int write_lines(struct audit *a)
{
	int r = write_all(a->log, a->line.data, a->line.len);

	if (r == 0) {
		a->lost = 0;
		a->chain.size += a->line.len;
		r = head_write(a->head, &a->chain);
	} else {
		a->lost += a->gathered;
	}
	a->gathered = 0;
	buf_reset(&a->line);
	return r;
}

static int unlock_books(struct audit *a)
{
	int r = a->line.len ? write_lines(a) : 0;

	a->held = false;
	flock(a->head, LOCK_UN);
	return r;
}

static int append(struct audit *a)
{
	int r = a->held ? 0 : lock_books(a);

	if (r < 0) {
		a->lost++;
		return r;
	}
	add_line(a, &a->chain);
	a->gathered++;
	return a->held && a->line.len < GATHER_MAX ? 0 : unlock_books(a);
}

void audit_gather(struct audit *a, bool begin)
{
	if (!a || a->held == begin)
		return;
	if (begin)
		a->held = lock_books(a) == 0;
	else
		unlock_books(a);
}

void audit_volume(struct audit *a, uint64_t size)
{
	a->full = size;
}

static void tell_folded(struct audit *a, bool now)
{
	if (!fold_due(a->fold, now))
		return;
	buf_reset(&a->body);
	while (fold_tell(a->fold, &a->body)) {
		append(a);
		buf_reset(&a->body);
	}
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	tell_folded(a, true);
	audit_gather(a, false);
	fold_free(a->fold);
	close(a->dir);
	close(a->log);
	close(a->head);
	buf_free(&a->body);
	buf_free(&a->line);
	free(a);
}

int audit_exec(struct audit *a, const struct audit_exec *x)
{
	if (!a)
		return 0;
	if (!a->fold)
		a->fold = fold_new();
	tell_folded(a, false);
	if (fold_exec(a->fold, x))
		return 0;
	buf_reset(&a->body);
	record_exec(x, &a->body);
	fold_written(a->fold, a->body.len + RECORD_FRAME);
	return append(a);
}

int audit_op(struct audit *a, const struct audit_op *o)
{
	if (!a)
		return 0;
	tell_folded(a, true);
	buf_reset(&a->body);
	record_op(o, &a->body);
	return append(a);
}

int audit_exit(struct audit *a, int64_t txn, pid_t pid, int status)
{
	if (!a)
		return 0;
	tell_folded(a, false);
	if (a->fold && fold_exit(a->fold, txn, pid, status))
		return 0;
	buf_reset(&a->body);
	record_exit(txn, pid, status, &a->body);
	if (a->fold)
		fold_written(a->fold, a->body.len + RECORD_FRAME);
	return append(a);
}
