/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/known.h"
#include "host/known_text.h"
#include "txn/parts.h"

/* The text that the host had in a file when the command ended, for merging. */

static const char *const bases[] = KNOWN_BASES;

struct wanted {
	uint32_t layer;
	const char *rel;
	struct buf *out;
	bool found;
};

static int find_content(void *arg, const struct plan_rec *r, struct err *e)
{
	struct wanted *w = arg;

	(void)e;
	if (r->kind != PLAN_BASE || r->layer != w->layer || !S_ISREG(r->before.mode) ||
	    strcmp(r->rel, w->rel) != 0)
		return 0;
	/* A digest first, then the content; a file that is empty has both but no bytes. */
	if (r->nxbefore >= sizeof(uint64_t) && (r->nxafter || !r->before.size)) {
		buf_add(w->out, r->xafter, r->nxafter);
		w->found = true;
	}
	return 1;
}

bool known_content(struct known *k, uint32_t layer, const char *rel, struct buf *out)
{
	struct wanted w = { layer, rel, out, false };
	struct plan *p;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bases) && !w.found; i++) {
		if (plan_open(known_dir(k), bases[i], &p, &e) < 0)
			continue;
		plan_each(p, false, find_content, &w, &e);
		plan_close(p);
	}
	return w.found;
}
