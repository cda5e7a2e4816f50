/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_CTL_H
#define STET_CTL_CTL_H

#include <stdint.h>

#include "base/err.h"

/*
 * Messages on the control socket (SOCK_SEQPACKET) between PID 1 of the sandbox and the
 * caller. Every field is from trusted code, but a short or unknown message ends the run
 * as an error.
 */
enum ctl_type {
	CTL_ERROR = 1, /* up: setup failed; err follows; nothing was run */
	CTL_PTY,       /* up: pty master attached (SCM_RIGHTS) */
	CTL_STARTED,   /* up: command is being executed; value = setup time in µs */
	/*
	 * up: execve failed, or, with extra set, entering the working directory; value = errno
	 */
	CTL_EXEC_FAILED,
	CTL_STOPPED, /* up: the command's process group was stopped; value = signal */
	/* up: wait status in value; renames emulated in extra; perhaps a mount
	 * (runner/unmount.h) */
	CTL_EXITED,
	CTL_SIGNAL, /* down: send signal `value` to the command's process group */
	CTL_CONT,   /* down: continue it, put it in the foreground again */
	CTL_END,    /* down: end all, and yourself */
	CTL_BEGIN,  /* down: the namespaces may be made */
	CTL_PLAN,   /* down: it is known where the command is to run */
	CTL_GO,	    /* down: the command may start; number of the transaction in extra */
	/* Between PID 1 and a client of its control socket (control.h). */
	CTL_FREEZE, /* stop everything; answered with CTL_DONE and what is written to */
	CTL_THAW,
	CTL_KILL,  /* end all but the command */
	CTL_FD,	   /* a descriptor for CTL_APPLY; not answered */
	CTL_APPLY, /* carry out steps */
	/*
	 * Has no process run since CTL_SETTLED of the state in extra? CTL_DONE, value 1: yes.
	 */
	CTL_STILL,
	CTL_UNTOUCHED, /* CTL_DONE with idle_layers_untouched() in extra */
	CTL_SETTLED, /* at the last CTL_STILL, or later, all was as the state in extra */
	CTL_DONE,    /* up; or CTL_ERROR */
	CTL_LAST = CTL_DONE,
};

struct ctl_msg {
	uint32_t type;
	int32_t value;
	uint64_t extra;
	struct err err; /* CTL_ERROR */
};

/* A connected pair, both ends close-on-exec. 0 or -errno. */
int ctl_pair(int fds[2]);

/*
 * Sends one message, whole or not at all; @fd goes with it unless it is -1 and stays the
 * caller's. Never raises SIGPIPE. @flags: MSG_DONTWAIT or 0. Returns 0 or -errno: -EPIPE
 * or -ECONNRESET if the other side is gone, -EAGAIN if it does not read.
 */
int ctl_send(int sock, const struct ctl_msg *m, int fd, int flags);

/* ctl_send() of a message that is only a type and a value. */
int ctl_send_value(int sock, enum ctl_type type, int32_t value, int flags);

/*
 * Receives one message. Returns 1 with *m filled in and *fd a close-on-exec descriptor
 * owned by the caller, or -1 if none came; 0 if the other side is closed and nothing
 * is left; -errno otherwise: -EAGAIN with MSG_DONTWAIT, -EPROTO for a message of the
 * wrong size or of unknown type, or with more descriptors than one. Unless 1 is returned
 * *fd is -1. The texts of m->err are always terminated.
 */
int ctl_recv(int sock, struct ctl_msg *m, int *fd, int flags);

#endif
