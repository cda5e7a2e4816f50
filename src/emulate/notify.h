/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_EMULATE_NOTIFY_H
#define STET_EMULATE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/freeze.h"
#include "emulate/viewmounts.h"
#include "gate/gate.h"
#include "sys/unotify.h"

/*
 * The sandbox's seccomp filter and its one listener. The inside installs the filter and hands
 * the listener to PID 1, which answers here.
 *
 * A rename of anything but a directory in one of the view's overlays is let through untouched:
 * whatever the caller's other threads make of its arguments meanwhile, the kernel does no more than
 * a plain rename. Directories are renamed by a child of PID 1, so that a long move holds up nobody
 * else: only those that the caller could rename (emulate/movedir.h), found as the kernel finds them
 * for the caller (emulate/caller.h). What cannot be found that way is let through, too.
 *
 * For an ordinary user git is told that it cannot link what the host has, and copies it: the
 * kernel gives the second name another inode number, and git dies of that.
 *
 * Limits of PID 1 and its children are not the inside's to set.
 *
 * Execs are the gate's (gate/gate.h).
 */

/*
 * Installs the filter in the process to be confined (no_new_privs is set); returns the
 * listener, or -errno. @gate: execs are held, too. @lone: only the user's own ids are mapped,
 * and no other group is shown.
 */
int notify_install(bool gate, bool lone);

/*
 * Installs another filter, without a listener: no process may make mount namespaces of its own
 * or unmount (view_pins_host()). 0 or -errno.
 */
int notify_pin(void);

struct notify {
	struct unotify u;
	struct gate *gate;	/* NULL: execs are not held */
	struct timespec began;	/* before anything ran inside, by the coarse clock */
	uint64_t renames;	/* directories renamed for the inside */
	struct helpers helpers; /* who are at it */
	int turn;		/* whose turn it is: a file to be locked */
	struct viewmounts mounts;
};

/* Answers one request if there is one. 0, or -errno if the listener cannot be used any more. */
int notify_serve(struct notify *n);

/* A child of PID 1 has ended or stopped: if it was a helper, its caller is answered. */
void notify_reaped(struct notify *n, pid_t pid, int status);

#endif
