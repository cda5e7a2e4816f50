/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/unotify.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define PAGE 4096U

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

void unotify_close(struct unotify *u)
{
	cleanup_close(&u->fd);
	free(u->req);
	free(u->resp);
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

/* Up to @max bytes, or as many as are there: what is behind a page may not be mapped. */
ssize_t peek_bytes(pid_t pid, uint64_t addr, void *out, size_t max)
{
	struct iovec local = { out, max }, remote[16];
	size_t n = 0, some;
	ssize_t got;

	for (size_t left = max; left && n < ARRAY_SIZE(remote);
	     left -= some, addr += some) {
		some = PAGE - (addr & (PAGE - 1));
		if (some > left)
			some = left;
		remote[n++] = (struct iovec){ (void *)(uintptr_t)addr, some };
	}
	got = process_vm_readv(pid, &local, 1, remote, n, 0);
	return got < 0 ? -errno : got;
}

ssize_t peek_string(pid_t pid, uint64_t addr, char *out, size_t max)
{
	size_t done = 0;

	while (done < max) {
		ssize_t n = peek_bytes(pid, addr + done, out + done, max - done);
		char *end;

		if (n <= 0)
			return n ? n : -EFAULT;
		end = memchr(out + done, '\0', (size_t)n);
		if (end)
			return end - out;
		done += (size_t)n;
	}
	return -ENAMETOOLONG;
}

/* So many strings at once, so much of each at first: one call is enough for most. */
enum { BATCH = 64, FIRST = 256 };

static int add_strings(pid_t pid, const uint64_t *addr, size_t n, struct buf *out)
{
	char first[BATCH * FIRST], *at = first;
	struct iovec local = { first, sizeof(first) }, remote[BATCH] = { { 0 } };
	ssize_t got;

	for (size_t i = 0; i < n; i++) {
		size_t some = PAGE - (addr[i] & (PAGE - 1));

		remote[i] = (struct iovec){ (void *)(uintptr_t)addr[i],
					    some < FIRST ? some : FIRST };
	}
	got = process_vm_readv(pid, &local, 1, remote, n, 0);
	if (got < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		size_t some = remote[i].iov_len;
		char *end;

		if (at + some > first + got)
			return -EFAULT;
		end = memchr(at, '\0', some);
		if (end) {
			buf_add(out, at, (size_t)(end - at) + 1);
		} else {
			AUTO_FREE char *whole = xmalloc(PEEK_ARG_MAX);
			ssize_t len = peek_string(pid, addr[i], whole, PEEK_ARG_MAX);

			if (len < 0)
				return len == -ENAMETOOLONG ? -E2BIG : (int)len;
			buf_add(out, whole, (size_t)len + 1);
		}
		at += some;
		if (out->len > PEEK_ARGS_MAX)
			return -E2BIG;
	}
	return 0;
}

/*
 * Where there are many they mostly lie one behind the other, and asking for each by itself costs
 * a look at its page: more and more is read at once while that holds.
 */
struct window {
	uint64_t at;
	size_t n, want;
	char data[16 * PAGE];
};

static int move_window(struct window *w, pid_t pid, uint64_t addr)
{
	uint64_t end = w->at + w->n;
	ssize_t got;

	if (w->n && addr >= end && addr - end < PAGE)
		w->want = w->want * 2 < sizeof(w->data) ? w->want * 2 : sizeof(w->data);
	else
		w->want = PAGE;
	got = peek_bytes(pid, addr, w->data, w->want - (addr & (PAGE - 1)));
	w->at = addr;
	w->n = got < 0 ? 0 : (size_t)got;
	return got < 0 ? (int)got : got == 0 ? -EFAULT : 0;
}

static int add_string(struct window *w, pid_t pid, uint64_t addr, struct buf *out)
{
	size_t before = out->len;

	for (;;) {
		const char *from, *end;
		size_t left;
		int r;

		if (addr < w->at || addr >= w->at + w->n) {
			r = move_window(w, pid, addr);
			if (r < 0)
				return r;
		}
		from = w->data + (addr - w->at);
		left = w->n - (size_t)(addr - w->at);
		end = memchr(from, '\0', left);
		if (end)
			left = (size_t)(end - from) + 1;
		buf_add(out, from, left);
		if (out->len - before > PEEK_ARG_MAX || out->len > PEEK_ARGS_MAX)
			return -E2BIG;
		if (end)
			return 0;
		addr += left;
	}
}

static int add_more_strings(struct window *w, pid_t pid, const uint64_t *addr, size_t n,
			    struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = add_string(w, pid, addr[i], out);
	return r;
}

static int add_all(pid_t pid, uint64_t addr, struct buf *out, size_t *count)
{
	uint64_t batch[PAGE / sizeof(uint64_t)];
	struct window w;

	w.n = 0;
	w.at = 0;
	for (;;) {
		size_t n = 0, have, ask = *count ? sizeof(batch) : BATCH * sizeof(*batch);
		ssize_t got = peek_bytes(pid, addr, batch, ask);
		int r = 0;

		if (got < (ssize_t)sizeof(*batch))
			return got < 0 ? (int)got : -EFAULT;
		have = (size_t)got / sizeof(*batch);
		while (n < have && batch[n])
			n++;
		if (n && !*count)
			r = add_strings(pid, batch, n, out);
		else
			r = add_more_strings(&w, pid, batch, n, out);
		*count += n;
		if (r < 0 || n < have)
			return r;
		if (*count * sizeof(*batch) > PEEK_ARGS_MAX)
			return -E2BIG;
		addr += have * sizeof(*batch);
	}
}

char *peek_args(pid_t pid, uint64_t addr, size_t *len, size_t *count)
{
	AUTO_BUF struct buf b = BUF_INIT;
	int r = 0;

	*count = 0;
	if (addr)
		r = add_all(pid, addr, &b, count);
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	if (!*count) { /* an exec without arguments gets an empty one */
		buf_addc(&b, '\0');
		*count = 1;
	}
	*len = b.len;
	return buf_take(&b);
}
