/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_EXITS_H
#define STET_GATE_EXITS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * How processes end that are not ours to wait for. Each that has executed something is held
 * by a pidfd, which the kernel (from 6.15 on) lets tell the exit status once somebody has
 * waited for it. So many at one time; beyond that, and on older kernels, the status is not
 * known. Costs nothing while nobody ends: those that are still there when they are first looked
 * at are in one epoll instance from then on.
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
 * A process held by a pidfd, and its parent unless @parent is NULL: 0 if the kernel does not tell.
 * -1 if it is gone, or a thread that is not its process' first.
 */
int exits_hold(pid_t pid, pid_t *parent);

/* To be told once however often it executes something else. Takes @fd, which may be -1. */
void exits_watch(struct exits *x, pid_t pid, int fd);
bool exits_has(const struct exits *x, pid_t pid);
bool exits_full(const struct exits *x);
bool exits_unseen(const struct exits *x); /* is there one that was not looked at yet? */

struct exit_note {
	pid_t pid;
	int status; /* as waitpid(2) has it */
};

/* Some that have ended, each told once; *more: there may be others. */
unsigned exits_take(struct exits *x, struct exit_note v[EXITS_AT_ONCE], bool *more);

#endif
