/* SPDX-License-Identifier: Apache-2.0 */
/* A packet from PID 1 of the sandbox to the process that started it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gate/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	struct wire_exec x;
	size_t n = 0;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	copy[size] = 0;
	if (wire_unpack(copy, size, &x) == 0)
		for (size_t i = 0; i < x.facts.argc; i++)
			n += strlen(x.facts.argv[i]) + 1;
	if (n > size)
		abort();
	free(x.argv);
	free(copy);
	return 0;
}
