/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_CWD_H
#define STET_POLICY_CWD_H

#include "policy/scene.h"

/* A current directory that is looked up only when scene_cwd() is asked for it. */
extern const char cwd_later[];

/* The path that @cwd, now or earlier the scene's directory, stands for; NULL: not known. */
const char *scene_cwd(const struct scene *s, const char *cwd);

/* @path, from @cwd if it is relative, without ".", ".." and "//"; NULL if @cwd is not known. */
const char *path_clean(struct scene *s, const char *cwd, const char *path);

#endif
