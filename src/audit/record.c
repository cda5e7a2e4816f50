/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "audit/parts.h"
#include "audit/record.h"
#include "audit/redact.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Longer arguments are cut: people read the audit. */
enum { WORD_MAX = 4096, WORDS_MAX = 256 };

/*
 * Bytes that are not UTF-8 become \\xNN, and backslashes are doubled: two different arguments
 * never look alike.
 */
static json_t *text(const char *s, size_t len)
{
	AUTO_BUF struct buf b = BUF_INIT;

	if (text_is_utf8(s, len))
		return json_stringn(s, len);
	while (len) {
		size_t n;

		for (n = 1; n <= 4 && n <= len && !text_is_utf8(s, n); n++)
			;
		if (n > 4 || n > len) {
			buf_addf(&b, "\\x%02x", (unsigned char)*s);
			n = 1;
		} else if (*s == '\\') {
			buf_adds(&b, "\\\\");
		} else {
			buf_add(&b, s, n);
		}
		s += n;
		len -= n;
	}
	return json_stringn(buf_str(&b), b.len);
}

static void set(json_t *o, const char *key, const char *s)
{
	if (s)
		json_object_set_new(o, key, text(s, strlen(s)));
}

static void set_int(json_t *o, const char *key, int64_t n)
{
	json_object_set_new(o, key, json_integer(n));
}

static json_t *begin(const char *event, int64_t txn)
{
	json_t *o = json_object();
	char day[32], stamp[64], id[32];
	struct timespec now;
	struct tm tm;

	if (!o)
		abort();
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(stamp, sizeof(stamp), "%s.%06ldZ", day, now.tv_nsec / 1000);
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "time", json_string(stamp));
	json_object_set_new(o, "event", json_string(event));
	if (txn) {
		snprintf(id, sizeof(id), "t%lld", (long long)txn);
		json_object_set_new(o, "txn", json_string(id));
	}
	return o;
}

/* Appends the fields without the braces; @o is freed. */
static void finish(json_t *o, struct buf *out)
{
	AUTO_FREE char *s = json_dumps(o, JSON_COMPACT);

	if (!s)
		abort();
	buf_add(out, s + 1, strlen(s) - 2);
	json_decref(o);
}

static json_t *words(const char *const *argv, size_t n)
{
	AUTO_BUF struct buf b = BUF_INIT;
	struct redact r = { 0 };
	json_t *a = json_array();

	for (size_t i = 0; i < n && i < WORDS_MAX; i++) {
		size_t len = strlen(argv[i]);

		buf_reset(&b);
		redact_word(&r, argv[i], len < WORD_MAX ? len : WORD_MAX, &b);
		if (len > WORD_MAX)
			buf_adds(&b, "…");
		json_array_append_new(a, text(buf_str(&b), b.len));
	}
	return a;
}

static void set_command(json_t *o, const struct audit_exec *x)
{
	set(o, "verdict", x->verdict);
	set(o, "rule", x->rule);
	set(o, "outcome", x->outcome);
	set(o, "exe", x->exe);
	json_object_set_new(o, "argv", words(x->argv, x->argc));
	if (x->argc_all > x->argc || x->argc > WORDS_MAX)
		set_int(o, "argc",
			(int64_t)(x->argc_all > x->argc ? x->argc_all : x->argc));
}

void record_exec(const struct audit_exec *x, struct buf *out)
{
	json_t *o = begin("exec", x->txn);

	set_int(o, "pid", x->pid);
	set_int(o, "ppid", x->ppid);
	set_command(o, x);
	set(o, "cwd", x->cwd);
	finish(o, out);
}

void record_command(const struct audit_exec *x, struct buf *out)
{
	json_t *o = json_object();

	set_command(o, x);
	finish(o, out);
}

void record_folded(int64_t txn, uint64_t count, const char *command, size_t len,
		   struct buf *out)
{
	json_t *o = begin("folded", txn);

	set_int(o, "count", (int64_t)count);
	finish(o, out);
	buf_addc(out, ',');
	buf_add(out, command, len);
}

void record_rest(const struct fold_sum *s, struct buf *out)
{
	json_t *o = begin("folded", s->txn);

	set_int(o, "count", (int64_t)s->execs);
	set_int(o, "denied", (int64_t)s->denied);
	set_int(o, "exits", (int64_t)s->exits);
	set_int(o, "failed", (int64_t)s->failed);
	finish(o, out);
}

void record_exit(int64_t txn, pid_t pid, int status, struct buf *out)
{
	json_t *o = begin("exit", txn);

	set_int(o, "pid", pid);
	if (WIFEXITED(status))
		set_int(o, "exit", WEXITSTATUS(status));
	else
		set_int(o, "signal", WTERMSIG(status));
	finish(o, out);
}

void record_op(const struct audit_op *p, struct buf *out)
{
	json_t *o = begin(p->event, p->txn);
	size_t n = 0;

	if (p->op)
		set_int(o, "op", p->op);
	set(o, "workspace", p->workspace);
	while (p->argv && p->argv[n])
		n++;
	if (n) {
		json_object_set_new(o, "argv", words(p->argv, n));
		if (n > WORDS_MAX)
			set_int(o, "argc", (int64_t)n);
	}
	if (p->has_exit)
		set_int(o, "exit", p->exit_status);
	set(o, "reason", p->reason);
	if (p->changes)
		set_int(o, "changes", (int64_t)p->changes);
	set(o, "policy", p->policy);
	set_int(o, "pid", getpid());
	finish(o, out);
}

void record_trouble(const char *event, uint64_t n, struct buf *out)
{
	json_t *o = begin(event, 0);

	set_int(o, "n", (int64_t)n);
	finish(o, out);
}
