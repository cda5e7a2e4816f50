/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_IDENT_H
#define STET_LAYER_IDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * Who an object is, and which version of it: enough to tell, after a crash or a race,
 * whether what lies at a path is what we put there, what was there before, or somebody
 * else's. mode == 0: nothing.
 */
struct ident {
	uint64_t ino;  /* the device is no part of it: it may be another after a mount */
	int64_t btime; /* 0: not known; tells a reused inode number */
	uint32_t mode, uid, gid, nlink;
	uint64_t size;
	int64_t mtime, ctime; /* nanoseconds */
};

/* Fills in *id; nothing there is no error. -errno. */
int ident_at(int dirfd, const char *name, struct ident *id);

/* The same from what a stat(2) has told already: without the time of birth. */
struct stat;
void ident_from(const struct stat *st, struct ident *id);

/* One of its times, for a call that sets it. */
struct timespec ident_time(int64_t ns);

/* The same inode, whatever happened to its content. */
bool ident_is(const struct ident *a, const struct ident *b);

/* The same inode with the same content and attributes. ctime is left out: a rename moves it. */
bool ident_same(const struct ident *a, const struct ident *b);

#endif
