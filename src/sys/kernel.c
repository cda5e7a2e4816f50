/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/kernel.h"

#include <stdio.h>
#include <sys/utsname.h>

bool kernel_is(unsigned major, unsigned minor)
{
	unsigned has_major = 0, has_minor = 0;
	struct utsname u;

	return uname(&u) == 0 &&
	       sscanf(u.release, "%u.%u", &has_major, &has_minor) == 2 &&
	       (has_major > major || (has_major == major && has_minor >= minor));
}
