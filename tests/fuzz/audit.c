/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command line on their way into the books: no secret makes them longer by much. */
#include <string.h>

#include "audit/audit.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF struct buf out = BUF_INIT;
	struct redact r = { 0 };
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		redact_word(&r, at, len, &out);
		at += len + 1;
	}
	return 0;
}
