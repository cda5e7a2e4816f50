/* SPDX-License-Identifier: Apache-2.0 */
/* A request from inside of the sandbox, as whoever answers it outside reads it. */
#include <stdlib.h>
#include <string.h>

#include "cli/inside.h"
#include "cli/inside_worker.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	char **words = calloc(INSIDE_WORDS + 1, sizeof(*words));
	size_t n = 0, used = sizeof(INSIDE_HELLO);

	if (!copy || !words)
		abort();
	if (size)
		memcpy(copy, data, size);
	if (inside_parse(copy, size, words, &n)) {
		if (n < 2 || n > INSIDE_WORDS || words[n])
			abort();
		/* One after the other, to the last byte. */
		for (size_t i = 0; i < n; i++) {
			if (words[i] != copy + used)
				abort();
			used += strlen(words[i]) + 1;
		}
		if (used != size)
			abort();
	}
	free(words);
	free(copy);
	return 0;
}
