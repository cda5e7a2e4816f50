/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_DETACH_H
#define STET_RUNNER_DETACH_H

#include <sys/types.h>

/*
 * Runs this program anew, with @argv, in a process that nobody waits for: no terminal, no
 * standard streams, lowest priority. For tidying up after the user has his prompt back.
 * It inherits descriptor @keep (-1: none) under its number, and no other. Anew, not as a mere
 * fork: SQLite does not survive one. 0, or -errno if it could not be started.
 */
int detach_exec(char *const argv[], int keep);

/*
 * The same for a child that is waited for and works at once: its own session, no standard
 * streams, at our priority. It inherits @keep (-1: none) and nothing else. Its pid, or -errno.
 */
pid_t serve_exec(char *const argv[], int keep);

#endif
