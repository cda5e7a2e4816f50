/* SPDX-License-Identifier: Apache-2.0 */
/* A file that calls itself git's index, as whoever works inside has left it. */
#include <stdlib.h>

#include "diff/gitindex.h"
#include "fuzz.h"

struct seen {
	const char *data, *end;
	size_t parts;
};

static void look(void *arg, const void *part, size_t len)
{
	struct seen *s = arg;
	const char *p = part;

	/* Each is a piece of it, and comes after the one before. */
	if (p < s->data || len > (size_t)(s->end - p))
		abort();
	s->data = p + len;
	s->parts++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen s = { (const char *)data, (const char *)data + size, 0 };

	if (gitindex_parts((const char *)data, size, look, &s) ? !s.parts : s.parts)
		abort();
	return 0;
}
