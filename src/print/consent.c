/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "print/print.h"
#include "print/show.h"
#include "verbs/consent.h"

static void add(struct buf *b, const char *before, const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s)
		return;
	buf_adds(b, before);
	text_escape(b, s, strlen(s));
}

static void show_question(struct buf *b, const struct consent_waiting *w)
{
	const json_t *argv = json_object_get(w->question, "argv");
	size_t n = json_array_size(argv);

	buf_addf(b, "t%lld ", (long long)w->txn);
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(argv, i));

		buf_addc(b, ' ');
		text_quote(b, s ? s : "", s ? strlen(s) : 0);
	}
	add(b, "\n  in ", w->question, "cwd");
	add(b, "\n  rule ", w->question, "rule");
	add(b, ": ", w->question, "why");
	buf_addc(b, '\n');
}

int print_consent(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct consent_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	for (size_t i = 0; i < res->n; i++) {
		show_question(&b, &res->v[i]);
		if (res->answer)
			buf_addf(&b, "  answered: %s\n", res->answer);
		else
			buf_addf(&b, "  answer: stet consent t%lld yes|no|always\n",
				 (long long)res->v[i].txn);
	}
	if (!res->n)
		buf_adds(&b, "nothing waits for an answer\n");
	show_flush(c, &b);
	return 0;
}
