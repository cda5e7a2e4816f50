/* SPDX-License-Identifier: Apache-2.0 */
/* An ACL as it was read from a file: what becomes of it is no longer, and stays what it is. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sys/acl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *acl = malloc(size ? size : 1), *once = NULL;
	ssize_t n, again;

	if (!acl)
		return 0;
	memcpy(acl, data, size);
	n = acl_without_strangers(acl, size);
	if (n > (ssize_t)size)
		abort();
	/* Nobody is left who would have to go. */
	if (n >= 0) {
		once = malloc(n ? (size_t)n : 1);
		memcpy(once, acl, (size_t)n);
		again = acl_without_strangers(acl, (size_t)n);
		if (again != n || memcmp(once, acl, (size_t)n) != 0)
			abort();
	}
	free(once);
	free(acl);
	return 0;
}
