/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_INSIDE_SOCKET_H
#define STET_CTL_INSIDE_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The socket by which the inside may ask for a few things about its own transaction. Each
 * connection is handed to a worker process outside, which trusts nothing that it receives: one
 * at a time, and no faster than a person or a working program would ask. Checkpoints at
 * intervals are taken by such a worker, too.
 */
#define INSIDE_SOCKET_PATH "/dev/stet"

struct inside_calls {
	/*
	 * Starts the worker that answers on @conn; -1: an interval is over. The pid of a
	 * child, or -errno.
	 */
	pid_t (*visit)(void *arg, int conn);
	void *arg;
	int64_t every_ms; /* 0: no intervals */
};

struct inside_socket {
	const struct inside_calls *calls;
	int listen;  /* -1: there is no socket */
	int visitor; /* pidfd of the worker; -1: none runs */
	pid_t pid;
	bool open, tick; /* tick: the worker takes the checkpoint of an interval */
	int64_t tick_at, since, full_at; /* CLOCK_MONOTONIC in ms */
};

/* Makes the socket, without a name yet. 0 or -errno. */
int inside_socket_make(struct inside_socket *d, const struct inside_calls *calls);

/* In the sandbox: gives the socket @fd its name. 0 or -errno. */
int inside_socket_bind(int fd);

/* From now on connections are accepted. */
void inside_socket_start(struct inside_socket *d);

enum { INSIDE_SOCKET_POLLS = 2 };
void inside_socket_poll(const struct inside_socket *d,
			struct pollfd p[INSIDE_SOCKET_POLLS]);
int64_t inside_socket_at(
	const struct inside_socket *d); /* when to look again, in ms; 0: no need */
void inside_socket_serve(struct inside_socket *d,
			 const struct pollfd p[INSIDE_SOCKET_POLLS]);

/* Everything inside has ended: a worker that still answers is given a moment, then killed. */
void inside_socket_close(struct inside_socket *d);

#endif
