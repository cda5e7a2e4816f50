/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/procmem.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define PAGE 4096U

static size_t to_page_end(uint64_t addr, size_t max)
{
	const size_t left = PAGE - (addr & (PAGE - 1));

	return left < max ? left : max;
}

/* Up to @max bytes, or as many as are there: what is behind a page may not be mapped. */
ssize_t procmem_bytes(pid_t pid, uint64_t addr, void *out, size_t max)
{
	struct iovec local = { out, max }, remote[16];
	size_t n = 0, some;
	ssize_t got;

	for (size_t left = max; left && n < ARRAY_SIZE(remote);
	     left -= some, addr += some) {
		some = to_page_end(addr, left);
		remote[n++] = (struct iovec){ (void *)(uintptr_t)addr, some };
	}
	got = process_vm_readv(pid, &local, 1, remote, n, 0);
	return got < 0 ? -errno : got;
}

ssize_t procmem_string(pid_t pid, uint64_t addr, char *out, size_t max)
{
	size_t done = 0;

	/* A page at a time: most end in the first, and each has to be looked up. */
	while (done < max) {
		ssize_t n = procmem_bytes(pid, addr + done, out + done,
					  to_page_end(addr + done, max - done));
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

	for (size_t i = 0; i < n; i++)
		remote[i] = (struct iovec){ (void *)(uintptr_t)addr[i],
					    to_page_end(addr[i], FIRST) };
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
			AUTO_FREE char *whole = xmalloc(PROCMEM_ARG_MAX);
			ssize_t len = procmem_string(pid, addr[i], whole,
						     PROCMEM_ARG_MAX);

			if (len < 0)
				return len == -ENAMETOOLONG ? -E2BIG : (int)len;
			buf_add(out, whole, (size_t)len + 1);
		}
		at += some;
		if (out->len > PROCMEM_ARGS_MAX)
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
	got = procmem_bytes(pid, addr, w->data, w->want - (addr & (PAGE - 1)));
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
		if (out->len - before > PROCMEM_ARG_MAX || out->len > PROCMEM_ARGS_MAX)
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

/*
 * Path and first arguments of an exec mostly lie where one call gets both: the end of the
 * page of each.
 */
ssize_t procmem_exec(pid_t pid, uint64_t path, uint64_t argv, struct procmem_exec *out)
{
	const size_t n = to_page_end(argv, sizeof(out->argv)),
		     len = to_page_end(path, sizeof(out->path));
	struct iovec local[] = { { out->argv, n }, { out->path, len } };
	struct iovec remote[] = { { (void *)(uintptr_t)argv, n },
				  { (void *)(uintptr_t)path, len } };
	const char *end;

	out->from = path;
	out->len = out->have = 0;
	if (process_vm_readv(pid, local, 2, remote, 2, 0) == (ssize_t)(n + len)) {
		end = memchr(out->path, '\0', len);
		out->len = len;
		out->have = n / sizeof(*out->argv);
		if (end)
			return end - out->path;
	}
	out->len = 0;
	return procmem_string(pid, path, out->path, sizeof(out->path));
}

/* How many arguments there are; 0 as well if the end of the vector was not seen. */
static size_t count_seen(const struct procmem_exec *seen)
{
	size_t n = 0;

	while (n < seen->have && seen->argv[n])
		n++;
	return n < seen->have ? n : 0;
}

/* All @n strings, if that one call got them too. */
static bool add_seen(const struct procmem_exec *seen, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t at = seen->argv[i] - seen->from;
		const char *s, *end = NULL;

		if (at < seen->len) {
			s = seen->path + at;
			end = memchr(s, '\0', seen->len - (size_t)at);
		}
		if (!end) {
			buf_reset(out);
			return false;
		}
		buf_add(out, s, (size_t)(end - s) + 1);
	}
	return true;
}

static int add_all(pid_t pid, uint64_t addr, struct buf *out, size_t *count)
{
	uint64_t batch[PAGE / sizeof(uint64_t)];
	struct window w;

	w.n = 0;
	w.at = 0;
	for (;;) {
		size_t n = 0, have, ask = *count ? sizeof(batch) : BATCH * sizeof(*batch);
		ssize_t got = procmem_bytes(pid, addr, batch, ask);
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
		if (*count * sizeof(*batch) > PROCMEM_ARGS_MAX)
			return -E2BIG;
		addr += have * sizeof(*batch);
	}
}

char *procmem_args(pid_t pid, uint64_t addr, const struct procmem_exec *seen, size_t *len,
		   size_t *count)
{
	AUTO_BUF struct buf b = BUF_INIT;
	int r = 0;

	*count = seen ? count_seen(seen) : 0;
	if (!*count && addr)
		r = add_all(pid, addr, &b, count);
	else if (*count && !add_seen(seen, *count, &b))
		r = add_strings(pid, seen->argv, *count, &b);
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
