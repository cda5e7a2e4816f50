/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares and merges texts by libgit2, for stet. The texts are hostile: once the library is
 * ready this process can only compute, use its one socket, and end.
 */
#include <errno.h>
#include <git2.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "diff/git2.h"

enum { SOCK = 0 };

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static int confine(void)
{
#if defined(ARCH) && !defined(__SANITIZE_ADDRESS__)
	static const int allowed[] = { SYS_read,      SYS_write,  SYS_recvfrom,
				       SYS_sendto,    SYS_brk,	  SYS_mmap,
				       SYS_munmap,    SYS_mremap, SYS_madvise,
				       SYS_mprotect,  SYS_futex,  SYS_getrandom,
				       SYS_exit_group };
	enum { N = ARRAY_SIZE(allowed) };
	struct sock_filter f[N + 6] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(f), .filter = f };

	for (size_t i = 0; i < N; i++)
		f[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							(unsigned)allowed[i],
							(unsigned char)(N - i), 0);
	f[N + 4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						SECCOMP_RET_KILL_PROCESS);
	f[N + 5] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return -errno;
#endif
	return 0;
}

/* Reads the whole message; false when the other end is closed. */
static bool get(void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = recv(SOCK, p, len, MSG_WAITALL);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool put(const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = send(SOCK, p, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return true;
}

struct texts {
	struct buf text[3];
	bool there[3];
};

static const char *at(const struct texts *t, size_t i)
{
	return t->there[i] ? buf_str(&t->text[i]) : NULL;
}

static int fail(struct buf *out, const char *what)
{
	const git_error *last = git_error_last();

	buf_reset(out);
	buf_addf(out, "%s: %s", what, last ? last->message : "no reason given");
	return -1;
}

static int print_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
		      const git_diff_line *line, void *arg)
{
	struct buf *out = arg;

	(void)delta;
	(void)hunk;
	switch (line->origin) {
	case GIT_DIFF_LINE_CONTEXT:
	case GIT_DIFF_LINE_ADDITION:
	case GIT_DIFF_LINE_DELETION:
		buf_addc(out, line->origin);
		break;
	case GIT_DIFF_LINE_FILE_HDR:
	case GIT_DIFF_LINE_BINARY:
		return 0;
	default:
		break;
	}
	buf_add(out, line->content, line->content_len);
	return 0;
}

static int compare(const struct texts *t, bool hunks, struct git2_diff *d,
		   struct buf *out)
{
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	const git_diff_delta *delta;
	size_t context, added, removed;
	git_patch *p = NULL;
	int r;

	/*
	 * The other end has decided which files are binary; no configuration of the user takes
	 * part.
	 */
	opts.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_SKIP_BINARY_CHECK |
		     GIT_DIFF_INDENT_HEURISTIC;
	r = git_patch_from_buffers(&p, at(t, 0), t->text[0].len, "a", at(t, 1),
				   t->text[1].len, "b", &opts);
	if (r == 0)
		r = git_patch_line_stats(&context, &added, &removed, p);
	if (r == 0) {
		delta = git_patch_get_delta(p);
		d->added = added;
		d->removed = removed;
		memcpy(d->id[0], delta->old_file.id.id, GIT2_ID);
		memcpy(d->id[1], delta->new_file.id.id, GIT2_ID);
	}
	if (r == 0 && hunks)
		r = git_patch_print(p, print_line, out);
	git_patch_free(p);
	return r == 0 ? 0 : fail(out, "cannot compare");
}

static int merge(const struct texts *t, struct buf *out)
{
	git_merge_file_input in[3] = { GIT_MERGE_FILE_INPUT_INIT,
				       GIT_MERGE_FILE_INPUT_INIT,
				       GIT_MERGE_FILE_INPUT_INIT };
	git_merge_file_result res = { 0 };
	int r;

	for (size_t i = 0; i < 3; i++) {
		in[i].ptr = buf_str(&t->text[i]);
		in[i].size = t->text[i].len;
	}
	if (git_merge_file(&res, &in[0], &in[1], &in[2], NULL) < 0)
		return fail(out, "cannot merge");
	r = res.automergeable ? 1 : 0;
	if (r)
		buf_add(out, res.ptr, res.len);
	git_merge_file_result_free(&res);
	return r;
}

static bool get_texts(const struct git2_request *q, struct texts *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->text); i++) {
		AUTO_FREE char *text = NULL;

		t->there[i] = q->len[i] != GIT2_NONE;
		if (!t->there[i])
			continue;
		text = xmalloc(q->len[i] + 1);
		if (!get(text, q->len[i]))
			return false;
		buf_add(&t->text[i], text, q->len[i]);
	}
	return true;
}

static bool serve(void)
{
	struct git2_answer a = { 0 };
	AUTO_BUF struct buf out = BUF_INIT;
	struct texts t = { 0 };
	struct git2_request q;
	bool ok;

	if (!get(&q, sizeof(q)) || !get_texts(&q, &t))
		return false;
	switch (q.op) {
	case GIT2_PROBE:
		break;
	case GIT2_COMPARE:
	case GIT2_HUNKS:
		a.result = compare(&t, q.op == GIT2_HUNKS, &a.diff, &out);
		break;
	case GIT2_MERGE:
		a.result = merge(&t, &out);
		break;
	default:
		return false;
	}
	a.len = out.len;
	ok = put(&a, sizeof(a)) && put(buf_str(&out), out.len);
	for (size_t i = 0; i < ARRAY_SIZE(t.text); i++)
		buf_free(&t.text[i]);
	return ok;
}

int main(void)
{
	if (git_libgit2_init() < 0 || confine() < 0)
		return 1;
	while (serve())
		;
	_exit(0); /* the library's own end would ask for more than is allowed */
}
