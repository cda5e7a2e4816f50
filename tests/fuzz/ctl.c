/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message on the control socket. The first byte says how many descriptors come with it (its
 * lowest two bits) and whether it is given the right size (the third), which a fuzzer would
 * seldom find.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "fuzz.h"

enum { FDS_MAX = 3, LEN_MAX = 4096 };

static void send_to(int sock, const void *data, size_t size, size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)data, size };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nfds) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (size_t i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) != (ssize_t)size)
		abort();
}

/* As high as so many descriptors reach: higher later means that something was left open. */
static int reach(int fd)
{
	int v[FDS_MAX];

	for (size_t i = 0; i < FDS_MAX; i++)
		v[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < FDS_MAX; i++)
		close(v[i]);
	return v[FDS_MAX - 1];
}

static void check(int sock, size_t size, size_t nfds)
{
	struct ctl_msg m;
	int fd, r = ctl_recv(sock, &m, &fd, MSG_DONTWAIT);
	bool good = size == sizeof(m) && nfds <= 1;

	if (r == 1 && (!good || m.type < CTL_ERROR || m.type > CTL_LAST ||
		       strnlen(m.err.msg, sizeof(m.err.msg)) == sizeof(m.err.msg) ||
		       strnlen(m.err.hint, sizeof(m.err.hint)) == sizeof(m.err.hint)))
		abort();
	if (r == 1 ? (fd >= 0) != (nfds == 1) : fd != -1)
		abort();
	if (r == 0 && (size || nfds))
		abort();
	if (r < 0 && r != -EPROTO)
		abort();
	if (fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		abort();
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char m[LEN_MAX] = { 0 };
	size_t nfds = size ? data[0] & 3 : 0, n = size ? size - 1 : 0;
	int fds[2], before;

	n = n < sizeof(m) ? n : sizeof(m);
	if (n)
		memcpy(m, data + 1, n);
	if (size && data[0] & 4)
		n = sizeof(struct ctl_msg);
	if (ctl_pair(fds) < 0)
		abort();
	before = reach(fds[0]);
	send_to(fds[0], m, n, nfds);
	check(fds[1], n, nfds);
	if (reach(fds[0]) != before)
		abort();
	close(fds[0]);
	close(fds[1]);
	return 0;
}
