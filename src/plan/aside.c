/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "plan/parts.h"
#include "sys/move.h"

/* Objects in `old` that were moved out of the way of the steps. */

enum { ASIDE_MAX = sizeof(((struct place *)0)->slot) + 2 };

static void put_aside_name(const struct place *p, char name[ASIDE_MAX])
{
	snprintf(name, ASIDE_MAX, "%s~", p->slot);
}

/*
 * Renames what lies under the number of the step: no step asks for it any more, but it must
 * not be lost.
 */
int apply_put_aside(const struct place *p)
{
	char name[ASIDE_MAX];

	put_aside_name(p, name);
	return move_name(p->old, p->slot, p->old, name, 0);
}

int apply_find_aside(const struct place *p, struct ident *id)
{
	char name[ASIDE_MAX];

	*id = (struct ident){ 0 };
	put_aside_name(p, name);
	return p->old < 0 ? 0 : ident_at(p->old, name, id);
}

int apply_take_aside(const struct plan_rec *r, const struct place *p, int dir,
		     const char *name)
{
	char aside[ASIDE_MAX];
	struct ident id, host;
	int x = apply_find_aside(p, &id);

	if (x < 0 || !ident_is(&id, &r->before) || dir < 0)
		return x;
	x = ident_at(p->host, p->name, &host);
	if (x < 0 || ident_is(&host, &r->before))
		return x;
	put_aside_name(p, aside);
	x = move_name(p->old, aside, dir, name, RENAME_NOREPLACE);
	return x == -EEXIST ? 0 : x;
}
