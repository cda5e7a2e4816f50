/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_EXITS_H
#define STET_GATE_EXITS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Tells how processes end that are not our children. A process that has executed something is
 * held by a pidfd, which lets the kernel (from 6.15 on) tell the exit status once the parent
 * has waited for the process. At most EXITS_MAX are held; beyond that, and on older kernels,
 * the status is not known. While no process ends this costs nothing: pidfds that are still
 * open at the second look are in one epoll instance.
 */
enum { EXITS_MAX = 512, EXITS_AT_ONCE = 16 };

struct exits {
	int epoll; /* -1: not possible here. Readable when one that was looked at has ended */
	pid_t pids[EXITS_MAX];
	int fds[EXITS_MAX];
	unsigned n, known; /* the first @known are in @epoll */
};

void exits_open(struct exits *x);
void exits_close(struct exits *x);

/*
 * Opens a pidfd of @pid; *parent (unless @parent is NULL) is its parent, 0 if the kernel does
 * not tell. -1 if it is gone, or a thread that is not the first of its process.
 */
int exits_hold(pid_t pid, pid_t *parent);

/*
 * Watches @pid, which is reported once however often it executes something. Takes @fd, which
 * may be -1.
 */
void exits_watch(struct exits *x, pid_t pid, int fd);
bool exits_has(const struct exits *x, pid_t pid);
bool exits_full(const struct exits *x);
bool exits_unseen(const struct exits *x); /* is there one that was not looked at yet? */

struct exit_note {
	pid_t pid;
	int status; /* as waitpid(2) has it */
};

/* Returns processes that have ended, each once; *more: there may be others. */
unsigned exits_take(struct exits *x, struct exit_note v[EXITS_AT_ONCE], bool *more);

#endif
