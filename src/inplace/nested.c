/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "inplace/nested.h"
#include "snap/store.h"
#include "sys/btrfs.h"
#include "txn/state.h"

/*
 * Subvolumes nested in the workspace. A snapshot of the workspace holds nothing of them. If a
 * command could reach one, stet would see neither the changes inside of it nor the loss of a
 * directory in whose place the command has moved it.
 */

bool inplace_is_store(const struct txn_record *r, const char *rel)
{
	const char *dir = txn_in_place(r);
	size_t len = strlen(dir);

	if (strncmp(rel, STORE_NAME, strlen(STORE_NAME)) != 0 || strchr(rel, '/'))
		return false;
	for (char **p = r->hidden; p && *p; p++)
		if (**p == '!' && strncmp(*p + 1, dir, len) == 0 &&
		    (*p)[1 + len] == '/' && strcmp(*p + 1 + len + 1, rel) == 0)
			return true;
	return false;
}

struct nested {
	int fd; /* the workspace */
	const char *dir;
	char *const *closed;
	const struct txn_record *rec;
	struct err *e;
};

/* Before the view is made there is no list of hidden stores: snap/hide.c goes by these names. */
static bool in_store(const struct nested *n, const char *path)
{
	AUTO_FREE char *top = xstrndup(path, strcspn(path, "/"));
	struct stat st;

	if (n->rec)
		return inplace_is_store(n->rec, top);
	return fstatat(n->fd, top, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode) && store_named(top, st.st_uid);
}

/* A mount keeps the command from changing or moving a --read-only path. */
static bool is_closed(const struct nested *n, const char *path)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", n->dir, path);

	for (char *const *p = n->closed; p && *p; p++)
		if (path_within(whole, *p))
			return true;
	for (char **p = n->rec ? n->rec->hidden : NULL; p && *p; p++)
		if (**p == '=' && path_within(whole, *p + 1))
			return true;
	return false;
}

static int refuse(void *arg, const char *path)
{
	struct nested *n = arg;

	if (!path) {
		err_set(n->e, ERR_UNSUPPORTED,
			"--backend btrfs: %s has a subvolume nested in it, in a directory "
			"that this user cannot look into",
			n->dir);
		err_hint(n->e, "leave --backend out");
		return 1;
	}
	if (in_store(n, path) || is_closed(n, path))
		return 0;
	err_set(n->e, ERR_UNSUPPORTED,
		"--backend btrfs: a snapshot of %s holds nothing of the subvolume %s/%s",
		n->dir, n->dir, path);
	err_hint(n->e, "keep it as it is: --read-only '%s/%s', or leave --backend out",
		 n->dir, path);
	return 1;
}

int nested_refuse(int fd, const char *dir, char *const *closed,
		  const struct txn_record *r, struct err *e)
{
	struct nested n = { fd, dir, closed, r, e };
	int x = btrfs_nested(fd, refuse, &n);

	return x < 0 ? err_sys(e, x, "cannot look for subvolumes in %s", dir)
	       : x   ? -1
		     : 0;
}
