/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_NOTES_H
#define STET_TXN_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A path and a line about it for a person: a conflict, a risk, a denial. */
struct path_note {
	char *path;
	char *what;
	bool stuck; /* --ours does not help: the directory to write to is missing */
	int64_t by; /* the other transaction whose commit caused the conflict; or 0 */
};
struct path_notes {
	struct path_note *v;
	size_t n;
	uint64_t more; /* lines that were counted and not kept */
};
void path_notes_add(struct path_notes *n, const char *path, const char *what);
void path_notes_free(struct path_notes *n);

#endif
