/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/packet.h"

/* Room for two descriptors, so that a second one is received (and closed) and not cut off. */
union ctl_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(2 * sizeof(int))];
};

int ctl_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) ? -errno : 0;
}

int ctl_send(int sock, const struct ctl_msg *m, int fd, int flags)
{
	struct ctl_msg copy = *m;
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	union ctl_control control;
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		n = sendmsg(sock, &h, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int ctl_send_value(int sock, enum ctl_type type, int32_t value, int flags)
{
	struct ctl_msg m;

	memset(&m, 0, sizeof(m));
	m.type = type;
	m.value = value;
	return ctl_send(sock, &m, -1, flags);
}

/* Keeps the first descriptor in *fd, closes the others; returns how many there were. */
static size_t take_fds(struct msghdr *h, int *fd)
{
	size_t count = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t i, n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (count++ == 0)
				*fd = got;
			else
				close(got);
		}
	}
	return count;
}

int ctl_recv(int sock, struct ctl_msg *m, int *fd, int flags)
{
	struct iovec iov = { m, sizeof(*m) };
	union ctl_control control;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	AUTO_CLOSE int got = -1;
	size_t fds;
	ssize_t n;

	*fd = -1;
	n = packet_recvmsg(sock, &h, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return (int)n;
	fds = take_fds(&h, &got);
	if (n == 0 && fds == 0)
		return 0;
	if (n != sizeof(*m) || fds > 1 || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return -EPROTO;
	if (m->type < CTL_ERROR || m->type > CTL_LAST)
		return -EPROTO;
	m->err.msg[sizeof(m->err.msg) - 1] = '\0';
	m->err.hint[sizeof(m->err.hint) - 1] = '\0';
	*fd = TAKE_FD(got);
	return 1;
}
