/* SPDX-License-Identifier: Apache-2.0 */
#include "emulate/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"

bool caller_is_directory(const struct viewmounts *m, pid_t pid, int dirfd,
			 const char *path)
{
	struct callpath p;
	AUTO_CLOSE int fd = -1;
	uint64_t mount;

	if (callpath_start(&p, pid, dirfd, path) == 0)
		fd = callpath_open(&p, O_DIRECTORY | O_NOFOLLOW);
	callpath_end(&p);
	return fd >= 0 && viewmounts_has(m, fd, &mount);
}

bool caller_stat(pid_t pid, const char *path, struct stat *st)
{
	struct callpath p;
	AUTO_CLOSE int fd = -1;

	if (callpath_start(&p, pid, AT_FDCWD, path) == 0)
		fd = callpath_open(&p, O_NOFOLLOW);
	callpath_end(&p);
	return fd >= 0 && fstat(fd, st) == 0;
}

int caller_start(struct caller_place *p, const struct viewmounts *m, pid_t pid, int dirfd,
		 const char *path)
{
	int r = callpath_start(&p->path, pid, dirfd, path);

	p->dir = -1;
	if (r == 0)
		r = callpath_hold(&p->path);
	if (r == 0 && !viewmounts_is_root(m, p->path.root))
		r = -EXDEV;
	return r;
}

int caller_find(struct caller_place *p, const struct viewmounts *m)
{
	p->dir = callpath_open_parent(&p->path, p->name);
	if (p->dir < 0)
		return p->dir;
	return viewmounts_has(m, p->dir, &p->mount) ? 0 : -EXDEV;
}

void caller_end(struct caller_place *p)
{
	callpath_end(&p->path);
	cleanup_close(&p->dir);
	p->dir = -1;
}
