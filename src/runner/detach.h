/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_DETACH_H
#define STET_RUNNER_DETACH_H

#include <sys/types.h>

/*
 * Executes this program with @argv in a process that no other process waits for: without
 * terminal and standard streams, with the lowest priority. For housekeeping after the prompt
 * is back. It inherits descriptor @keep (-1: none) under its number, and no other. It is an
 * exec and not only a fork: SQLite does not survive a fork. 0, or -errno if it could not be
 * started.
 */
int detach_exec(char *const argv[], int keep);

/*
 * Executes this program with @argv in a child that is waited for: its own session, no standard
 * streams, our priority. It inherits @keep (-1: none) and nothing else. Its pid, or -errno.
 */
pid_t serve_exec(char *const argv[], int keep);

#endif
