/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "ckpt/apply.h"
#include "sys/mount.h"
#include "sys/mountinfo.h"
#include "sys/ns.h"
#include "timeline/mount.h"
#include "timeline/parts.h"
#include "txn/parts.h"
#include "txn/prune.h"

/*
 * A part of an upper cannot be restored by itself: what shows at a path depends on the
 * directories above it. overlayfs has these rules, so the part is restored through a mounted
 * overlay.
 */

static bool concerned(const struct ck_layer *l, const char *const *paths)
{
	if (l->up < 0)
		return false;
	for (; *paths; paths++)
		if (path_within(*paths, l->path) || path_within(l->path, *paths))
			return true;
	return false;
}

static char *layer_dir(const struct change_layer *cl)
{
	return xstrndup(cl->upper, strlen(cl->upper) - strlen("/up"));
}

static int mount_layer(const struct change_layer *cl, const char *work, int *fd)
{
	struct overlay_spec o = { .lower = { -1, -1, -1 }, .attrs = MOUNT_ATTR_NODEV };
	int m;

	o.lower[0] = open(cl->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	o.upper = open(cl->upper, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	o.work = open(work, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (o.lower[0] < 0 || o.upper < 0 || o.work < 0)
		return -errno;
	m = mount_overlay(&o, NULL, 0);
	close(o.lower[0]);
	close(o.upper);
	close(o.work);
	if (m < 0)
		return m;
	*fd = openat(m, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

/* In a child: its mount goes with it. */
static int child(struct timeline *c, const char *const *paths, char *const *work,
		 int steps, struct err *e)
{
	int r = ns_own_mounts();

	if (r < 0)
		return err_sys(e, r, "cannot mount the layers");
	for (size_t i = 0; i < c->layers.n; i++) {
		struct ck_layer *l = &c->layers.v[i];

		if (!concerned(l, paths))
			continue;
		r = mount_layer(&c->changes[i], work[i], &l->up);
		if (r < 0)
			return err_sys(e, r, "cannot mount the layer of %s", l->path);
		l->merged = true;
	}
	return ck_carry_out(&c->layers, steps, e);
}

static int in_child(struct timeline *c, const char *const *paths, char *const *work,
		    int steps, struct err *e)
{
	struct err *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (shared == MAP_FAILED)
		return err_sys(e, errno, "no memory");
	pid = fork();
	if (pid == 0)
		_exit(child(c, paths, work, steps, shared) < 0);
	if (pid < 0) {
		munmap(shared, sizeof(*shared));
		return err_sys(e, errno, "cannot fork");
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status && !shared->kind)
		err_set(shared, ERR_SYSTEM, "what puts the files back has died");
	*e = *shared;
	munmap(shared, sizeof(*shared));
	return status ? -1 : 0;
}

int timeline_mount_go(struct timeline *c, const struct ck_state *now,
		      const struct ck_state *target, const char *const *paths,
		      struct err *e)
{
	AUTO_CLOSE int steps = memfd_create("steps", MFD_CLOEXEC);
	char **work = xcalloc(c->layers.n + 1, sizeof(*work));
	uint64_t n;
	int r;

	r = steps < 0 ? err_sys(e, errno, "no memory")
		      : ck_plan(&c->layers, now, target, paths, steps, &n, e);
	for (size_t i = 0; i < c->layers.n && r == 0; i++) {
		AUTO_FREE char *dir = layer_dir(&c->changes[i]);

		work[i] = xasprintf("%s/wk.restore", dir);
		if (!concerned(&c->layers.v[i], paths))
			continue;
		data_remove_dir(work[i], NULL);
		if (mkdir(work[i], 0700) < 0)
			r = err_sys(e, errno, "cannot make %s", work[i]);
	}
	if (r == 0)
		r = in_child(c, paths, work, steps, e);
	for (size_t i = 0; i < c->layers.n; i++) {
		if (work[i])
			data_remove_dir(work[i], NULL);
		free(work[i]);
	}
	free(work);
	return r;
}
