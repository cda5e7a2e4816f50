/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scene.h"

void judge_defer(struct scene *s)
{
	if (s->text && s->v->kind < VERDICT_DEFER)
		*s->v = (struct verdict){
			.kind = VERDICT_DEFER,
			.from = s->ctx.from,
			.to = s->ctx.to,
		};
}

void judge_apply(struct scene *s, enum verdict_kind kind, enum tri sure, const char *rule,
		 const char *why, const char *hint)
{
	struct verdict v = { kind, rule, why, hint, s->ctx.from, s->ctx.to };

	if (sure == TRI_NO || (sure == TRI_MAYBE && (!s->text || kind == VERDICT_ALLOW)))
		return;
	if (sure == TRI_MAYBE)
		v.kind = VERDICT_DEFER;
	if (v.kind < s->v->kind || (v.kind == s->v->kind && s->v->rule))
		return;
	*s->v = v;
}
