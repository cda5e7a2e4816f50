/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/unopaque.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/meta.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "sys/ns.h"

/* The functions of this file return 1 if they have written something, 0 if not, -errno. */

/* The type of the object @name (0: there is none), or -errno. */
static int type_of(int at, const char *name)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return (int)(st.st_mode & S_IFMT);
}

/*
 * For one name of the host: a whiteout if the upper lacks the name; a directory of the upper
 * becomes opaque itself.
 */
static int spell_name(int up, int host, const char *name)
{
	int ours = type_of(up, name), theirs = type_of(host, name);

	if (ours < 0 || theirs < 0)
		return ours < 0 ? ours : theirs;
	if (!ours)
		return FAULT_AT("unfold.whiteout") ? -errno : overlay_whiteout(up, name);
	return ours == S_IFDIR && theirs == S_IFDIR ? meta_set_opaque(up, name, true) : 0;
}

/* Hides name by name what the opaque mark hides as a whole. */
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
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = spell_name(up, host, names.v[i]);
	fs_names_free(&names);
	return r;
}

/*
 * Takes the opaque mark off. Where the host has no directory (@host < 0) the mark hides
 * nothing yet, but it would hide what the commit is about to put there.
 */
static int unmark(int upper, const char *name, int up, int host)
{
	struct timespec times[2];
	struct stat st;
	int r;

	if (!meta_is_opaque(upper, name))
		return 0;
	r = fstat(up, &st) < 0 ? -errno : meta_note_mtime(up, &st, times);
	if (r == 0 && host >= 0)
		r = spell_out(up, host);
	if (r == 0 && (FAULT_AT("unfold.utimes") || futimens(up, times) < 0))
		r = -errno;
	if (r == 0)
		r = meta_set_opaque(upper, name, false);
	if (r == 0)
		r = meta_drop_mtime(up);
	return r < 0 ? r : 1;
}

static int unfold(int up, int host);

static int unfold_dir(int upper, int lower, const char *name)
{
	AUTO_CLOSE int host = -1, up = -1;
	bool mount = false;
	int r = 0, below;

	up = fs_open_dir_here(upper, name, O_RDONLY);
	if (up < 0)
		return up == -ENOENT ? 0 : TAKE_FD(up);
	if (lower >= 0)
		host = fs_open_dir_here(lower, name, O_PATH);
	/* The layer ends where another mount begins: the mark hides nothing in that mount. */
	if (host == -EXDEV) {
		mount = true;
		host = openat(lower, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (host < 0)
			return -errno;
	}
	if (host < 0 && lower >= 0 && host != -ENOENT && host != -ENOTDIR &&
	    host != -ELOOP)
		return TAKE_FD(host);
	if (!mount)
		r = unmark(upper, name, up, host);
	if (r < 0)
		return r;
	below = unfold(up, host);
	return below < 0 ? below : r | below;
}

struct locked {
	int upper, lower;
	const char *name;
};

static int unfold_locked(void *arg)
{
	const struct locked *l = arg;

	return unfold_dir(l->upper, l->lower, l->name);
}

static int unfold(int up, int host)
{
	struct fs_names names;
	int r = fs_names_read(up, &names), done = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r >= 0; i++) {
		struct locked l = { up, host, names.v[i] };

		r = type_of(up, names.v[i]);
		if (r < 0) /* this one may be read and not searched: for who called us */
			break;
		if (r != S_IFDIR)
			continue;
		r = unfold_dir(up, host, names.v[i]);
		/*
		 * A directory that its owner may not change: a child with more rights begins
		 * again.
		 */
		if (r == -EACCES || r == -EPERM)
			r = ns_try_override(unfold_locked, &l);
		done |= r > 0;
	}
	fs_names_free(&names);
	return r < 0 ? r : done;
}

int unopaque_layer(const struct change_layer *l)
{
	AUTO_CLOSE int up = open(l->upper,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int host = open(l->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (up < 0 || host < 0)
		return -errno;
	r = unfold(up, host);
	/*
	 * If a power cut brought the mark back, the next commit would delete what this one has
	 * put there.
	 */
	if (r > 0)
		r = FAULT_AT("unfold.sync") || syncfs(up) < 0 ? -errno : 0;
	return r;
}
