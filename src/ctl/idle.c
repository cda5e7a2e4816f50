/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/idle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "sys/fs.h"
#include "sys/mount.h"
#include "sys/mountinfo.h"

/*
 * The stage lies in the state directory, on the filesystem of the transaction's own directory.
 */
static bool is_far(const struct view *v, const char *dir)
{
	AUTO_FREE char *state = xstrndup(v->stage,
					 (size_t)(strrchr(v->stage, '/') - v->stage));

	return !path_within(dir, state);
}

/*
 * Opens the upper as a mount of its own that has nothing above it: from there the rest of the
 * store cannot be reached.
 */
static int open_apart(const char *up)
{
	AUTO_CLOSE int mount = mount_clone(AT_FDCWD, up, false,
					   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						   MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	return mount < 0 ? -1 : openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void idle_layers_add(struct idle_layers *f, const struct view *v, size_t layer)
{
	const char *dir = v->layers[layer].dir;
	AUTO_FREE char *up = xasprintf("%s/up", dir);
	/*
	 * The directories are called l0, l1 and so on, whatever the order of the layers in
	 * this view.
	 */
	unsigned long number = strtoul(strrchr(dir, '/') + 2, NULL, 10);
	struct idle_layer *l = &f->v[f->n];

	if (f->n == IDLE_LAYERS_MAX || number >= IDLE_LAYERS_MAX || !is_far(v, up))
		return;
	l->number = number;
	l->upper = open_apart(up);
	if (l->upper < 0 || fstat(l->upper, &l->was) < 0) {
		cleanup_close(&l->upper);
		return;
	}
	l->attrs = flistxattr(l->upper, NULL, 0);
	f->n++;
}

/*
 * Every change, however deep, leaves an entry in the upper, except changes of the attributes
 * of its root.
 */
static bool is_untouched(const struct idle_layer *l)
{
	struct stat st;
	size_t n;

	return fstat(l->upper, &st) == 0 && st.st_mode == l->was.st_mode &&
	       st.st_uid == l->was.st_uid && st.st_gid == l->was.st_gid &&
	       flistxattr(l->upper, NULL, 0) == l->attrs &&
	       fs_count_few(l->upper, &n) == 0 && n == 0;
}

uint64_t idle_layers_untouched(const struct idle_layers *f)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < f->n; i++)
		if (is_untouched(&f->v[i]))
			bits |= 1ULL << f->v[i].number;
	return bits;
}
