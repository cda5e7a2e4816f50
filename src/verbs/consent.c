/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/consent.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "journal/txn_rows.h"
#include "session/asking.h"

#define AT(field) offsetof(struct consent_req, field)

static const char *const answers[] = { "yes", "no", "always", NULL };

static const struct verb_arg args[] = {
	{ "TX|ANSWER", ARG_TXN, false, false, AT(first), NULL },
	{ "ANSWER", ARG_CHOICE, false, false, AT(second), answers },
	{ NULL },
};

static int answer_of(const char *word)
{
	for (int c = CONSENT_NO; word && c <= CONSENT_ALWAYS; c++)
		if (strcmp(word, consent_name((enum consent)c)) == 0)
			return c;
	return -1;
}

static void consent_free(void *result)
{
	struct consent_res *res = result;

	for (size_t i = 0; i < res->n; i++)
		json_decref(res->v[i].question);
	free(res->v);
	*res = (struct consent_res){ 0 };
}

/* What is looked for, and the connection to what was found last. */
struct search {
	struct consent_res *res;
	int64_t only; /* 0: all */
	int sock;
};

static int look(void *arg, struct txn_record *r, struct err *e)
{
	struct search *s = arg;
	AUTO_FREE char *text = NULL;
	struct consent_res *res = s->res;
	json_t *o;
	int sock;

	(void)e;
	if (r->state != TXN_ACTIVE || (s->only && r->id != s->only) ||
	    asking_look(r->dir, &sock, &text) != 0)
		return 0;
	if (s->sock >= 0)
		close(s->sock);
	s->sock = sock;
	o = json_loads(text, 0, NULL);
	if (!o)
		return 0;
	res->v = xrealloc(res->v, (res->n + 1) * sizeof(*res->v));
	res->v[res->n++] = (struct consent_waiting){ r->id, o };
	return 0;
}

static int decide(struct search *s, int answer, struct err *e)
{
	struct consent_res *res = s->res;

	if (!res->n) {
		err_set(e, ERR_STATE, "no question waits for an answer");
		return err_hint(e,
				"questions wait here while a run that was started with "
				"--ask socket stands still");
	}
	if (res->n > 1) {
		err_set(e, ERR_USAGE, "%zu questions wait: which one?", res->n);
		return err_hint(e, "stet consent; then stet consent TX %s",
				consent_name((enum consent)answer));
	}
	if (asking_answer(s->sock, (enum consent)answer, e) < 0)
		return -1;
	res->answer = consent_name((enum consent)answer);
	return 0;
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct consent_req *rq = req;
	bool answered = answer_of(rq->first) >= 0;

	(void)ctx;
	if (rq->second && (answered || !rq->first))
		return err_set(e, ERR_USAGE, "consent: the transaction comes first");
	if (rq->second && answer_of(rq->second) < 0)
		return err_set(e, ERR_USAGE,
			       "consent: '%s' is no answer: yes, no or always",
			       rq->second);
	return 0;
}

static int op_consent(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct consent_req *rq = req;
	struct search s = { .res = result, .only = c->t.rec.id, .sock = -1 };
	int answer = answer_of(rq->second ? rq->second : rq->first);
	int r = journal_txn_each(c->h->journal, JOURNAL_KEPT, look, &s, e);

	if (r == 0 && answer >= 0)
		r = decide(&s, answer, e);
	cleanup_close(&s.sock);
	if (r < 0)
		consent_free(result);
	return r;
}

static json_t *questions(const void *at)
{
	const struct consent_res *res = at;
	json_t *a = json_array();

	for (size_t i = 0; i < res->n; i++)
		json_array_append(a, res->v[i].question);
	return a;
}

static const struct field question_fields[] = {
	{ "txn", FIELD_TXN, 0, "whose command waits" },
	{ "argv", FIELD_STRINGS, 0, "the command" },
	{ "cwd", FIELD_STRING, 0, "where it runs" },
	{ "rule", FIELD_STRING, 0, "that asks" },
	{ "why", FIELD_STRING, 0, "its reason" },
	{ NULL },
};

static const struct field consent_fields[] = {
	{ "answer", FIELD_STRING, offsetof(struct consent_res, answer), "that was given",
	  FIELD_IF_SET },
	{ "questions", FIELD_LIST, 0, "that wait, or the one that was answered",
	  .fields = question_fields, .make = questions },
	{ NULL },
};

const struct verb verb_consent = {
	.name = "consent",
	.summary = "answer what a rule asks, from another terminal or program",
	.description =
		"Lists the commands that wait for somebody's consent, and answers. Questions wait "
		"if the run was started with --ask socket: the command stands still before the "
		"exec that a rule asks about, until there is an answer or its time is over. The "
		"answers are yes, no, and always: yes, and to all that this rule asks in the rest "
		"of the run. TX may be left out if only one waits.\n"
		"\n"
		"Without --ask socket a run asks on its terminal; where there is none, what a rule "
		"asks about is denied.\n"
		"\n"
		"  stet run --ask socket -- ./agent &\n"
		"  stet consent --json\n"
		"  stet consent t3 yes",
	.args = args,
	.check = check,
	.request_size = sizeof(struct consent_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN_NAMED,
	.words = answers,
	.effect = EFFECT_STORE,
	.flags = VERB_JSON,
	.run = op_consent,
	.result_size = sizeof(struct consent_res),
	.result = consent_fields,
	.free = consent_free,
};
