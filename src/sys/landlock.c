/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Newer than the headers of the systems we build on. */
struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1, SCOPE_SIGNAL = 2 };

int landlock_scope(void)
{
	struct ruleset_attr attr = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET |
					       SCOPE_SIGNAL };
	AUTO_CLOSE int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
					 0);

	if (fd < 0) /* too old, switched off, or too old for scopes */
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == E2BIG ||
				       errno == EINVAL
			       ? -EOPNOTSUPP
			       : -errno;
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
