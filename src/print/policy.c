/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "print/print.h"
#include "print/run.h"
#include "print/show.h"
#include "verbs/policy.h"

static const char *color_of(enum verdict_kind kind)
{
	switch (kind) {
	case VERDICT_ALLOW:
		return "32";
	case VERDICT_DEFER:
	case VERDICT_CHECKPOINT:
		return "36";
	case VERDICT_ASK:
		return "33";
	default:
		return "31";
	}
}

static void verdict(struct buf *b, const struct console *c, enum verdict_kind kind)
{
	show_color(b, c, color_of(kind));
	buf_adds(b, verdict_name(kind));
	show_color(b, c, NULL);
}

static void escaped(struct buf *b, const char *label, const char *s, size_t len)
{
	buf_addf(b, "  %-5s ", label);
	text_escape(b, s, len);
	buf_addc(b, '\n');
}

/* On standard error, beside the answer: the answer is made of the rules in force. */
static void warn_project(const struct op_policy *p)
{
	AUTO_BUF struct buf b = BUF_INIT;

	note_project(&b, p->project, "is");
	fflush(stdout);
	fputs(buf_str(&b), stderr);
}

int print_policy_check(struct console *c, const void *req, const void *result,
		       struct err *e)
{
	const struct policy_check_res *res = result;
	const struct verdict *v = &res->verdict;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	verdict(&b, c, v->kind);
	if (v->rule)
		buf_addf(&b, " by %s", v->rule);
	buf_addc(&b, '\n');
	if (v->kind == VERDICT_DEFER)
		escaped(&b, "why", "the text does not tell; it is decided at the exec",
			strlen("the text does not tell; it is decided at the exec"));
	if (v->why && v->kind != VERDICT_DEFER)
		escaped(&b, "why", v->why, strlen(v->why));
	if (v->hint && v->kind >= VERDICT_ASK)
		escaped(&b, "try", v->hint, strlen(v->hint));
	if (res->text && v->kind != VERDICT_ALLOW && v->to > v->from)
		escaped(&b, "where", res->text + v->from, v->to - v->from);
	show_flush(c, &b);
	warn_project(&res->policy);
	return 0;
}

static void files(struct buf *b, const struct console *c, const struct op_policy *p)
{
	static const char *const states[] = { "", "", " (not in force: stet allow)",
					      " (changed, not in force: stet allow)" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p->files); i++) {
		if (!p->files[i])
			continue;
		buf_addf(b, "%-9s ", conf_origin_name((enum conf_origin)(i + 1)));
		show_path(b, c, NULL, p->files[i]);
		buf_addf(b, "%s\n", i == 2 ? states[p->project] : "");
	}
}

int print_policy_show(struct console *c, const void *req, const void *result,
		      struct err *e)
{
	const struct op_policy *p = &((const struct policy_show_res *)result)->policy;
	AUTO_BUF struct buf b = BUF_INIT;
	struct policy_rule r;
	size_t i;

	(void)req;
	(void)e;
	buf_addf(&b, "policy    %s\ndefault   ", policy_hash(p->p));
	verdict(&b, c, policy_default(p->p));
	buf_addc(&b, '\n');
	files(&b, c, p);
	buf_addc(&b, '\n');
	for (i = 0; policy_rule_at(p->p, i, &r); i++) {
		const char *name = r.off ? "off" : verdict_name(r.verdict);

		show_color(&b, c, r.off ? "2" : color_of(r.verdict));
		buf_addf(&b, "%-10s", name);
		show_color(&b, c, NULL);
		buf_addf(&b, " %-24s %-8s ", r.id, conf_origin_name(r.origin));
		text_escape(&b, r.why, strlen(r.why));
		buf_addc(&b, '\n');
	}
	show_flush(c, &b);
	warn_project(p);
	return 0;
}

int print_policy_test(struct console *c, const void *req, const void *result,
		      struct err *e)
{
	const struct policy_test_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	(void)req;
	(void)e;
	for (i = 0; i < res->failures_count; i++) {
		const struct policy_failure *f = &res->failures[i];

		buf_addf(&b, "%s: ", f->rule);
		text_escape(&b, f->text, strlen(f->text));
		buf_addf(&b, ": %s, expected %s\n", f->got, f->want);
	}
	buf_addf(&b, "%zu tests, %zu failed\n", res->run, res->failed);
	show_flush(c, &b);
	return 0;
}

int print_policy_explain(struct console *c, const void *req, const void *result,
			 struct err *e)
{
	const struct policy_explain_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;
	const char *p = res->text;

	(void)req;
	(void)e;
	buf_addf(&b, "# %s%s\n", conf_origin_name(res->rule.origin),
		 res->rule.off ? ", switched off" : "");
	for (; *p; p += *p == '\n') {
		size_t n = strcspn(p, "\n");

		text_escape(&b, p, n);
		buf_addc(&b, '\n');
		p += n;
	}
	show_flush(c, &b);
	return 0;
}

int print_allow(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct allow_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	show_path(&b, c, NULL, res->file);
	buf_adds(&b, res->revoked ? " is not in force any more\n"
				  : " is in force, as it is now\n");
	show_flush(c, &b);
	return 0;
}
