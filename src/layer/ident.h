/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_IDENT_H
#define STET_LAYER_IDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * The identity of an object: which inode, and which version of it. Enough to tell, after a
 * crash or a race, whether the object at a path is ours, the one that was there before, or
 * somebody else's. mode == 0: there is none.
 */
struct ident {
	uint64_t ino; /* the device number is left out: it may be another after a mount */
	int64_t btime; /* time of birth: tells a reused inode number; 0: not known */
	uint32_t mode, uid, gid, nlink;
	uint64_t size;
	int64_t mtime, ctime; /* nanoseconds */
};

/* Fills in *id; a missing object is no error (mode 0). -errno. */
int ident_at(int dirfd, const char *name, struct ident *id);

/* Fills in *id from a stat(2), which does not tell the time of birth. */
struct stat;
void ident_from(const struct stat *st, struct ident *id);

/* A time of an identity as the system calls want it. */
struct timespec ident_time(int64_t ns);

/* Do both name the same inode, whatever happened to its content? */
bool ident_is(const struct ident *a, const struct ident *b);

/*
 * Do both name the same inode with the same content and attributes? ctime is not compared: a
 * rename moves it.
 */
bool ident_same(const struct ident *a, const struct ident *b);

#endif
