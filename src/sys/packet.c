/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/packet.h"

#include <errno.h>
#include <sys/uio.h>

ssize_t packet_recvmsg(int sock, struct msghdr *h, int flags)
{
	ssize_t n;

	do
		n = recvmsg(sock, h, flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

ssize_t packet_recv(int sock, void *data, size_t len, int flags)
{
	struct iovec iov = { data, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	return packet_recvmsg(sock, &h, flags);
}
