/* SPDX-License-Identifier: Apache-2.0 */
/* An ACL as it was read from a file: what becomes of it is no longer, and stays what it is. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "fuzz.h"
#include "sys/acl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly that size, so that a sanitizer sees a byte too many. */
	AUTO_FREE char *acl = xmalloc(size ? size : 1), *once = xmalloc(size ? size : 1);
	ssize_t n;

	memcpy(acl, data, size);
	n = acl_without_strangers(acl, size);
	if (n > (ssize_t)size)
		abort();
	if (n < 0)
		return 0;
	/* Nobody is left who would have to go. */
	memcpy(once, acl, (size_t)n);
	if (acl_without_strangers(acl, (size_t)n) != n ||
	    memcmp(once, acl, (size_t)n) != 0)
		abort();
	return 0;
}
