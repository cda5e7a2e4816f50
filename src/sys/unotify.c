/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/unotify.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

int unotify_open(struct unotify *u, int fd)
{
	struct seccomp_notif_sizes sizes;

	*u = (struct unotify){ .fd = fd };
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	/* The kernel's structures may be larger than the ones we were compiled with. */
	u->req = xcalloc(1, sizes.seccomp_notif > sizeof(*u->req) ? sizes.seccomp_notif
								  : sizeof(*u->req));
	u->resp = xcalloc(1, sizes.seccomp_notif_resp > sizeof(*u->resp)
				     ? sizes.seccomp_notif_resp
				     : sizeof(*u->resp));
	/* Caller and listener take turns: waking on the same core saves half the cost. */
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return 0;
}

int unotify_recv(struct unotify *u)
{
	memset(u->req, 0, sizeof(*u->req));
	if (ioctl(u->fd, SECCOMP_IOCTL_NOTIF_RECV, u->req) == 0)
		return 1;
	return errno == ENOENT || errno == EINTR || errno == EAGAIN ? 0 : -errno;
}

bool unotify_valid(const struct unotify *u, uint64_t id)
{
	return ioctl(u->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int unotify_answer(const struct unotify *u, uint64_t id, int error, bool go_on)
{
	memset(u->resp, 0, sizeof(*u->resp));
	u->resp->id = id;
	u->resp->error = error;
	u->resp->flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	return ioctl(u->fd, SECCOMP_IOCTL_NOTIF_SEND, u->resp) < 0 ? -errno : 0;
}
