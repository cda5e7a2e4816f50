/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/origin.h"

#include "base/cleanup.h"

const char *conf_origin_name(enum conf_origin origin)
{
	static const char *const names[] = { "built-in", "system", "user", "project" };

	return origin < ARRAY_SIZE(names) ? names[origin] : "unknown";
}
