/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "txn/home.h"
#include "txn/parts.h"

/* Only /etc/passwd is read: a statically linked program has no other source. */
static struct passwd *find_user(uid_t uid)
{
	AUTO_FCLOSE FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	do
		pw = f ? fgetpwent(f) : NULL;
	while (pw && pw->pw_uid != uid);
	return pw;
}

/* The state directory according to the environment; NULL if no variable says so. */
static char *wanted_dir(void)
{
	const char *own = getenv("STET_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	struct passwd *pw;

	if (own && own[0] == '/')
		return xstrdup(own);
	if (xdg && xdg[0] == '/')
		return xasprintf("%s/stet", xdg);
	if (!home || home[0] != '/') {
		pw = find_user(geteuid());
		home = pw ? pw->pw_dir : NULL;
	}
	/* A home that does not exist is not made. */
	return home && home[0] == '/' && access(home, F_OK) == 0
		       ? xasprintf("%s/.local/state/stet", home)
		       : NULL;
}

/* If a directory above cannot be made, its error is the cause, not ENOENT. */
static int make_path(char *path)
{
	int first = 0;

	for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST && !first)
			first = -errno;
		*s = '/';
	}
	if ((!FAULT_AT("home.mkdir") && mkdir(path, 0700) == 0) || errno == EEXIST)
		return 0;
	return errno == ENOENT && first ? first : -errno;
}

static int check_dir(const char *dir, struct err *e)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return err_sys(e, errno, "state directory %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_SYSTEM, "state directory %s is not a directory",
			       dir);
	if (st.st_uid != geteuid()) {
		err_set(e, ERR_SYSTEM,
			"state directory %s belongs to another user (uid %u)", dir,
			(unsigned)st.st_uid);
		return err_hint(e, "set STET_STATE_DIR to a directory of your own");
	}
	if (st.st_mode & 077 && chmod(dir, 0700) < 0)
		return err_sys(e, errno, "cannot close %s to others", dir);
	return 0;
}

int home_find(struct home *h, struct err *e)
{
	const char *own = getenv("STET_STATE_DIR");
	AUTO_FREE char *dir = wanted_dir();
	int r;

	*h = (struct home){ 0 };
	if (own && *own && *own != '/') {
		err_set(e, ERR_USAGE, "STET_STATE_DIR is no absolute path: %s", own);
		return err_hint(e, "write it from / on");
	}
	if (!dir) {
		err_set(e, ERR_SYSTEM,
			"no home directory: HOME is not set, or does not exist");
		return err_hint(e, "set STET_STATE_DIR to a directory of your own");
	}
	h->dir = realpath(dir, NULL);
	if (!h->dir) {
		r = make_path(dir);
		if (r < 0) {
			err_sys(e, r, "cannot make the state directory %s", dir);
			return err_hint(e, "set STET_STATE_DIR to a writable directory");
		}
		h->dir = realpath(dir, NULL);
		if (!h->dir)
			return err_sys(e, errno, "state directory %s", dir);
	}
	log_debug("state in %s", h->dir);
	if (check_dir(h->dir, e) < 0) {
		home_close(h);
		return -1;
	}
	return 0;
}

int home_connect(struct home *h, struct err *e)
{
	return h->journal ? 0 : journal_open(h->dir, &h->journal, e);
}

int home_open(struct home *h, struct err *e)
{
	if (home_find(h, e) < 0)
		return -1;
	if (home_connect(h, e) == 0)
		return 0;
	home_close(h);
	return -1;
}

/*
 * Since Linux 6.13 a file whose times were read gets an exact ctime with its next change, and
 * no file of the machine gets an earlier one afterwards.
 */
int64_t exact_time(int dir)
{
	struct timespec t;
	struct stat st;

	if (fchmod(dir, 0700) < 0 || fstat(dir, &st) < 0)
		return 0;
	clock_gettime(CLOCK_REALTIME, &t);
	if (fchmod(dir, 0700) < 0 || fstat(dir, &st) < 0)
		return 0;
	if (st.st_ctim.tv_sec < t.tv_sec ||
	    (st.st_ctim.tv_sec == t.tv_sec && st.st_ctim.tv_nsec < t.tv_nsec))
		return 0;
	return (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
}

/* The lock is on the store: making a journal locks the state directory. */
int home_guard(const struct home *h, int how)
{
	AUTO_FREE char *store = xasprintf("%s/tx", h->dir);
	AUTO_CLOSE int fd = -1;

	if (mkdir(store, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

struct audit *home_books(struct home *h)
{
	int r = h->audit ? 0 : audit_open(h->dir, &h->audit);

	if (r < 0)
		log_debug("no audit in %s: %s", h->dir, strerror(-r));
	return h->audit;
}

void txn_note(struct home *h, const char *event, int64_t txn, int64_t op)
{
	audit_op(home_books(h),
		 &(struct audit_op){ .event = event, .txn = txn, .op = op });
}

void home_close(struct home *h)
{
	audit_close(h->audit);
	journal_close(h->journal);
	free(h->dir);
	*h = (struct home){ 0 };
}
