/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/ident.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fault.h"

static int64_t ns(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000 + t->tv_nsec;
}

int ident_at(int dirfd, const char *name, struct ident *id)
{
	struct statx sx;

	*id = (struct ident){ 0 };
	if (FAULT_AT("ident.stat") || statx(dirfd, name,
					    AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT |
						    AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
					    STATX_BASIC_STATS | STATX_BTIME, &sx) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	id->ino = sx.stx_ino;
	id->btime = sx.stx_mask & STATX_BTIME ? ns(&sx.stx_btime) : 0;
	id->mode = sx.stx_mode;
	id->uid = sx.stx_uid;
	id->gid = sx.stx_gid;
	id->nlink = sx.stx_nlink;
	id->size = S_ISDIR(sx.stx_mode) ? 0 : sx.stx_size;
	id->mtime = ns(&sx.stx_mtime);
	id->ctime = ns(&sx.stx_ctime);
	return 0;
}

static int64_t spec_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

void ident_from(const struct stat *st, struct ident *id)
{
	*id = (struct ident){ .ino = st->st_ino,
			      .mode = st->st_mode,
			      .uid = st->st_uid,
			      .gid = st->st_gid,
			      .nlink = (uint32_t)st->st_nlink,
			      .size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
			      .mtime = spec_ns(&st->st_mtim),
			      .ctime = spec_ns(&st->st_ctim) };
}

/*
 * The device number is not compared: btrfs has another one at every mount, other filesystems
 * whenever disks are found in another order, and after a power cut every object would seem to
 * be another. Identities are only compared within one filesystem anyhow, since a rename does
 * not leave it.
 */
bool ident_is(const struct ident *a, const struct ident *b)
{
	return a->mode && b->mode && a->ino == b->ino &&
	       (!a->btime || !b->btime || a->btime == b->btime) &&
	       (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

bool ident_same(const struct ident *a, const struct ident *b)
{
	return ident_is(a, b) && a->mode == b->mode && a->uid == b->uid &&
	       a->gid == b->gid && a->size == b->size && a->mtime == b->mtime;
}

struct timespec ident_time(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += 1000000000;
	}
	return t;
}
