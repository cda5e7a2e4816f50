/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/git2.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "diff/merge.h"
#include "diff/patch.h"

#define PROGRAM "stet-text"

/* The program, once it runs. */
static int sock = -1;
static pid_t pid;

/*
 * The program lies beside ours in a build and in libexec when installed; STET_LIBEXEC may name
 * a directory.
 */
static char *find_program(void)
{
	static const char *const places[] = { "", "/../libexec/stet" };
	const char *named = secure_getenv("STET_LIBEXEC");
	char self[PATH_MAX];
	ssize_t n;

	if (named && *named == '/')
		return xasprintf("%s/" PROGRAM, named);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		AUTO_FREE char *path = xasprintf("%s%s/" PROGRAM, self, places[i]);

		if (access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

static int cannot_start(int err, const char *path, struct err *e)
{
	err_sys(e, err, "cannot start %s, which compares texts", path ? path : PROGRAM);
	e->kind = ERR_UNSUPPORTED;
	return err_hint(e, "install stet and its library libgit2 again: make install");
}

static int start(struct err *e)
{
	AUTO_FREE char *path = find_program();
	char name[] = PROGRAM;
	char *argv[] = { name, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t fa;
	int ends[2], r;

	if (sock >= 0)
		return 0;
	if (!path)
		return cannot_start(ENOENT, NULL, e);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "cannot make a socket");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, ends[1], 0);
	r = posix_spawn(&pid, path, &fa, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&fa);
	close(ends[1]);
	if (r) {
		close(ends[0]);
		return cannot_start(r, path, e);
	}
	sock = ends[0];
	return 0;
}

static void stop(void)
{
	close(TAKE_FD(sock));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool put(const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = send(sock, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

static bool get(void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = recv(sock, p, len, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

static bool get_text(struct buf *out, size_t len)
{
	AUTO_FREE char *text = xmalloc(len + 1);

	if (!get(text, len))
		return false;
	buf_add(out, text, len);
	return true;
}

/* One question and its answer; the text goes to @out. */
static int ask(enum git2_op op, const struct buf *const text[3], struct git2_answer *a,
	       struct buf *out, struct err *e)
{
	struct git2_request q = { .op = (uint64_t)op };
	AUTO_BUF struct buf got = BUF_INIT;
	bool ok;

	if (start(e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(q.len); i++)
		q.len[i] = text[i] ? text[i]->len : GIT2_NONE;
	ok = put(&q, sizeof(q));
	for (size_t i = 0; ok && i < ARRAY_SIZE(q.len); i++)
		ok = !text[i] || put(buf_str(text[i]), text[i]->len);
	if (!ok || !get(a, sizeof(*a)) || a->len > SIZE_MAX / 2 ||
	    !get_text(&got, a->len)) {
		stop(); /* the next question gets a new one */
		err_set(e, ERR_UNSUPPORTED, PROGRAM ", which compares texts, has died");
		return err_hint(e, "`stet doctor` says whether libgit2 can be had");
	}
	if (a->result < 0)
		return err_set(e, ERR_SYSTEM, "%s", buf_str(&got));
	if (out)
		buf_add(out, buf_str(&got), got.len);
	return 0;
}

int git2_compare(const struct buf *a, const struct buf *b, struct git2_diff *d,
		 struct buf *hunks, struct err *e)
{
	const struct buf *const text[3] = { a, b, NULL };
	struct git2_answer got;

	if (ask(hunks ? GIT2_HUNKS : GIT2_COMPARE, text, &got, hunks, e) < 0)
		return -1;
	*d = got.diff;
	return 0;
}

int merge_text(const struct buf *base, const struct buf *ours, const struct buf *theirs,
	       struct buf *out, struct err *e)
{
	const struct buf *const text[3] = { base, ours, theirs };
	struct git2_answer got;

	return ask(GIT2_MERGE, text, &got, out, e) < 0 ? -1 : (int)got.result;
}

int patch_probe(struct err *e)
{
	const struct buf *const text[3] = { NULL, NULL, NULL };
	struct git2_answer got;

	if (ask(GIT2_PROBE, text, &got, NULL, e) < 0)
		return -1;
	stop();
	return 0;
}
