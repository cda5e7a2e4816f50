/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "audit/read.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "print/print.h"
#include "print/show.h"
#include "verbs/audit.h"

/*
 * How deep below its command each process is. One slot for each value of the hash: of two
 * processes that meet there the later stays, and what the other starts is shown as if its
 * parent were not known. Processes that only forked are not known anyway.
 */
enum { TREE_SLOTS = 16384, TREE_DEEPEST = 20 };

struct tree {
	struct {
		long long txn, pid;
		unsigned int depth;
	} slot[TREE_SLOTS];
};

static const char *get(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static long long number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static long long txn_of(const json_t *o)
{
	const char *s = get(o, "txn");

	return *s ? strtoll(s + 1, NULL, 10) : 0;
}

static size_t slot_of(long long txn, long long pid)
{
	uint64_t key = (uint64_t)txn * 0x9e3779b97f4a7c15u + (uint64_t)pid;

	return key % TREE_SLOTS;
}

static bool is_known(const struct tree *t, size_t slot, long long txn, long long pid)
{
	return pid && t->slot[slot].txn == txn && t->slot[slot].pid == pid;
}

/* A process whose parent is not known is below the command at least. */
static unsigned int depth_below(const struct tree *t, long long txn, long long ppid)
{
	size_t i = slot_of(txn, ppid);

	if (ppid <= 1)
		return 0;
	return is_known(t, i, txn, ppid) ? MIN(t->slot[i].depth + 1, TREE_DEEPEST) : 1;
}

/* Takes note of a record; returns the depth of its process. */
static unsigned int tree_note(struct tree *t, const json_t *o, bool exec)
{
	long long txn = txn_of(o), pid = number(o, "pid");
	size_t i = slot_of(txn, pid);

	if (exec) {
		t->slot[i].txn = txn;
		t->slot[i].pid = pid;
		t->slot[i].depth = depth_below(t, txn, number(o, "ppid"));
	} else if (is_known(t, i, txn, pid)) {
		/* The kernel may give the number to another process. */
		t->slot[i].pid = 0;
	} else {
		return 0;
	}
	return t->slot[i].depth;
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

static void show_verdict(struct buf *b, const json_t *o)
{
	buf_adds(b, get(o, "verdict"));
	if (*get(o, "rule")) {
		buf_addc(b, ' ');
		text_escape(b, get(o, "rule"), strlen(get(o, "rule")));
	}
	if (*get(o, "outcome"))
		buf_addf(b, " (%s)", get(o, "outcome"));
	buf_adds(b, ": ");
	show_words(b, json_object_get(o, "argv"));
}

static void show_exec(struct buf *b, const json_t *o)
{
	buf_addf(b, "%lld<%lld ", number(o, "pid"), number(o, "ppid"));
	show_verdict(b, o);
}

/* "4711 more, allow: ls -l", or what all the others come to. */
static void show_folded(struct buf *b, const json_t *o)
{
	buf_addf(b, "%lld more", number(o, "count"));
	if (!json_object_get(o, "argv")) {
		buf_addf(b, " commands (%lld not run), %lld exits (%lld not 0)",
			 number(o, "denied"), number(o, "exits"), number(o, "failed"));
		return;
	}
	buf_adds(b, ", ");
	show_verdict(b, o);
}

static void show_op(struct buf *b, const struct console *c, const json_t *o)
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
		buf_addf(b, "%lld ", number(o, "pid"));
	if (signal)
		buf_addf(b, "signal %lld", (long long)json_integer_value(signal));
	if (status)
		buf_addf(b, "exit status %lld", (long long)json_integer_value(status));
	if (*get(o, "reason") && strcmp(get(o, "reason"), "exit") != 0)
		buf_addf(b, "%s%s", status ? ", " : "", get(o, "reason"));
	if (changes)
		buf_addf(b, "%lld changes", (long long)json_integer_value(changes));
}

/* "2026-01-31 12:00:00.123  t3  exec  7<2 allow: ls -l", further in if 2 is known. */
static void show_record(struct buf *b, const struct console *c, struct tree *t,
			const json_t *o)
{
	bool exec = strcmp(get(o, "event"), "exec") == 0;

	buf_addf(b, "%.10s %.12s  %-5s %-8s ", get(o, "time"),
		 strlen(get(o, "time")) > 11 ? get(o, "time") + 11 : "", get(o, "txn"),
		 get(o, "event"));
	if (t && (exec || strcmp(get(o, "event"), "exit") == 0))
		buf_addf(b, "%*s", 2 * (int)tree_note(t, o, exec), "");
	if (exec)
		show_exec(b, o);
	else if (strcmp(get(o, "event"), "folded") == 0)
		show_folded(b, o);
	else
		show_op(b, c, o);
	while (b->len && b->data[b->len - 1] == ' ')
		buf_truncate(b, b->len - 1);
}

static void show_line(struct console *c, struct buf *b, struct tree *t,
		      const struct audit_line *l, bool json)
{
	json_t *o = l->seq && !json ? json_loadb(l->text, l->len, 0, NULL) : NULL;

	if (json && l->seq)
		buf_add(b, l->text, l->len);
	else if (json)
		buf_addf(b, "{\"schema\":1,\"line\":%" PRIu64 ",\"wrong\":\"%s\"}",
			 l->number, l->wrong);
	else if (o)
		show_record(b, c, t, o);
	if (l->wrong && !json)
		buf_addf(b, "%s! line %" PRIu64 " %s", o ? "  " : "", l->number,
			 l->wrong);
	buf_addc(b, '\n');
	show_flush(c, b);
	json_decref(o);
}

static int print_verified(struct console *c, const struct audit_res *res)
{
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; res->wrong && res->wrong[i]; i++) {
		text_escape(&b, res->wrong[i], strlen(res->wrong[i]));
		buf_addc(&b, '\n');
	}
	buf_addf(&b, "%" PRIu64 " records, %s", res->records,
		 res->wrong ? "not all sound" : "all sound");
	if (res->folded)
		buf_addf(&b,
			 "; %" PRIu64
			 " execs and exits are counted in them, not told one by one",
			 res->folded);
	buf_addc(&b, '\n');
	show_flush(c, &b);
	return 0;
}

int print_audit(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct audit_req *rq = req;
	const struct audit_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;
	AUTO_FREE struct tree *t = NULL;
	struct audit_line l;
	int r;

	if (res->verify)
		return print_verified(c, res);
	/* With --follow several transactions are seen at once: there it would be no tree. */
	if (!rq->follow)
		t = xcalloc(1, sizeof(*t));
	do {
		while ((r = audit_next(res, &l, e)) > 0)
			show_line(c, &b, t, &l, rq->common.json);
		/* A reader who has seen enough has closed the stream. */
	} while (r == 0 && res->reader && rq->follow && fflush(c->out) != EOF &&
		 (r = audit_more(res, e)) > 0);
	return r < 0 ? -1 : 0;
}
