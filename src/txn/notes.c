/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/notes.h"

#include <stdlib.h>

#include "base/buf.h"

enum { NOTES_MAX = 1000 };

void path_notes_add(struct path_notes *n, const char *path, const char *what)
{
	if (n->n == NOTES_MAX) {
		n->more++;
		return;
	}
	if ((n->n & (n->n - 1)) == 0)
		n->v = xrealloc(n->v, (n->n ? 2 * n->n : 8) * sizeof(*n->v));
	n->v[n->n++] = (struct path_note){ .path = xstrdup(path), .what = xstrdup(what) };
}

void path_notes_free(struct path_notes *n)
{
	for (size_t i = 0; i < n->n; i++) {
		free(n->v[i].path);
		free(n->v[i].what);
	}
	free(n->v);
	*n = (struct path_notes){ 0 };
}
