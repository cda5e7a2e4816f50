/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/read.h"
#include "base/cleanup.h"

#define ANCHOR "audit.anchor"
#define NEW ".new"

void volume_name(uint64_t seq, char name[VOLUME_NAME])
{
	snprintf(name, VOLUME_NAME, "audit-%020" PRIu64 ".jsonl", seq);
}

static uint64_t volume_of(const char *name)
{
	char again[VOLUME_NAME];
	uint64_t seq;

	if (sscanf(name, "audit-%20" SCNu64 ".jsonl", &seq) != 1)
		return 0;
	volume_name(seq, again);
	return strcmp(name, again) == 0 ? seq : 0;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int volumes_list(int dir, struct volumes *s)
{
	AUTO_CLOSE int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	*s = (struct volumes){ 0 };
	if (!d)
		return -errno;
	fd = -1; /* the stream's */
	while ((de = readdir(d))) {
		uint64_t seq = volume_of(de->d_name);

		if (!seq)
			continue;
		s->v = xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
		s->v[s->n++] = seq;
	}
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), ascending);
	return 0;
}

void volumes_free(struct volumes *s)
{
	free(s->v);
	*s = (struct volumes){ 0 };
}

bool volumes_has(int dir, uint64_t seq)
{
	char name[VOLUME_NAME];

	volume_name(seq, name);
	return seq && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int anchor_read(int dir, struct chain *c)
{
	AUTO_CLOSE int fd = openat(dir, ANCHOR, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	chain_start(c);
	return fd < 0 ? -errno : head_read(fd, c);
}

static int anchor_write(int dir, const struct chain *c)
{
	AUTO_CLOSE int fd = openat(dir, ANCHOR NEW,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				   0600);
	int r;

	if (fd < 0)
		return -errno;
	r = head_write(fd, c);
	if (r < 0)
		return r;
	if (fsync(fd) < 0 || renameat(dir, ANCHOR NEW, dir, ANCHOR) < 0)
		return -errno;
	return 0;
}

/* Copies @log to the volume @seq, whole or not at all. */
static int copy_out(int dir, int log, uint64_t seq, uint64_t size)
{
	char name[VOLUME_NAME], fresh[VOLUME_NAME + sizeof(NEW)];
	AUTO_FREE char *chunk = xmalloc(1 << 20);
	AUTO_CLOSE int fd = -1;
	uint64_t at = 0;

	volume_name(seq, name);
	snprintf(fresh, sizeof(fresh), "%s" NEW, name);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	while (at < size) {
		ssize_t n = pread(log, chunk, 1 << 20, (off_t)at);

		if (n > 0)
			n = write(fd, chunk, (size_t)n);
		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;

			unlinkat(dir, fresh, 0);
			return r;
		}
		at += (uint64_t)n;
	}
	if (fsync(fd) < 0 || renameat(dir, fresh, dir, name) < 0) {
		int r = -errno;

		unlinkat(dir, fresh, 0);
		return r;
	}
	return 0;
}

/* The last record of a volume: what the chain after it begins with. */
static int last_of(int dir, uint64_t seq, struct chain *c)
{
	char name[VOLUME_NAME];
	AUTO_CLOSE int fd = -1;
	AUTO_FREE char *text = NULL;
	struct stat st;
	size_t len;
	char *nl;
	uint64_t found;

	volume_name(seq, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	len = st.st_size > 4 << 20 ? 4 << 20 : (size_t)st.st_size;
	text = xmalloc(len + 1);
	if (pread(fd, text, len, st.st_size - (off_t)len) != (ssize_t)len || len < 2 ||
	    text[len - 1] != '\n')
		return -EBADMSG;
	text[len - 1] = '\0';
	nl = memrchr(text, '\n', len - 1);
	nl = nl ? nl + 1 : text;
	chain_start(c);
	chain_follow(c, nl, (size_t)(text + len - 1 - nl), &found);
	return found == seq ? 0 : -EBADMSG;
}

static int drop_oldest(int dir, uint64_t *gone)
{
	char name[VOLUME_NAME];
	struct volumes s;
	struct chain c;
	int r = volumes_list(dir, &s);

	for (size_t i = 0; r == 0 && i + AUDIT_VOLUMES < s.n; i++) {
		/* A damaged volume stays: its end cannot be told. */
		r = last_of(dir, s.v[i], &c);
		if (r == 0)
			r = anchor_write(dir, &c);
		if (r < 0)
			break;
		volume_name(s.v[i], name);
		unlinkat(dir, name, 0);
		*gone = s.v[i];
	}
	volumes_free(&s);
	return r;
}

int volumes_put(int dir, int log, struct chain *c, uint64_t *gone)
{
	int r = copy_out(dir, log, c->seq, c->size);

	*gone = 0;
	if (r < 0)
		return r;
	if (ftruncate(log, 0) < 0)
		return -errno;
	c->size = 0;
	drop_oldest(dir, gone);
	return 0;
}
