/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_GITDIR_H
#define STET_SESSION_GITDIR_H

/*
 * The directory of the git repository that @workspace is part of, as the host has it now: the .git
 * of itself or of a directory above it, or what the file of that name stands for in a linked
 * worktree or a submodule. Absolute, to be freed; NULL if there is none.
 *
 * The file was perhaps written by the sandboxed side. A worktree counts only if its repository
 * names it, too; a submodule only below the .git/modules of another repository.
 */
char *gitdir_of(const char *workspace);

#endif
