/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TESTS_CHANGE_FIXTURE_H
#define STET_TESTS_CHANGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "diff/change.h"

/*
 * A host tree and an upper made by hand in a temporary directory. Every object has the
 * same mtime unless told otherwise, so that only what a test did differs.
 */
struct fixture {
	char dir[64], host[80], upper[80];
	int h, u; /* descriptors of host and upper */
	struct change_layer layer;
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

/* All take paths relative to a directory descriptor and assert success. */
void make_file(int dir, const char *path, const char *text);
void make_bytes(int dir, const char *path, const void *data, size_t len);
void make_dir(int dir, const char *path);
void make_link(int dir, const char *path, const char *target);
void make_node(int dir, const char *path, mode_t type);
void make_whiteout(int dir, const char *path);
void make_opaque(int dir, const char *path);
void set_mode(int dir, const char *path, mode_t mode);
void set_mtime(int dir, const char *path, time_t t);
void set_xattr(int dir, const char *path, const char *attr, const char *value);

/*
 * The walk as words: kind, relative path, '*' if implied, '!' if hidden, ':' and one
 * letter per difference (content, mode, owner, xattr, times): "Ma/b:ct". Control
 * characters in names are shown as "?".
 */
char *walk_words(const struct change_layer *layers, size_t n);
void check_walk(struct fixture *f, const char *expected);

/* Descriptors that are open: none may be left behind. */
int count_fds(void);

/* Runs a program in a directory; its exit status. */
int run_in(const char *cwd, const char *const argv[]);

#endif
