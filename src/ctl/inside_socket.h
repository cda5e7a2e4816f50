/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_INSIDE_SOCKET_H
#define STET_CTL_INSIDE_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The door: a socket that the inside sees, by which it may ask for a few things about its own
 * transaction. Each connection is handed to a process of its own, outside, which trusts
 * nothing that it hears; one at a time, and not faster than a person or a program that
 * works would ask. The same way a checkpoint is asked for at intervals.
 */
#define INSIDE_SOCKET_PATH "/dev/stet"

struct inside_calls {
	/* Starts who answers on @conn; -1: an interval is over. A child's pid, or -errno. */
	pid_t (*visit)(void *arg, int conn);
	void *arg;
	int64_t every_ms; /* 0: no intervals */
};

struct inside_socket {
	const struct inside_calls *calls;
	int listen;  /* -1: there is no door */
	int visitor; /* pidfd of who answers; -1: nobody does */
	pid_t pid;
	bool open, tick;		 /* tick: the visitor is there for an interval */
	int64_t tick_at, since, full_at; /* CLOCK_MONOTONIC in ms */
};

/* The socket, without a name yet. 0 or -errno. */
int inside_socket_make(struct inside_socket *d, const struct inside_calls *calls);

/* In the sandbox: gives the socket @fd its name. 0 or -errno. */
int inside_socket_bind(int fd);

/* From now on who knocks is heard. */
void inside_socket_start(struct inside_socket *d);

enum { INSIDE_SOCKET_POLLS = 2 };
void inside_socket_poll(const struct inside_socket *d,
			struct pollfd p[INSIDE_SOCKET_POLLS]);
int64_t inside_socket_at(
	const struct inside_socket *d); /* when to look again, in ms; 0: no need */
void inside_socket_serve(struct inside_socket *d,
			 const struct pollfd p[INSIDE_SOCKET_POLLS]);

/* Everything inside has ended: who still answers is given a moment, then ended. */
void inside_socket_close(struct inside_socket *d);

#endif
