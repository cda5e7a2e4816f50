/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_NOTIFY_H
#define STET_RUNNER_NOTIFY_H

#include <stdint.h>

/*
 * The sandbox's seccomp filter and its one listener. The inside installs the filter and hands
 * the listener to PID 1, which answers here.
 *
 * A rename of anything but a directory is let through untouched: whatever the caller's
 * other threads make of its arguments meanwhile, the kernel does no more than a plain
 * rename. Directories are renamed by a child of PID 1, with the caller's rights and no
 * others, so that a long move holds up nobody else.
 */

/* In the process to be confined (no_new_privs set): -> listener fd, or -errno. */
int notify_install(void);

struct notify {
	int fd;
	uint64_t renames; /* directories renamed for the inside */
	struct seccomp_notif *req;
	struct seccomp_notif_resp *resp;
};
int notify_init(struct notify *n, int fd); /* takes over fd */
void notify_free(struct notify *n);

/* Answers one request if there is one. 0, or -errno if the listener is of no use any more. */
int notify_serve(struct notify *n);

#endif
