/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "ops/audit.h"

static const char *get(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void show_words(struct buf *b, const json_t *argv)
{
	size_t n = json_array_size(argv);
	char **v = xcalloc(n + 1, sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(argv, i));

		v[i] = xstrdup(s ? s : "");
	}
	show_argv(b, v);
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

static void show_exec(struct buf *b, const json_t *o)
{
	buf_addf(b, "%lld<%lld %s",
		 (long long)json_integer_value(json_object_get(o, "pid")),
		 (long long)json_integer_value(json_object_get(o, "ppid")),
		 get(o, "verdict"));
	if (*get(o, "rule")) {
		buf_addc(b, ' ');
		text_escape(b, get(o, "rule"), strlen(get(o, "rule")));
	}
	if (*get(o, "outcome"))
		buf_addf(b, " (%s)", get(o, "outcome"));
	buf_adds(b, ": ");
	show_words(b, json_object_get(o, "argv"));
}

static void show_op(struct buf *b, const struct cli *c, const json_t *o)
{
	const json_t *status = json_object_get(o, "exit");
	const json_t *signal = json_object_get(o, "signal");
	const json_t *changes = json_object_get(o, "changes");

	if (*get(o, "workspace")) {
		show_path(b, c, NULL, get(o, "workspace"));
		buf_adds(b, ": ");
		show_words(b, json_object_get(o, "argv"));
	}
	if (strcmp(get(o, "event"), "exit") == 0)
		buf_addf(b, "%lld ",
			 (long long)json_integer_value(json_object_get(o, "pid")));
	if (signal)
		buf_addf(b, "signal %lld", (long long)json_integer_value(signal));
	if (status)
		buf_addf(b, "exit status %lld", (long long)json_integer_value(status));
	if (*get(o, "reason") && strcmp(get(o, "reason"), "exit") != 0)
		buf_addf(b, "%s%s", status ? ", " : "", get(o, "reason"));
	if (changes)
		buf_addf(b, "%lld changes", (long long)json_integer_value(changes));
}

/* "2026-01-31 12:00:00.123  t3  exec  7<2 allow: ls -l" */
static void show_record(struct buf *b, const struct cli *c, const json_t *o)
{
	buf_addf(b, "%.10s %.12s  %-5s %-8s ", get(o, "time"),
		 strlen(get(o, "time")) > 11 ? get(o, "time") + 11 : "", get(o, "txn"),
		 get(o, "event"));
	if (strcmp(get(o, "event"), "exec") == 0)
		show_exec(b, o);
	else
		show_op(b, c, o);
	while (b->len && b->data[b->len - 1] == ' ')
		buf_truncate(b, b->len - 1);
}

static void show_line(struct cli *c, struct buf *b, const struct audit_line *l, bool json)
{
	json_t *o = l->seq && !json ? json_loadb(l->text, l->len, 0, NULL) : NULL;

	if (json && l->seq)
		buf_add(b, l->text, l->len);
	else if (json)
		buf_addf(b, "{\"schema\":1,\"line\":%" PRIu64 ",\"wrong\":\"%s\"}",
			 l->number, l->wrong);
	else if (o)
		show_record(b, c, o);
	if (l->wrong && !json)
		buf_addf(b, "%s! line %" PRIu64 " %s", o ? "  " : "", l->number,
			 l->wrong);
	buf_addc(b, '\n');
	show_flush(c, b);
	json_decref(o);
}

static int print_verified(struct cli *c, const struct audit_res *res)
{
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; res->wrong && res->wrong[i]; i++) {
		text_escape(&b, res->wrong[i], strlen(res->wrong[i]));
		buf_addc(&b, '\n');
	}
	buf_addf(&b, "%" PRIu64 " records, %s\n", res->records,
		 res->wrong ? "not all sound" : "all sound");
	show_flush(c, &b);
	return 0;
}

int print_audit(struct cli *c, const void *req, const void *result, struct err *e)
{
	const struct audit_req *rq = req;
	const struct audit_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;
	struct audit_line l;
	int r = 0;

	if (res->verify)
		return print_verified(c, res);
	while (res->reader && (r = audit_read(res->reader, &l)) >= 0) {
		if (r && audit_wants(res, &l))
			show_line(c, &b, &l, rq->common.json);
		if (r)
			continue;
		if (!rq->follow)
			break;
		if (fflush(c->out) == EOF)
			return 0;
		r = audit_wait(res->reader);
		if (r < 0)
			break;
	}
	return r < 0 && r != -EINTR ? err_sys(e, r, "cannot read the records") : 0;
}
