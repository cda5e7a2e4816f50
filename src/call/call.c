/* SPDX-License-Identifier: Apache-2.0 */
#include "call/call.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/json.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/state.h"

const struct verb_states states_to_decide = {
	.in = IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
	.refusals = { { IN(TXN_RUNNING), NULL, "end its command first, then try again" },
		      { IN(TXN_GONE) | IN(TXN_KEPT), NULL, "stet undo @ takes that back",
			true } },
};

const struct verb_states states_of_timeline = {
	.in = IN(TXN_RUNNING) | IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
	.in_place = "works in place: it has one snapshot and no checkpoints",
	.in_place_hint = "stet rollback @ goes back to the beginning",
	.refusals = { { IN(TXN_EMPTY), ": its checkpoints are gone", NULL, false },
		      { IN(TXN_GONE) | IN(TXN_KEPT), NULL, "stet undo @ takes that back",
			true } },
};

const struct verb_states states_with_checkpoints = {
	.in = ~IN(TXN_EMPTY),
	.in_place = "works in place: it has one snapshot and no checkpoints",
	.in_place_hint = "stet rollback @ goes back to the beginning",
	.refusals = { { IN(TXN_EMPTY), ": its checkpoints are gone" } },
};

/* Sets the hint @text, with the name of the transaction for each "@". */
static void advise(const char *text, int64_t id, struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;

	for (; text && *text; text++)
		if (*text == '@')
			buf_addf(&b, "t%lld", (long long)id);
		else
			buf_addc(&b, *text);
	if (b.len)
		err_hint(e, "%s", buf_str(&b));
}

static int refuse(const char *says, const char *hint, int64_t id, struct err *e)
{
	err_set(e, ERR_STATE, "t%lld %s", (long long)id, says);
	advise(hint, id, e);
	return -1;
}

static const struct verb_states *states_of(const struct verb_call *c)
{
	return c->verb->states_of ? c->verb->states_of(c->req) : c->verb->states;
}

int call_allowed(const struct verb_call *c, const struct txn_record *rec, struct err *e)
{
	const struct verb_states *s = states_of(c);
	const struct verb_refusal *r;
	enum txn_look look;
	bool final;

	if (!s)
		return 0;
	look = txn_look(rec);
	final = txn_is_final(rec);
	if (look != TXN_EMPTY && s->in_place && txn_in_place(rec))
		return refuse(s->in_place, s->in_place_hint, rec->id, e);
	if (look != TXN_EMPTY && s->final && final)
		return refuse(s->final, s->final_hint, rec->id, e);
	if (s->in & IN(look))
		return 0;
	for (r = s->refusals; r->in && !(r->in & IN(look)); r++)
		;
	err_set(e, ERR_STATE, "t%lld is %s%s", (long long)rec->id, txn_look_name(look),
		r->why ? r->why : "");
	if (!(r->unless_final && final))
		advise(r->hint, rec->id, e);
	return -1;
}

int call_find(struct verb_call *c, const char *ref, struct err *e)
{
	return op_ctx_txn(c->ctx, ref, &c->t, e) < 0 ? -1 : call_allowed(c, &c->t.rec, e);
}

int call_operands(struct verb_call *c, const char *first, char *const *rest,
		  struct err *e)
{
	return op_ctx_operands(c->ctx, first, rest, &c->t, &c->paths, e) < 0
		       ? -1
		       : call_allowed(c, &c->t.rec, e);
}

static int open_home(struct verb_call *c, struct err *e)
{
	switch (c->verb->home) {
	case HOME_OPEN:
		return op_ctx_open(c->ctx, &c->h, e);
	case HOME_LOOK:
		return op_ctx_look(c->ctx, &c->h, e);
	case HOME_RECOVERED:
		return op_ctx_home(c->ctx, &c->h, e);
	default:
		return 0;
	}
}

/* The text that names the transaction: of an operand or, if none does, of an option. */
static const char *name_of_target(const struct verb *v, const void *req)
{
	const struct verb_arg *a = v->args;
	const struct verb_opt *o = v->opts;

	for (; a && a->name; a++)
		if (a->kind == ARG_TXN)
			return *(const char *const *)(const void *)((const char *)req +
								    a->offset);
	for (; o && o->name; o++)
		if (o->kind == ARG_TXN)
			return *(const char *const *)(const void *)((const char *)req +
								    o->offset);
	return NULL;
}

static char *const *paths_of_target(const struct verb *v, const void *req)
{
	for (const struct verb_arg *a = v->args; a && a->name; a++)
		if (a->kind == ARG_PATH && a->many)
			return *(char *const *const *)(const void *)((const char *)req +
								     a->offset);
	return NULL;
}

static bool is_word(const struct verb *v, const char *name)
{
	for (size_t i = 0; v->words && v->words[i]; i++)
		if (strcmp(v->words[i], name) == 0)
			return true;
	return false;
}

static int resolve(struct verb_call *c, struct err *e)
{
	const struct verb *v = c->verb;
	const char *name = name_of_target(v, c->req);

	switch (v->target) {
	case TARGET_TXN:
		return call_find(c, name, e);
	case TARGET_TXN_NAMED:
		return name && !is_word(v, name) ? call_find(c, name, e) : 0;
	case TARGET_TXN_PATHS:
		return call_operands(c, name, paths_of_target(v, c->req), e);
	default:
		return 0;
	}
}

int call_begin(struct verb_call *c, struct err *e)
{
	const struct verb *v = c->verb;

	c->t = (struct txn){ .lock = -1 };
	if (v->check && v->check(c->ctx, c->req, e) < 0)
		return -1;
	return open_home(c, e) < 0 ? -1 : resolve(c, e);
}

int call_end(struct verb_call *c, void *res, int result)
{
	const struct verb *v = c->verb;
	struct txn_facts *f = v->flags & VERB_TXN_FIRST ? res : NULL;

	if (f && (result == 0 || v->explain)) {
		if (!f->rec.id && c->t.rec.id)
			txn_facts_take(f, &c->t);
		else if (f->rec.id && !f->state)
			txn_facts_look(f);
	}
	txn_close(&c->t);
	strv_free(c->paths);
	return result;
}

json_t *verb_json(const struct verb *v, const void *res)
{
	json_t *o, *lines, *list, *item;
	const char *key;
	size_t i;

	o = json_result();
	schema_add(o, v->result, res);
	if (!(v->flags & VERB_LINES))
		return o;
	lines = json_array();
	json_object_foreach(o, key, list) json_array_foreach(list, i, item)
	{
		json_t *line = json_result();

		json_object_update(line, item);
		json_array_append_new(lines, line);
	}
	json_decref(o);
	return lines;
}
