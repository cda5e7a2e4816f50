/* SPDX-License-Identifier: Apache-2.0 */
/* A message from PID 1 of the sandbox to the process that started it; a packet of them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gate/wire.h"

static void walk(const char *data, size_t size)
{
	const char *end = data + size, *message;
	ssize_t n;

	while ((n = wire_next(&data, &size, &message)) > 0)
		if (message + n > end)
			abort();
}

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
	walk(copy, size);
	if (wire_fill(copy, size) > size)
		abort();
	free(copy);
	return 0;
}
