/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"
#include "diff/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

int fixture_setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	if (!tmp || strlen(tmp) > 30)
		tmp = "/tmp";
	snprintf(f->dir, sizeof(f->dir), "%s/stet-change.XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->host, sizeof(f->host), "%s/host", f->dir);
	snprintf(f->upper, sizeof(f->upper), "%s/up", f->dir);
	assert_int_equal(mkdir(f->host, 0755), 0);
	assert_int_equal(mkdir(f->upper, 0755), 0);
	umask(022);
	f->h = open(f->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->u = open(f->upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->layer.host = f->host;
	f->layer.upper = f->upper;
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	const char *const open_up[] = { "chmod", "-R", "u+rwx", f->dir, NULL };
	const char *const rm[] = { "rm", "-rf", f->dir, NULL };

	close(f->h);
	close(f->u);
	/* The kernel's work directories have mode 0. */
	assert_int_equal(run_in("/", open_up), 0);
	assert_int_equal(run_in("/", rm), 0);
	free(f);
	return 0;
}

int run_in(const char *cwd, const char *const argv[])
{
	union {
		const char *const *in;
		char *const *out;
	} u = { argv };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		if (chdir(cwd) == 0) {
			dup2(null, 0);
			dup2(null, 1);
			execvp(argv[0], u.out);
		}
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void set_mtime(int dir, const char *path, time_t t)
{
	struct timespec ts[2] = { { t, 0 }, { t, 0 } };

	assert_int_equal(utimensat(dir, path, ts, AT_SYMLINK_NOFOLLOW), 0);
}

void make_bytes(int dir, const char *path, const void *data, size_t len)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
	set_mtime(dir, path, 1000000);
}

void make_file(int dir, const char *path, const char *text)
{
	make_bytes(dir, path, text, strlen(text));
}

void make_dir(int dir, const char *path)
{
	assert_int_equal(mkdirat(dir, path, 0755), 0);
}

void make_link(int dir, const char *path, const char *target)
{
	assert_int_equal(symlinkat(target, dir, path), 0);
	set_mtime(dir, path, 1000000);
}

void make_node(int dir, const char *path, mode_t type)
{
	assert_int_equal(mknodat(dir, path, type | 0644, 0), 0);
	set_mtime(dir, path, 1000000);
}

void make_whiteout(int dir, const char *path)
{
	assert_int_equal(mknodat(dir, path, S_IFCHR, makedev(0, 0)), 0);
}

void make_opaque(int dir, const char *path)
{
	make_dir(dir, path);
	set_xattr(dir, path, "user.overlay.opaque", "y");
}

void set_mode(int dir, const char *path, mode_t mode)
{
	assert_int_equal(fchmodat(dir, path, mode, 0), 0);
}

void set_xattr(int dir, const char *path, const char *attr, const char *value)
{
	int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsetxattr(fd, attr, value, strlen(value), 0), 0);
	close(fd);
}

static int add_word(void *arg, const struct change *c, struct err *e)
{
	static const char letters[] = "cmoxt";
	struct buf *b = arg;
	const char *p;
	size_t i;

	(void)e;
	/* What every change must hold, whatever the test is about. */
	assert_true(*c->rel && *c->rel != '/');
	assert_string_equal(c->path + strlen(c->path) - strlen(c->rel), c->rel);
	assert_int_equal(c->what == 0, c->kind != CHANGE_MODIFY);
	assert_int_equal(c->before.st_mode == 0,
			 c->kind == CHANGE_ADD && !(c->was_hidden && c->before.st_mode));
	assert_int_equal(c->after.st_mode == 0, c->kind == CHANGE_DELETE);
	if (b->len)
		buf_addc(b, ' ');
	buf_addc(b, (char)c->kind);
	for (p = c->rel; *p; p++)
		buf_addc(b, *p > 0x20 && *p < 0x7f ? *p : '?');
	if (c->implied)
		buf_addc(b, '*');
	if (c->was_hidden)
		buf_addc(b, '!');
	if (c->what)
		buf_addc(b, ':');
	for (i = 0; i < 5; i++)
		if (c->what & 1u << i)
			buf_addc(b, letters[i]);
	return 0;
}

int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

char *walk_words(const struct change_layer *layers, size_t n)
{
	struct buf b = BUF_INIT;
	int fds = count_fds();
	struct err e;

	if (change_walk(layers, n, add_word, &b, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(count_fds(), fds);
	buf_adds(&b, "");
	return buf_take(&b);
}

void check_walk(struct fixture *f, const char *expected)
{
	char *words = walk_words(&f->layer, 1);

	assert_string_equal(words, expected);
	free(words);
}
