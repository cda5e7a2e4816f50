/* SPDX-License-Identifier: Apache-2.0 */
#include "change/unfold.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "change/meta.h"
#include "sys/fs.h"
#include "sys/ns.h"

static bool is_dir(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool exists(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Says name by name what the mark on the directory says for all of them. */
static int spell_out(int up, int host)
{
	AUTO_CLOSE int list = openat(host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_names names;
	int r;

	if (list < 0)
		return -errno;
	r = fs_names_read(list, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++) {
		const char *n = names.v[i];

		if (!exists(up, n))
			r = FAULT_AT("unfold.whiteout") ||
					    mknodat(up, n, S_IFCHR, makedev(0, 0)) < 0
				    ? -errno
				    : 0;
		else if (is_dir(up, n) && is_dir(host, n))
			r = meta_set_opaque(up, n, true);
	}
	fs_names_free(&names);
	return r;
}

static int unfold(int up, int host);

static int unfold_dir(int upper, int lower, const char *name)
{
	/* Where the host has no directory, nothing is hidden. */
	AUTO_CLOSE int host = fs_open_dir_here(lower, name, O_PATH);
	AUTO_CLOSE int up = -1;
	struct timespec times[2];
	struct stat st;
	int r = 0;

	if (host < 0)
		return 0;
	do {
		up = fs_open_dir_here(upper, name, O_RDONLY);
	} while (up == -EACCES && ns_gain_override() == 0);
	if (up < 0)
		return up == -ENOENT ? 0 : TAKE_FD(up);
	if (meta_is_opaque(upper, name)) {
		r = fstat(up, &st) < 0 ? -errno : meta_note_mtime(up, &st, times);
		if (r == 0)
			r = spell_out(up, host);
		if (r == 0 && (FAULT_AT("unfold.utimes") || futimens(up, times) < 0))
			r = -errno;
		if (r == 0)
			r = meta_set_opaque(upper, name, false);
		if (r == 0)
			r = meta_drop_mtime(up);
		/* One that its owner may not change stays as it is. */
		if (r == -EACCES || r == -EPERM)
			return 0;
	}
	return r < 0 ? r : unfold(up, host);
}

static int unfold(int up, int host)
{
	struct fs_names names;
	int r = fs_names_read(up, &names);

	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++)
		if (is_dir(up, names.v[i]))
			r = unfold_dir(up, host, names.v[i]);
	fs_names_free(&names);
	return r;
}

int unfold_layer(const struct change_layer *l)
{
	AUTO_CLOSE int up = open(l->upper,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int host = open(l->host, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (up < 0 || host < 0)
		return -errno;
	return unfold(up, host);
}
