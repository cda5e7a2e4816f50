/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_UNOTIFY_H
#define STET_SYS_UNOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Younger than the headers of the oldest system that this is built on. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* The supervisor's end of a seccomp filter's notifications. */
struct unotify {
	int fd;
	struct seccomp_notif *req; /* the one received last */
	struct seccomp_notif_resp *resp;
};

int unotify_open(struct unotify *u, int fd); /* takes over fd */

/* 1: u->req is filled in; 0: there was none after all; -errno: of no use any more. */
int unotify_recv(struct unotify *u);

/* Is the caller of request @id still waiting? If not, its pid may be somebody else's. */
bool unotify_valid(const struct unotify *u, uint64_t id);

/*
 * Ends request @id: the call goes on if @go_on, else it returns @error (0 or -errno).
 * Returns 0, -ENOENT if the caller is gone, another -errno if the listener is broken.
 */
int unotify_answer(const struct unotify *u, uint64_t id, int error, bool go_on);

#endif
