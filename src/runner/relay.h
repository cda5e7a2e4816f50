/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_RELAY_H
#define STET_RUNNER_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "ctl/ctl.h"
#include "ctl/inside_socket.h"
#include "gate/gate.h"
#include "limits/limit.h"

/*
 * The caller's side of a run: standard streams, terminal, signals, time limit. The inside
 * never gets a descriptor of the host's that it could reopen through /proc/self/fd: a
 * regular file, device, directory, socket, pipe or FIFO on 0, 1 or 2 is replaced by a pipe
 * that we pump; a terminal is replaced by the sandbox's own pty.
 * A closed descriptor is as good as /dev/null.
 *
 * What was read of a regular file on stdin but not by the command is given back: the
 * file offset ends where the command's own reading ended. So it is with a pipe, within
 * bounds (tty/pipe_input.h).
 *
 * In the background of our terminal its modes are not touched and it is not read;
 * output is written. Coming to the foreground is noticed at SIGCONT or within 0.2 s.
 */
struct relay;

struct relay_wish {
	bool want_tty;	     /* use a pty if 0 and 1 are terminals */
	bool no_input;	     /* empty standard input, ours is left alone */
	const int *out;	     /* two descriptors for the output; NULL: 1 and 2 */
	uint64_t output;     /* most bytes of output; 0: any number */
	int report;	     /* see streams_wish */
	int64_t grace_ms;    /* between SIGTERM and SIGKILL at the time limit; 0: 2 s */
	struct watch *watch; /* of the other limits; NULL: none; stays the caller's */
};

/*
 * Looks at fds 0, 1, 2, makes the pipes needed. Touches neither terminal nor signals:
 * before relay_loop() a child may be
 * forked that inherits both as they were. Fails only if no descriptors are to be had.
 */
int relay_new(const struct relay_wish *w, struct relay **out, struct err *e);

/* Restores terminal and signals, if relay_loop() did not; NULL is fine. */
void relay_free(struct relay *r);

/* Does the command need a pty? Then the inside makes it and hands us the master. */
bool relay_wants_pty(const struct relay *r);

/*
 * For PID 1, as soon as it has made the pty and before the command can look at it: gives
 * it our terminal's modes and window size. Needs nothing but memory and @master.
 */
void relay_pty_init(const struct relay *r, int master);

/*
 * The descriptors that the command gets as 0, 1, 2, owned by the relay; 1 and 2 may be the
 * same. -1 means the slave of the pty; with a pty only 2 may be something else (2>file).
 */
void relay_child_fds(const struct relay *r, int fds[3]);

/* After the fork, in the parent: closes the child's ends. */
void relay_forked(struct relay *r);

/*
 * The command may start, as transaction @id: PID 1 is told so by relay_loop(), as soon as
 * signals are ours. Without this it waits.
 */
void relay_go(struct relay *r, int64_t id);

/* The messages of the gate come on @sock (-1: there is no gate) and are answered by @calls. */
void relay_gate(struct relay *r, int sock, const struct gate_calls *calls);

/* Requests at @d are served while the command runs; @d stays the caller's. */
void relay_door(struct relay *r, struct inside_socket *d);

/* @s is served while the command runs; NULL: nothing. */
struct run_side;
void relay_side(struct relay *r, struct run_side *s);

struct relay_end {
	bool started, exited, timed_out, failed;
	int exec_errno;	 /* CTL_EXEC_FAILED */
	bool no_cwd;	 /* because of the working directory */
	int wait_status; /* exited; SIGKILL if we had to kill PID 1 */
	bool mid_line;	 /* streams_mid_line() */
	int lost_errno; /* output that could not be written to 1 or 2; EPIPE is not one */
	int64_t setup_us;
	uint64_t renames, output; /* bytes that passed through us */
	int mount; /* of the layer that was worked in, for unmount_later(), or -1; the caller's */
	struct limit_hit hit; /* what was passed, so that we killed PID 1 */
	struct desk_end gate;
	struct err err; /* failed */
};

/*
 * Runs the loop until PID 1 (@pidfd) is gone and all output that it left was delivered.
 * Timeout: SIGTERM to the command, after the grace PID 1 is killed. Any other limit: at
 * once. A second SIGINT/SIGTERM sent to us within 2 s of the first also kills. Any of
 * these signals after PID 1 is gone gives up what is still undelivered. Signals that we
 * were started with as ignored (nohup) stay so. PID 1 must keep the pty's slave open as
 * long as it lives.
 *
 * Returns 0 with *end filled in; exactly one of exited, failed and exec_errno says how
 * it ended, except that exited may go with exec_errno. Returns -1 if the loop itself
 * could not go on: PID 1 was killed. In both cases terminal and signals are as they were,
 * and PID 1 is still to be reaped; @ctl and @pidfd stay the caller's.
 */
int relay_loop(struct relay *r, int ctl, int pidfd, int64_t timeout_ms,
	       struct relay_end *end, struct err *e);

#endif
