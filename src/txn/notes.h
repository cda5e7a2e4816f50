/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_NOTES_H
#define STET_TXN_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A path and what is to be said about it. */
struct path_note {
	char *path;
	char *what;
	bool stuck; /* --ours does not help: there is no place to do it */
	int64_t by; /* of a conflict: the transaction that has committed there; or 0 */
};
struct path_notes {
	struct path_note *v;
	size_t n;
	uint64_t more; /* not kept */
};
void path_notes_add(struct path_notes *n, const char *path, const char *what);
void path_notes_free(struct path_notes *n);

#endif
