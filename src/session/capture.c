/* SPDX-License-Identifier: Apache-2.0 */
#include "session/capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "call/json.h"
#include "sys/fs.h"

enum { KEEP_DAYS = 7 };

static const char *const names[] = { "stdout", "stderr" };

static char *place(const struct home *h)
{
	return xasprintf("%s/output", h->dir);
}

int capture_open(const struct home *h, struct capture *c, struct err *e)
{
	AUTO_FREE char *dir = place(h);

	*c = (struct capture){ .fd = { -1, -1 } };
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make %s", dir);
	for (int i = 0; i < 2; i++) {
		c->fd[i] = fs_open_nameless(AT_FDCWD, dir);
		if (c->fd[i] < 0) {
			err_sys(e, c->fd[i], "cannot keep output in %s", dir);
			capture_free(c);
			return -1;
		}
	}
	return 0;
}

void capture_free(struct capture *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->fd[i] > 0)
			close(c->fd[i]);
		c->fd[i] = -1;
		free(c->stream[i].text);
		free(c->stream[i].file);
		c->stream[i] = (struct captured){ 0 };
	}
}

/* Deletes old output. */
static void clear_old(const char *dir)
{
	AUTO_CLOSEDIR DIR *d = opendir(dir);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d)))
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > KEEP_DAYS * 86400)
			unlinkat(dirfd(d), de->d_name, 0);
}

static int copy_all(int in, int out)
{
	char chunk[65536];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(in, chunk, sizeof(chunk), at)) > 0) {
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(out, chunk + done, (size_t)(n - done));

			if (w < 0)
				return -errno;
			done += w;
		}
		at += n;
	}
	return n < 0 ? -errno : 0;
}

static int give_name(int fd, const char *path)
{
	AUTO_FREE char *self = xasprintf("/proc/self/fd/%d", fd);
	AUTO_CLOSE int out = -1;

	unlink(path);
	if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copy_all(fd, out);
}

/* A character that is cut in two is left out. */
static size_t whole(const char *s, size_t len)
{
	for (size_t n = 0; n < 4 && n < len; n++)
		if (text_is_utf8(s, len - n))
			return len - n;
	return len;
}

static int end_one(int fd, const char *dir, uint64_t keep, const char *name,
		   struct captured *o, struct err *e)
{
	size_t want;
	struct stat st;
	ssize_t n = 0;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot look at the output");
	o->bytes = (uint64_t)st.st_size;
	want = (size_t)(o->bytes < keep ? o->bytes : keep);
	o->text = xmalloc(want + 1);
	while (o->len < want &&
	       (n = pread(fd, o->text + o->len, want - o->len, (off_t)o->len)) > 0)
		o->len += (size_t)n;
	if (n < 0)
		return err_sys(e, errno, "cannot read the output");
	if (o->bytes <= keep)
		return 0;
	o->len = whole(o->text, o->len);
	clear_old(dir);
	o->file = xasprintf("%s/%s", dir, name);
	n = give_name(fd, o->file);
	return n < 0 ? err_sys(e, (int)n, "cannot keep the output in %s", o->file) : 0;
}

int capture_end(const struct home *h, struct capture *c, uint64_t keep, const char *name,
		struct err *e)
{
	AUTO_FREE char *dir = place(h);
	int r = 0;

	for (int i = 0; i < 2; i++) {
		AUTO_FREE char *file = xasprintf("%s.%s", name, names[i]);

		if (r == 0)
			r = end_one(c->fd[i], dir, keep, file, &c->stream[i], e);
		cleanup_close(&c->fd[i]);
		c->fd[i] = -1;
	}
	return r;
}

#define ONE(i, field) offsetof(struct capture, stream[i].field)
#define STREAM(i, name, help)                                                          \
	{ name, FIELD_BYTES, ONE(i, text), help, FIELD_IF_SET, .count = ONE(i, len) }, \
		{ name "_bytes", FIELD_UINT64, ONE(i, bytes), "of all of it",          \
		  .present = has_text_##i },                                           \
	{                                                                              \
		name "_file", FIELD_STRING, ONE(i, file), "that holds all of it",      \
			FIELD_IF_SET                                                   \
	}

static bool has_text_0(const void *at)
{
	return ((const struct capture *)at)->stream[0].text;
}

static bool has_text_1(const void *at)
{
	return ((const struct capture *)at)->stream[1].text;
}

const struct field capture_fields[] = {
	STREAM(0, "stdout", "the beginning of standard output"),
	STREAM(1, "stderr", "the beginning of standard error"),
	{ NULL },
};
