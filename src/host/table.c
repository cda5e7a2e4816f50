/* SPDX-License-Identifier: Apache-2.0 */
#include "host/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "sys/fs.h"

/* So many are kept in memory: most transactions have fewer changes. */
enum { IN_MEMORY = 8192 };

/* The lower half of a key's hash says where to look first, and nearly always who is meant. */
struct slot {
	uint32_t hash;
	uint32_t at; /* 1 for the first record; 0: free */
};

struct table {
	int dir, fd;	     /* fd: -1 as long as they are in memory */
	size_t size, stride; /* of a record; with its key before it */
	struct slot *slots;
	size_t cap; /* a power of two */
	size_t n, room;
	size_t most; /* in memory */
	char *v;
	char *one; /* key and record, on the way to the file or from it */
};

/* For tests: a table in a file needs no thousands of records then. */
static size_t most_in_memory(void)
{
	const char *text = getenv("STET_TABLE_MAX");

	return text ? strtoul(text, NULL, 10) : IN_MEMORY;
}

struct table *table_new(int dir, size_t size)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->dir = dir;
	t->fd = -1;
	t->size = size;
	t->stride = sizeof(uint64_t) + size;
	t->most = dir < 0 ? SIZE_MAX : most_in_memory();
	t->one = xmalloc(t->stride);
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	cleanup_close(&t->fd);
	free(t->slots);
	free(t->v);
	free(t->one);
	free(t);
}

size_t table_count(const struct table *t)
{
	return t->n;
}

/* Some keys are hashes, others count up. */
static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)((key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 32);
}

static int cannot(struct err *e, int err)
{
	return err_sys(e, err, "cannot keep what is known of many paths");
}

/* The key and the record with this number. NULL: it cannot be read. */
static const char *record(const struct table *t, size_t at, struct err *e)
{
	ssize_t n = -1;

	if (t->fd < 0)
		return t->v + at * t->stride;
	if (!FAULT_AT("table.read"))
		n = pread(t->fd, t->one, t->stride, (off_t)(at * t->stride));
	if (n == (ssize_t)t->stride)
		return t->one;
	cannot(e, n < 0 ? errno : EIO);
	return NULL;
}

/*
 * The slot of @key, or the free one where it would be; NULL if it cannot be told. *rec: the record
 * with its key, or NULL.
 */
static struct slot *find(const struct table *t, uint64_t key, const char **rec,
			 struct err *e)
{
	uint32_t hash = hash_of(key);
	size_t i = hash & (t->cap - 1);

	for (*rec = NULL; t->slots[i].at; i = (i + 1) & (t->cap - 1)) {
		if (t->slots[i].hash != hash)
			continue;
		*rec = record(t, t->slots[i].at - 1, e);
		if (!*rec)
			return NULL;
		if (memcmp(*rec, &key, sizeof(key)) == 0)
			break;
		*rec = NULL;
	}
	return &t->slots[i];
}

/* Without a look at the records: they may be many, and elsewhere. */
static void grow(struct table *t)
{
	AUTO_FREE struct slot *old = t->slots;
	size_t n = t->cap;

	t->cap = n ? 2 * n : 16;
	t->slots = xcalloc(t->cap, sizeof(*t->slots));
	for (size_t k = 0; k < n; k++) {
		size_t i = old[k].hash & (t->cap - 1);

		if (!old[k].at)
			continue;
		while (t->slots[i].at)
			i = (i + 1) & (t->cap - 1);
		t->slots[i] = old[k];
	}
}

static int write_at(int fd, const char *data, size_t len, size_t at, struct err *e)
{
	while (len) {
		ssize_t n = FAULT_AT("table.write") ? -1
						    : pwrite(fd, data, len, (off_t)at);

		if (n <= 0)
			return cannot(e, n < 0 ? errno : ENOSPC);
		data += n;
		at += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Not mapped: that would be memory of ours, too. */
static int move_out(struct table *t, struct err *e)
{
	AUTO_CLOSE int fd = FAULT_AT("table.open") ? -errno
						   : fs_open_nameless(t->dir, ".");

	if (fd < 0)
		return cannot(e, fd);
	if (write_at(fd, t->v, t->n * t->stride, 0, e) < 0)
		return -1;
	t->fd = TAKE_FD(fd);
	free(t->v);
	t->v = NULL;
	return 0;
}

static int append(struct table *t, const char *one, struct err *e)
{
	if (t->fd < 0 && t->n >= t->most && move_out(t, e) < 0)
		return -1;
	if (t->fd >= 0)
		return write_at(t->fd, one, t->stride, t->n * t->stride, e);
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 4;
		t->v = xrealloc(t->v, t->room * t->stride);
	}
	memcpy(t->v + t->n * t->stride, one, t->stride);
	return 0;
}

int table_get(const struct table *t, uint64_t key, void *rec, struct err *e)
{
	const char *found = NULL;

	if (t->n && !find(t, key, &found, e))
		return -1;
	if (found)
		memcpy(rec, found + sizeof(key), t->size);
	return found ? 1 : 0;
}

int table_put(struct table *t, uint64_t key, const void *rec, struct err *e)
{
	const char *found;
	struct slot *s;

	if (4 * (t->n + 1) > 3 * t->cap)
		grow(t);
	s = find(t, key, &found, e);
	if (!s)
		return -1;
	if (found && t->fd < 0) {
		memcpy(t->v + (s->at - 1) * t->stride + sizeof(key), rec, t->size);
		return 0;
	}
	memcpy(t->one, &key, sizeof(key));
	memcpy(t->one + sizeof(key), rec, t->size);
	if (found)
		return write_at(t->fd, t->one, t->stride, (s->at - 1) * t->stride, e);
	if (t->n >= UINT32_MAX - 1)
		return cannot(e, EOVERFLOW);
	if (append(t, t->one, e) < 0)
		return -1;
	*s = (struct slot){ hash_of(key), (uint32_t)++t->n };
	return 0;
}
