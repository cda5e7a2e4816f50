/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_RELAY_H
#define STET_RUNNER_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The caller's side of a run: standard streams, terminal, signals, time limit. The inside
 * never gets a descriptor of the host's that it could reopen through /proc/self/fd: a
 * regular file, device, directory or socket on 0, 1 or 2 is replaced by a pipe that
 * we pump; a FIFO is passed on as it is; a terminal is replaced by the sandbox's own pty.
 */
struct relay;

/* Looks at fds 0, 1, 2, makes the pipes needed. @want_tty: use a pty if 0 and 1 are
 * terminals. */
int relay_new(bool want_tty, struct relay **out, struct err *e);
void relay_free(struct relay *r); /* restores the terminal; NULL is fine */

/* Does the command need a pty? Then the inside makes it and hands us the master. */
bool relay_wants_pty(const struct relay *r);
/* Descriptors the command gets as 0, 1, 2 when there is no pty. Owned by the relay. */
void relay_child_fds(const struct relay *r, int fds[3]);
/* After the fork, in the parent: closes the child's ends. */
void relay_forked(struct relay *r);

/*
 * Messages on the control socket (SOCK_SEQPACKET) between PID 1 of the sandbox and us. Every
 * field is from trusted code, but a short or unknown message ends the run as an error.
 */
enum ctl_type {
	CTL_ERROR = 1, /* up: setup failed; err follows; nothing was run */
	CTL_PTY,       /* up: pty master attached (SCM_RIGHTS) */
	CTL_STARTED,   /* up: command is being executed; value = setup time in µs */
	CTL_EXEC_FAILED, /* up: execve failed; value = errno */
	CTL_STOPPED,   /* up: the command's process group was stopped; value = signal */
	CTL_EXITED,    /* up: wait status in value; renames emulated in extra */
	CTL_SIGNAL,    /* down: send signal `value` to the command's process group */
	CTL_CONT,      /* down: continue it, put it in the foreground again */
	CTL_GO,	       /* down: id maps are written (root mode) */
};
struct ctl_msg {
	uint32_t type;
	int32_t value;
	uint64_t extra;
	struct err err; /* CTL_ERROR */
};

struct relay_end {
	bool started, exited, timed_out, failed;
	int exec_errno;	 /* CTL_EXEC_FAILED */
	int wait_status; /* CTL_EXITED */
	int64_t setup_us;
	uint64_t renames;
	struct err err; /* failed */
};

/*
 * Runs the loop until PID 1 (@pidfd) is gone and all output that it left was delivered.
 * Timeout: SIGTERM to the command, 2 s later PID 1 is killed. A second SIGINT/SIGTERM sent
 * to us within 2 s of the first also kills.
 */
int relay_loop(struct relay *r, int ctl, int pidfd, int64_t timeout_ms,
	       struct relay_end *end, struct err *e);

#endif
