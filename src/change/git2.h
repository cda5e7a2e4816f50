/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CHANGE_GIT2_H
#define STET_CHANGE_GIT2_H

#include <git2.h>

#include "base/err.h"

/*
 * libgit2, loaded when it is first needed and kept. For this room only. Members have the
 * names of the functions without "git_".
 */
struct git2 {
	__typeof__(git_libgit2_init) *libgit2_init;
	__typeof__(git_error_last) *error_last;
	__typeof__(git_patch_from_buffers) *patch_from_buffers;
	__typeof__(git_patch_get_delta) *patch_get_delta;
	__typeof__(git_patch_line_stats) *patch_line_stats;
	__typeof__(git_patch_print) *patch_print;
	__typeof__(git_patch_free) *patch_free;
	__typeof__(git_merge_file) *merge_file;
	__typeof__(git_merge_file_result_free) *merge_file_result_free;
};

/* NULL with ERR_UNSUPPORTED if the library is not there or lacks a function. */
const struct git2 *git2_load(struct err *e);

/* Sets *e from the library's own last error. Returns -1. */
int git2_error(const struct git2 *g, struct err *e, const char *what);

#endif
