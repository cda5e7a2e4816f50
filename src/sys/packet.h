/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_PACKET_H
#define STET_SYS_PACKET_H

#include <sys/socket.h>
#include <sys/types.h>

/*
 * recv(2) and recvmsg(2) of a SOCK_SEQPACKET. Whoever closed his end without having read all that
 * was sent to him is reported as a reset, once, and before what he himself had sent: that is
 * passed over, so that his last words are heard. 0: he is gone and has said all; or -errno.
 */
ssize_t packet_recv(int sock, void *data, size_t len, int flags);
ssize_t packet_recvmsg(int sock, struct msghdr *h, int flags);

#endif
