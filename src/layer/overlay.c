/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/overlay.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

int overlay_whiteout(int dir, const char *name)
{
	return mknodat(dir, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno
										 : 0;
}

bool overlay_is_mark(const char *name)
{
	return has_prefix(name, OVERLAY_MARK) && !has_prefix(name, OVERLAY_ESCAPED);
}

bool overlay_is_escaped(const char *name)
{
	return has_prefix(name, OVERLAY_ESCAPED);
}
