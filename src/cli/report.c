/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

static int open_fd(struct report *r, const char *text, struct err *e)
{
	char *end;
	long n = strtol(text, &end, 10);
	int flags;

	if (*text < '1' || *text > '9' || *end || n > INT_MAX) {
		err_set(e, ERR_USAGE, "--json-fd: '%s' is not a descriptor from 1 on",
			text);
		return err_hint(e, "for instance: --json-fd 3 3>FILE");
	}
	flags = fcntl((int)n, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || flags & O_PATH) {
		err_set(e, ERR_USAGE, "--json-fd: descriptor %ld is not open%s", n,
			flags < 0 ? "" : " for writing");
		return err_hint(e, "for instance: --json-fd %ld %ld>FILE", n, n);
	}
	/* The three standard ones are replaced for a command anyhow. */
	if (n > STDERR_FILENO)
		fcntl((int)n, F_SETFD, FD_CLOEXEC);
	r->fd = (int)n;
	return 0;
}

static int cannot(const struct report *r, int err, struct err *e)
{
	return err_sys(e, err, "--json-file: cannot write %s", r->path);
}

/* Without a name if the filesystem can do that: then nothing is left of one that is not whole. */
static int make_file(struct report *r)
{
	int fd = openat(r->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);

	if (fd >= 0)
		return fd;
	r->temp = xasprintf(".%.200s.%d", r->name, (int)getpid());
	fd = openat(r->dir, r->temp, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		    0666);
	if (fd < 0) {
		fd = -errno;
		free(TAKE_PTR(r->temp));
	}
	return fd;
}

/* The file that a link stands for is the one that is written. */
static int open_file(struct report *r, const char *path, struct err *e)
{
	AUTO_FREE char *real = realpath(path, NULL), *dir = NULL;
	struct stat st;
	char *slash;
	int fd;

	r->path = xstrdup(path);
	if (real && stat(real, &st) == 0 && !S_ISREG(st.st_mode)) {
		err_set(e, ERR_USAGE, "--json-file: %s is not a regular file", path);
		return err_hint(e, "a pipe or a device is for --json-fd");
	}
	dir = xstrdup(real ? real : path);
	slash = strrchr(dir, '/');
	r->name = xstrdup(slash ? slash + 1 : dir);
	if (!*r->name)
		return cannot(r, *path ? EISDIR : ENOENT, e);
	if (slash)
		slash[slash == dir] = '\0';
	r->dir = open(slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->dir < 0)
		return cannot(r, errno, e);
	/* Only to see that it can be made. */
	fd = make_file(r);
	if (fd < 0)
		return cannot(r, fd, e);
	close(fd);
	if (r->temp)
		unlinkat(r->dir, r->temp, 0);
	free(TAKE_PTR(r->temp));
	return 0;
}

int report_open(struct report *r, const struct verb_common *common, bool outside,
		struct err *e)
{
	*r = (struct report){ .dir = -1 };
	if (outside)
		return 0;
	if (common->json_fd && common->json_file)
		return err_set(e, ERR_USAGE,
			       "--json-fd and --json-file: one of them is enough");
	if (common->json_fd)
		return open_fd(r, common->json_fd, e);
	return common->json_file ? open_file(r, common->json_file, e) : 0;
}

int report_begin(struct report *r, FILE *plain, struct err *e)
{
	int fd = -1;

	if (!r->out && r->name)
		fd = make_file(r);
	else if (!r->out && r->fd > STDERR_FILENO)
		fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		r->out = fdopen(fd, "w");
	else if (!r->out && r->name)
		return cannot(r, fd, e);
	else if (!r->out)
		r->out = r->fd == STDOUT_FILENO	  ? stdout
			 : r->fd == STDERR_FILENO ? stderr
						  : plain;
	if (!r->out)
		return err_sys(e, errno, "cannot write the result");
	r->used = true;
	return 0;
}

static int give_name(struct report *r)
{
	char at[64];
	int n;

	if (!r->temp) {
		r->temp = xasprintf(".%.200s.%d", r->name, (int)getpid());
		snprintf(at, sizeof(at), "/proc/self/fd/%d", fileno(r->out));
		n = linkat(AT_FDCWD, at, r->dir, r->temp, AT_SYMLINK_FOLLOW);
		if (n < 0) {
			n = -errno;
			free(TAKE_PTR(r->temp));
			return n;
		}
	}
	return renameat(r->dir, r->temp, r->dir, r->name) < 0 ? -errno : 0;
}

int report_end(struct report *r, struct err *e)
{
	bool mine = r->out && r->out != stdout && r->out != stderr;
	int rc = 0;

	errno = 0;
	if (r->out && (fflush(r->out) == EOF || ferror(r->out)))
		rc = -(errno ? errno : EIO);
	if (rc == 0 && r->used && r->name)
		rc = give_name(r);
	if (rc < 0 && r->temp)
		unlinkat(r->dir, r->temp, 0);
	if (rc < 0 && r->name)
		cannot(r, rc, e);
	else if (rc < 0)
		err_sys(e, rc, "cannot write the result%s", r->fd ? " to --json-fd" : "");
	if (mine)
		fclose(r->out);
	if (r->name && r->dir >= 0)
		close(r->dir);
	free(r->name);
	free(r->path);
	free(r->temp);
	*r = (struct report){ .dir = -1 };
	return rc < 0 ? -1 : 0;
}

int report_fd(const struct report *r, FILE *plain)
{
	return r->name ? 0 : r->fd ? r->fd : fileno(plain);
}
