/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_CLEANUP_H
#define STET_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Scope cleanup: a resource declared AUTO_x is released when its scope is left, with
 * errno kept. To hand it on, use TAKE_FD / TAKE_PTR.
 */
static inline void cleanup_free(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void cleanup_close(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void cleanup_closedir(DIR **d)
{
	int saved = errno;

	if (*d)
		closedir(*d);
	errno = saved;
}

static inline void cleanup_fclose(FILE **f)
{
	int saved = errno;

	if (*f)
		fclose(*f);
	errno = saved;
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close)))
#define AUTO_CLOSEDIR __attribute__((cleanup(cleanup_closedir)))
#define AUTO_FCLOSE __attribute__((cleanup(cleanup_fclose)))

#define TAKE_FD(fd)                  \
	__extension__({              \
		int take_fd_ = (fd); \
		(fd) = -1;           \
		take_fd_;            \
	})

#define TAKE_PTR(p)                            \
	__extension__({                        \
		__typeof__(p) take_ptr_ = (p); \
		(p) = NULL;                    \
		take_ptr_;                     \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
