/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction that changed nothing leaves its directories as clean as they were. The next
 * transaction of the same shape takes them over: making and deleting a dozen directories takes
 * longer than the rest of a start, the more so the more files were deleted lately.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "txn/parts.h"
#include "txn/prune.h"
#include "txn/recycle.h"

void recycle_shape(struct buf *shape, enum layer_kind kind, bool here)
{
	buf_addf(shape, "%c", !here ? '-' : kind == LAYER_SCRATCH ? 's' : 'o');
}

static char *spare_path(const char *dir, const char *shape)
{
	return xasprintf("%.*s/" SPARE "%s", (int)(strrchr(dir, '/') - dir), dir, shape);
}

int recycle_take(const char *dir, const char *shape)
{
	AUTO_FREE char *spare = spare_path(dir, shape);

	return FAULT_AT("spare.take") || rename(spare, dir) < 0 ? -errno : 0;
}

/*
 * Has the directory any attribute but the layer number of overlayfs? Then the command has set
 * it.
 */
static bool has_attrs(int fd)
{
	char names[64];
	ssize_t n = flistxattr(fd, names, sizeof(names));

	if (n <= 0)
		return n < 0;
	return (size_t)n != strlen(names) + 1 ||
	       (strcmp(names, OVERLAY_MARK "uuid") != 0 &&
		strcmp(names, "trusted.overlay.uuid") != 0);
}

/* Does directory @fd hold exactly @want names, with our owner and without attributes? */
static bool holds(int fd, size_t want)
{
	struct stat st;
	size_t n;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_gid == getegid() &&
	       !has_attrs(fd) && fs_count_few(fd, &n) == 0 && n == want;
}

static int open_in(int dirfd, const char *name)
{
	return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_empty(int dirfd, const char *name)
{
	AUTO_CLOSE int fd = open_in(dirfd, name);

	return fd >= 0 && holds(fd, 0);
}

/*
 * The kernel refuses to mount again with the work directory of a volatile layer. So that is
 * renamed, for txn_clear() to delete; its mode must allow that. The new name is the name of
 * the transaction with the number of the layer in place of the last digit.
 */
static bool clean_work(int layer, const char *aside)
{
	AUTO_CLOSE int wk = open_in(layer, "wk");

	if (wk < 0)
		return false;
	if (fchmodat(wk, "work", 0700, 0) < 0)
		return errno == ENOENT && holds(wk, 0);
	return holds(wk, 1) &&
	       syscall(SYS_renameat2, wk, "work", AT_FDCWD, aside, RENAME_NOREPLACE) == 0;
}

static bool clean_layer(int dir, size_t i, char kind, const char *top)
{
	AUTO_FREE char *aside = xasprintf("%.*s%zx" GONE, (int)strlen(top) - 1, top, i);
	AUTO_CLOSE int layer = -1;
	char name[24];

	snprintf(name, sizeof(name), "l%zu", i);
	if (kind == 's')
		return is_empty(dir, name);
	layer = open_in(dir, name);
	return layer >= 0 && i < 16 && holds(layer, 2) && is_empty(layer, "up") &&
	       clean_work(layer, aside);
}

bool recycle_keep(const char *dir, const char *shape)
{
	AUTO_FREE char *spare = spare_path(dir, shape);
	AUTO_CLOSE int fd = open_in(AT_FDCWD, dir);
	size_t layers = 0;

	if (fd < 0)
		return false;
	for (size_t i = 0; shape[i]; i++)
		layers += shape[i] != '-';
	if (!holds(fd, layers))
		return false;
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] != '-' && !clean_layer(fd, i, shape[i], dir))
			return false;
	return !FAULT_AT("spare.keep") && syscall(SYS_renameat2, AT_FDCWD, dir, AT_FDCWD,
						  spare, RENAME_NOREPLACE) == 0;
}
