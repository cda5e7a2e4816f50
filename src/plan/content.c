/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "diff/gitindex.h"
#include "layer/meta.h"
#include "plan/content.h"
#include "plan/parts.h"
#include "sys/fs.h"

/* The contents of objects: to tell a touched object from a changed one, and to merge. */

enum {
	CHUNK = 128 * 1024,
	TEXT_MAX = 4 * 1024 * 1024,
	INDEX_MAX = 16 * 1024 *
		    1024, /* a larger index of git is hashed like any other file */
};

/* Opens a regular file of the host or of the upper for reading; negative if it is none. */
static int open_file(struct apply *a, const struct plan_rec *r, bool host,
		     struct place *p, struct stat *st)
{
	AUTO_CLOSE int fd = -1;
	struct err e;

	if (apply_at(a, r, p, &e) < 0 && (host || e.kind != ERR_CONFLICT))
		return -1;
	fd = fs_open_read(host ? p->host : p->up, p->name);
	return fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode) ? -1 : TAKE_FD(fd);
}

/* Reads the whole file if it has at most @max bytes. */
static bool read_all(int fd, size_t max, struct buf *out)
{
	AUTO_FREE char *chunk = xmalloc(CHUNK);
	ssize_t n;

	while ((n = pread(fd, chunk, CHUNK, (off_t)out->len)) > 0) {
		buf_add(out, chunk, (size_t)n);
		if (out->len > max)
			return false;
	}
	return n == 0;
}

static void hash_part(void *hash, const void *part, size_t len)
{
	XXH64_update(hash, part, len);
}

/* Hashes git's index without the fields that stat(2) filled in. */
static bool hash_index(XXH64_state_t *hash, int fd, const char *rel)
{
	AUTO_BUF struct buf data = BUF_INIT;

	return gitindex_name(rel) && read_all(fd, INDEX_MAX, &data) &&
	       gitindex_parts(buf_str(&data), data.len, hash_part, hash);
}

static bool hash_file(XXH64_state_t *hash, int fd, struct buf *text)
{
	AUTO_FREE char *chunk = xmalloc(CHUNK);
	ssize_t n;

	while ((n = read(fd, chunk, CHUNK)) > 0) {
		XXH64_update(hash, chunk, (size_t)n);
		if (text)
			buf_add(text, chunk, (size_t)n);
	}
	if (text && memchr(buf_str(text), '\0', text->len))
		buf_reset(text);
	return n == 0;
}

/*
 * Hashes the content of another object: the target of a link, the number of a device, or
 * nothing.
 */
static bool hash_other(XXH64_state_t *hash, int dir, const char *name,
		       const struct stat *st)
{
	AUTO_BUF struct buf target = BUF_INIT;

	if (S_ISDIR(st->st_mode))
		return true;
	if (S_ISLNK(st->st_mode) && fs_readlink(dir, name, &target) < 0)
		return false;
	XXH64_update(hash, buf_str(&target), target.len);
	XXH64_update(hash, &st->st_rdev, sizeof(st->st_rdev));
	return true;
}

static bool digest_of(struct apply *a, uint32_t layer, const char *rel, bool host,
		      uint64_t *digest, struct buf *text, size_t max)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	AUTO_BUF struct buf attrs = BUF_INIT;
	AUTO_CLOSE int fd = -1;
	XXH64_state_t hash;
	struct place p;
	struct stat st;
	struct err e;
	int dir;

	/* Only files are opened: opening a device can start it. */
	if (apply_at(a, &r, &p, &e) < 0 && e.kind != ERR_CONFLICT)
		return false;
	dir = host ? p.host : p.up;
	if (dir < 0 || fstatat(dir, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	XXH64_reset(&hash, 0);
	if (!S_ISREG(st.st_mode)) {
		if (!hash_other(&hash, dir, p.name, &st))
			return false;
	} else {
		fd = open_file(a, &r, host, &p, &st);
		if (fd < 0 ||
		    (!hash_index(&hash, fd, rel) &&
		     !hash_file(&hash, fd, (size_t)st.st_size <= max ? text : NULL)))
			return false;
	}
	/* A new ACL is a change of the file, too. */
	if (meta_pack(dir, p.name, &attrs) < 0)
		return false;
	XXH64_update(&hash, buf_str(&attrs), attrs.len);
	*digest = XXH64_digest(&hash);
	return true;
}

bool apply_digest(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest,
		  struct buf *text, size_t max)
{
	return digest_of(a, layer, rel, true, digest, text, max);
}

uint64_t apply_digest_dir(const char *packed, size_t n)
{
	return XXH64(packed, n, 0);
}

bool apply_digest_up(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest)
{
	return digest_of(a, layer, rel, false, digest, NULL, 0);
}

bool apply_text(struct apply *a, uint32_t layer, const char *rel, bool host,
		struct buf *out)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	AUTO_CLOSE int fd = -1;
	struct place p;
	struct stat st;

	fd = open_file(a, &r, host, &p, &st);
	return fd >= 0 && read_all(fd, TEXT_MAX, out) &&
	       !memchr(buf_str(out), '\0', out->len);
}
