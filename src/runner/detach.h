/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_DETACH_H
#define STET_RUNNER_DETACH_H

/*
 * Runs @fn in a process of its own that nobody waits for: with no terminal, no standard
 * streams, at the lowest priority. For tidying up after the user has his prompt back. It
 * inherits @keep (-1: none) and no other descriptor. 0, or -errno if it could not be started.
 */
int detach_run(void (*fn)(void *arg), void *arg, int keep);

#endif
