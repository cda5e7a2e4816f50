/* SPDX-License-Identifier: Apache-2.0 */
/* The parser and the verb table; the program as a whole is tested in tests/cli. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/facts.h"
#include "call/json.h"
#include "cli/parse.h"
#include "print/show.h"
#include "session/sandbox.h"
#include "verbs/meta.h"
#include "verbs/verbs.h"

/* A verb with an option of each type. */
struct all_req {
	struct verb_common common;
	bool flag;
	const char *string;
	char **list;
	int64_t duration;
	uint64_t size;
	int choice;
	const char *txn;
	char **paths;
};

#define AT(field) offsetof(struct all_req, field)

static const char *const choices[] = { "red", "green", "blue", NULL };
static const struct verb_opt all_opts[] = {
	{ "flag", 'f', OPT_FLAG, NULL, "help", AT(flag) },
	{ "string", 's', OPT_STRING, "S", "help", AT(string) },
	{ "list", 'l', OPT_LIST, "L", "help", AT(list) },
	{ "duration", 'd', OPT_DURATION, "D", "help", AT(duration) },
	{ "size", 0, OPT_SIZE, "N", "help", AT(size) },
	{ "choice", 'c', OPT_CHOICE, "C", "help", AT(choice), choices },
	{ NULL },
};
static const struct verb_arg all_args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "PATH", ARG_PATH, false, true, AT(paths) },
	{ NULL },
};
static const struct verb all = {
	.name = "all",
	.opts = all_opts,
	.args = all_args,
	.flags = VERB_JSON,
	.request_size = sizeof(struct all_req),
};

/* A verb that takes a command at once, and one that takes it after "--" only. */
struct command_req {
	struct verb_common common;
	bool flag;
	const char *txn;
	char **argv;
};
static const struct verb_opt command_opts[] = {
	{ "flag", 'f', OPT_FLAG, NULL, "help", offsetof(struct command_req, flag) },
	{ NULL },
};
static const struct verb_arg first_args[] = {
	{ "COMMAND", ARG_COMMAND, true, true, offsetof(struct command_req, argv) },
	{ NULL },
};
static const struct verb_arg second_args[] = {
	{ "TX", ARG_TXN, false, false, offsetof(struct command_req, txn) },
	{ "COMMAND", ARG_COMMAND, false, true, offsetof(struct command_req, argv) },
	{ NULL },
};
static const struct verb first = {
	.name = "first",
	.opts = command_opts,
	.args = first_args,
	.effect = EFFECT_RUNS,
	.flags = VERB_JSON,
	.request_size = sizeof(struct command_req),
};
static const struct verb second = {
	.name = "second",
	.opts = command_opts,
	.args = second_args,
	.effect = EFFECT_RUNS,
	.request_size = sizeof(struct command_req),
};

enum { WORDS = 12 };

/* Words of a line; getopt wants an array that it may write to. */
static int split(char *line, char *argv[WORDS])
{
	int n = 0;
	char *save = NULL, *w;

	for (w = strtok_r(line, " ", &save); w && n < WORDS - 1;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	return n;
}

static void join(struct buf *b, char *const *v)
{
	size_t i;

	buf_reset(b);
	for (i = 0; v && v[i]; i++)
		buf_addf(b, "%s%s", i ? " " : "", v[i]);
}

static void good_lines(void **state)
{
	static const struct {
		const char *line;
		bool flag;
		const char *string, *list;
		int64_t duration;
		uint64_t size;
		int choice;
		const char *txn, *paths;
	} rows[] = {
		{ "all", false, NULL, "", 0, 0, 0, NULL, "" },
		{ "all -f", true, NULL, "", 0, 0, 0, NULL, "" },
		{ "all --string x -s y", false, "y", "", 0, 0, 0, NULL, "" },
		{ "all --string=--flag", false, "--flag", "", 0, 0, 0, NULL, "" },
		{ "all -s --flag", false, "--flag", "", 0, 0, 0, NULL, "" },
		{ "all -l a --list b -lc", false, NULL, "a b c", 0, 0, 0, NULL, "" },
		{ "all --duration 90s", false, NULL, "", 90000, 0, 0, NULL, "" },
		{ "all -d5m --size=2G", false, NULL, "", 300000, 2ULL << 30, 0, NULL,
		  "" },
		{ "all --choice red", false, NULL, "", 0, 0, 1, NULL, "" },
		{ "all -fcblue", true, NULL, "", 0, 0, 3, NULL, "" },
		{ "all t3 a b", false, NULL, "", 0, 0, 0, "t3", "a b" },
		{ "all t3 -f a -- -b", true, NULL, "", 0, 0, 0, "t3", "a -b" },
		{ "all -- t3 a", false, NULL, "", 0, 0, 0, NULL, "t3 a" },
		{ "all -- -- -f", false, NULL, "", 0, 0, 0, NULL, "-- -f" },
		{ "all --stri x", false, "x", "", 0, 0, 0, NULL, "" },
	};
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *line = xstrdup(rows[i].line);
		struct all_req req = { 0 };
		struct err e = { 0 };
		char *argv[WORDS];
		int argc = split(line, argv);

		print_message("%s\n", rows[i].line);
		assert_int_equal(parse_verb(&all, argc, argv, &req, &e), 0);
		assert_int_equal(req.flag, rows[i].flag);
		assert_int_equal(!req.string, !rows[i].string);
		if (req.string)
			assert_string_equal(req.string, rows[i].string);
		join(&b, req.list);
		assert_string_equal(buf_str(&b), rows[i].list);
		assert_int_equal(req.duration, rows[i].duration);
		assert_int_equal(req.size, rows[i].size);
		assert_int_equal(req.choice, rows[i].choice);
		assert_int_equal(!req.txn, !rows[i].txn);
		if (req.txn)
			assert_string_equal(req.txn, rows[i].txn);
		join(&b, req.paths);
		assert_string_equal(buf_str(&b), rows[i].paths);
		parse_free(&all, &req);
	}
}

static void bad_lines(void **state)
{
	static const struct {
		const struct verb *verb;
		const char *line, *msg;
	} rows[] = {
		{ &all, "all --nope", "all: unknown option '--nope'" },
		{ &all, "all --nope=1", "all: unknown option '--nope=1'" },
		{ &all, "all -fx", "all: unknown option '-x'" },
		{ &all, "all --string", "all: --string needs an argument: S" },
		{ &all, "all -s", "all: --string needs an argument: S" },
		{ &all, "all --flag=yes", "all: --flag takes no argument" },
		{ &all, "all --duration soon",
		  "all: --duration: 'soon' is not a time such as 90s, 5m or 2h" },
		{ &all, "all --duration 0",
		  "all: --duration: '0' is not a time such as 90s, 5m or 2h" },
		{ &all, "all --duration -5s",
		  "all: --duration: '-5s' is not a time such as 90s, 5m or 2h" },
		{ &all, "all --size big",
		  "all: --size: 'big' is not a size such as 64k, 10M or 2G" },
		{ &all, "all --choice pink",
		  "all: --choice: 'pink' is not red, green or blue" },
		{ &all, "all -l a -l b --nope", "all: unknown option '--nope'" },
		{ &first, "first", "first: COMMAND is missing" },
		{ &first, "first --", "first: COMMAND is missing" },
		{ &first, "first -f", "first: COMMAND is missing" },
		{ &first, "first -x cmd", "first: unknown option '-x'" },
		{ &second, "second t3 cmd", "second: unexpected operand 'cmd'" },
		{ &verb_list, "list extra", "list: unexpected operand 'extra'" },
		{ &verb_list, "list -- extra", "list: unexpected operand 'extra'" },
		{ &verb_rollback, "rollback a b", "rollback: unexpected operand 'b'" },
		{ &verb_forget, "forget --keep-last 0",
		  "forget: --keep-last: '0' is not a number from 1 on" },
		{ &verb_forget, "forget --keep-last -1",
		  "forget: --keep-last: '-1' is not a number from 1 on" },
		{ &verb_forget, "forget --keep-last 99999999999999999999",
		  "forget: --keep-last: '99999999999999999999' is not a number from 1 on" },
		{ &verb_redo, "redo t1 path", "redo: unexpected operand 'path'" },
		{ &verb_commit, "commit --ours",
		  "commit: --ours needs an argument: PATH" },
		{ &verb_completion, "completion", "completion: SHELL is missing" },
		{ &verb_completion, "completion tcsh",
		  "completion: SHELL: 'tcsh' is not bash, zsh or fish" },
		{ &verb_completion, "completion --json",
		  "completion: unknown option '--json'" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *line = xstrdup(rows[i].line);
		AUTO_FREE void *req = xcalloc(1, rows[i].verb->request_size);
		AUTO_FREE char *hint = xasprintf("see: stet help %s", rows[i].verb->name);
		struct err e = { 0 };
		char *argv[WORDS];
		int argc = split(line, argv);

		print_message("%s\n", rows[i].line);
		assert_int_equal(parse_verb(rows[i].verb, argc, argv, req, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_string_equal(e.msg, rows[i].msg);
		assert_string_equal(e.hint, hint);
		parse_free(rows[i].verb, req);
	}
}

static void commands(void **state)
{
	static const struct {
		const struct verb *verb;
		const char *line;
		bool flag;
		const char *txn, *argv;
	} rows[] = {
		{ &first, "first cmd -f --json", false, NULL, "cmd -f --json" },
		{ &first, "first -f cmd -f", true, NULL, "cmd -f" },
		{ &first, "first -- -f", false, NULL, "-f" },
		{ &first, "first -f -- cmd -- x", true, NULL, "cmd -- x" },
		{ &first, "first cmd -- x", false, NULL, "cmd -- x" },
		{ &second, "second", false, NULL, "" },
		{ &second, "second t3 -f", true, "t3", "" },
		{ &second, "second -- cmd -f", false, NULL, "cmd -f" },
		{ &second, "second t3 -- cmd", false, "t3", "cmd" },
	};
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *line = xstrdup(rows[i].line);
		struct command_req req = { 0 };
		struct err e = { 0 };
		char *argv[WORDS];
		int argc = split(line, argv);

		print_message("%s\n", rows[i].line);
		assert_int_equal(parse_verb(rows[i].verb, argc, argv, &req, &e), 0);
		assert_int_equal(req.flag, rows[i].flag);
		assert_int_equal(req.common.json, false);
		assert_int_equal(!req.txn, !rows[i].txn);
		if (req.txn)
			assert_string_equal(req.txn, rows[i].txn);
		join(&b, req.argv);
		assert_string_equal(buf_str(&b), rows[i].argv);
		parse_free(rows[i].verb, &req);
	}
}

static void help_needs_nothing_else(void **state)
{
	char line[] = "first --help";
	struct command_req req = { 0 };
	struct err e = { 0 };
	char *argv[WORDS];
	int argc = split(line, argv);

	(void)state;
	assert_int_equal(parse_verb(&first, argc, argv, &req, &e), 0);
	assert_true(req.common.help);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void json_before_errors(void **state)
{
	static const struct {
		const struct verb *verb;
		const char *line;
		bool json;
		const char *fd, *file;
	} rows[] = {
		{ &all, "all --json --json-fd 5", true, "5" },
		{ &all, "all --nope --json-fd 5 --json-file=x", true, "5", "x" },
		{ &all, "all --json-file --json-fd --nope", true, NULL, "--json-fd" },
		{ &all, "all --json-fd", false },
		{ &all, "all --nope --json-files x", false },
		{ &first, "first --nope --json-fd 5 cmd --json-fd 6", true, "5" },
		{ &all, "all --nope --json", true },
		{ &all, "all --nope", false },
		{ &all, "all -- --json", false },
		{ &first, "first --nope --json cmd", true },
		{ &first, "first cmd --json", false },
		{ &second, "second --json", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *line = xstrdup(rows[i].line);
		struct verb_common common;
		char *argv[WORDS];
		int argc = split(line, argv);

		print_message("%s\n", rows[i].line);
		parse_report(rows[i].verb, argc, argv, &common);
		assert_int_equal(common.json, rows[i].json);
		assert_true(same_text(common.json_fd, rows[i].fd));
		assert_true(same_text(common.json_file, rows[i].file));
	}
}

static void nearest(void **state)
{
	static const char *const rows[][2] = {
		{ "stauts", "status" },
		{ "staus", "status" },
		{ "rn", "run" },
		{ "rollbck", "rollback" },
		{ "doc", "doctor" },
		{ "lst", "list" },
		{ "frobnicate", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a-word-that-is-much-longer-than-any-verb", NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct verb *v = verb_nearest(rows[i][0]);

		print_message("%s\n", rows[i][0]);
		assert_int_equal(!v, !rows[i][1]);
		if (v)
			assert_string_equal(v->name, rows[i][1]);
	}
}

/* What parser, help and completions take for granted of every row. */
static void table_is_sound(void **state)
{
	const struct verb_opt *o, *p;
	size_t i, k, m;

	(void)state;
	for (i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];

		print_message("%s\n", v->name);
		assert_ptr_equal(verb_find(v->name), v);
		assert_non_null(v->run);
		assert_true(v->request_size >= sizeof(struct verb_common));
		assert_true(v->result_size > 0);
		assert_int_equal(!(v->flags & VERB_JSON), !v->result);
		assert_non_null(v->description);
		assert_null(strpbrk(v->summary, "'\"\\`$\n"));
		assert_true(v->summary[strlen(v->summary) - 1] != '.');
		for (k = 0; (o = verb_opt_at(v, k)); k++) {
			assert_int_equal(o->type == OPT_FLAG, !o->arg);
			/* A string may have words that completion offers. */
			assert_true(o->type == OPT_CHOICE
					    ? !!o->choices
					    : o->type == OPT_STRING || !o->choices);
			assert_true(o->offset < v->request_size);
			assert_null(strpbrk(o->help, "\"\\`$\n"));
			for (m = 0; m < k; m++) {
				p = verb_opt_at(v, m);
				assert_string_not_equal(p->name, o->name);
				assert_false(o->letter && o->letter == p->letter);
				assert_true(p->offset != o->offset);
			}
		}
		for (k = 0; v->args && v->args[k].name; k++)
			assert_false(v->args[k].many && v->args[k + 1].name);
	}
}

static bool has_name_of_txn(const struct verb *v)
{
	size_t i;

	for (i = 0; v->args && v->args[i].name; i++)
		if (v->args[i].kind == ARG_TXN)
			return true;
	for (i = 0; v->opts && v->opts[i].name; i++)
		if (v->opts[i].kind == ARG_TXN)
			return true;
	return false;
}

/* What call/call.c takes for granted of every row. */
static void rows_can_be_called(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];
		const struct verb_states *s = v->states;

		print_message("%s\n", v->name);
		assert_true(v->target == TARGET_NONE || has_name_of_txn(v));
		assert_true(v->target == TARGET_NONE || v->home != HOME_NONE);
		assert_false(v->words && v->target != TARGET_TXN_NAMED);
		assert_false(s && v->target == TARGET_NONE);
		assert_false(v->states_of && !s);
		assert_true(v->flags & VERB_TXN_FIRST || v->target == TARGET_NONE ||
			    v->target == TARGET_TXN_NAMED || v->target == TARGET_BODY);
		assert_true(!(v->flags & VERB_TXN_FIRST) ||
			    v->result_size >= sizeof(struct txn_facts));
		assert_false(v->flags & VERB_CAPTURES && v->effect != EFFECT_RUNS);
		/* The last refusal ends the table. */
		for (k = 0; s && s->refusals[k].in; k++)
			assert_true(k + 1 < ARRAY_SIZE(s->refusals));
	}
}

/* Each name once in its object, and a table wherever there is something in it. */
static void check_fields(json_t *fields)
{
	json_t *f;
	size_t i, k;

	json_array_foreach(fields, i, f)
	{
		const char *name = json_string_value(json_object_get(f, "name"));

		assert_true(*name);
		for (k = 0; k < i; k++)
			assert_string_not_equal(
				json_string_value(json_object_get(
					json_array_get(fields, k), "name")),
				name);
		assert_true(*json_string_value(json_object_get(f, "help")));
		check_fields(json_object_get(f, "fields"));
	}
}

static void results_are_described(void **state)
{
	(void)state;
	for (size_t i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];
		json_t *fields = schema_describe(v->result);
		json_t *last = json_array_get(fields, json_array_size(fields) - 1);

		print_message("%s\n", v->name);
		assert_int_equal(!json_array_size(fields), !(v->flags & VERB_JSON));
		check_fields(fields);
		if (v->list.key && v != &verb_show)
			assert_string_equal(
				json_string_value(json_object_get(last, "name")),
				v->list.key);
		json_decref(fields);
	}
}

/* A struct with a member of each type. */
struct every {
	bool yes, no;
	int negative;
	int64_t zero, txn, us;
	uint64_t large;
	const char *text, *none, *bytes;
	char here[8];
	size_t len;
	struct change_totals *list;
	size_t n;
};

#define EVERY(field) offsetof(struct every, field)

static bool never(const void *at)
{
	(void)at;
	return false;
}

static const struct field every_fields[] = {
	{ "yes", FIELD_BOOL, EVERY(yes), "" },
	{ "no", FIELD_BOOL, EVERY(no), "", FIELD_IF_SET },
	{ "negative", FIELD_INT, EVERY(negative), "", FIELD_NULL_NEG },
	{ "zero", FIELD_INT64, EVERY(zero), "", FIELD_NULL_0 },
	{ "txn", FIELD_TXN, EVERY(txn), "" },
	{ "ms", FIELD_KILO, EVERY(us), "" },
	{ "large", FIELD_UINT64, EVERY(large), "" },
	{ "text", FIELD_STRING, EVERY(text), "" },
	{ "none", FIELD_STRING, EVERY(none), "" },
	{ "left out", FIELD_STRING, EVERY(none), "", FIELD_IF_SET },
	{ "bytes", FIELD_BYTES, EVERY(bytes), "", .count = EVERY(len) },
	{ "here", FIELD_TEXT, EVERY(here), "" },
	{ "list", FIELD_LIST, EVERY(list), "", .fields = totals_fields, .count = EVERY(n),
	  .stride = sizeof(struct change_totals) },
	{ "never", FIELD_BOOL, EVERY(yes), "", .present = never },
	{ NULL },
};

static void fields_are_written(void **state)
{
	struct change_totals list[] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
	struct every every = { .yes = true,
			       .negative = -1,
			       .txn = 3,
			       .us = 1239,
			       .large = 1 << 20,
			       .text = "t",
			       .bytes = "a\xff\0b",
			       .here = "h",
			       .len = 3,
			       .list = list,
			       .n = 2 };
	json_t *o = schema_write(every_fields, &every);
	char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12));

	(void)state;
	assert_string_equal(
		text,
		"{\"yes\":true,\"negative\":null,\"zero\":null,\"txn\":\"t3\",\"ms\":1.23,"
		"\"large\":1048576,\"text\":\"t\",\"none\":null,"
		"\"bytes\":\"a\xef\xbf\xbd\\u0000\",\"bytes_b64\":\"Yf8A\",\"here\":\"h\","
		"\"list\":[{\"added\":1,\"changed\":2,\"deleted\":3,\"bytes\":4},"
		"{\"added\":5,\"changed\":6,\"deleted\":7,\"bytes\":8}]}");
	free(text);
	json_decref(o);
}

static void base64(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },	   { "f", "Zg==" },	     { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foobar", "Zm9vYmFy" }, { "\xff\xfe\n", "//4K" },
	};
	static const char *const bad[] = { "Z",	    "Zg=",  "Zg==Zg==", "Z===",
					   "Zm9v!", "Zm9*", "====",	"Zg=a" };
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_reset(&b);
		base64_encode(&b, rows[i][0], strlen(rows[i][0]));
		assert_string_equal(buf_str(&b), rows[i][1]);
		buf_reset(&b);
		assert_int_equal(base64_decode(&b, rows[i][1]), 0);
		assert_string_equal(buf_str(&b), rows[i][0]);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		print_message("%s\n", bad[i]);
		assert_true(base64_decode(&b, bad[i]) < 0);
	}
}

static void json_bytes(void **state)
{
	json_t *o = json_object();

	(void)state;
	json_set_str(o, "path", "/a\xff\xc3\xa9/\xe2\x82");
	assert_string_equal(json_string_value(json_object_get(o, "path")),
			    "/a\xef\xbf\xbd\xc3\xa9/\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(json_string_value(json_object_get(o, "path_b64")),
			    "L2H/w6kv4oI=");
	json_set_str(o, "name", "\xc3\xa9");
	assert_null(json_object_get(o, "name_b64"));
	json_decref(o);
}

static void wishes_survive(void **state)
{
	struct sandbox_wish w = { 0 }, back;
	AUTO_FREE char *text = NULL;
	struct err e;

	(void)state;
	w.cwd = xstrdup("/a\xff");
	w.host_tmp = true;
	strv_push(&w.hide, xstrdup("/h1"));
	strv_push(&w.hide, xstrdup("/h\n2\xfe"));
	strv_push(&w.read_only, xstrdup("/r"));
	text = sandbox_wish_encode(&w);
	assert_int_equal(sandbox_wish_decode(text, &back, &e), 0);
	assert_string_equal(back.cwd, w.cwd);
	assert_true(back.host_tmp);
	assert_int_equal(strv_len(back.hide), 2);
	assert_string_equal(back.hide[1], w.hide[1]);
	assert_string_equal(back.read_only[0], "/r");
	assert_null(back.write_through);
	sandbox_wish_free(&w);
	sandbox_wish_free(&back);
}

/* All but "hide". */
#define LISTS ",\"read_only\":[],\"write_through\":[]"

static void bad_wishes(void **state)
{
	static const char *const rows[] = {
		NULL,
		"",
		"[]",
		"{}",
		"{\"cwd\":\"/\"}",
		"{\"cwd\":1,\"tmp\":\"host\"" LISTS "}",
		"{\"cwd\":\"/\"" LISTS "}",
		"{\"cwd\":\"/\",\"tmp\":\"host\",\"hide\":[1]" LISTS "}",
		"{\"cwd\":\"/\",\"tmp\":\"host\"" LISTS "}",
	};
	struct sandbox_wish w;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(sandbox_wish_decode(rows[i], &w, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
	}
}

static const char *lookup(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return "(none)";
}

static void environments(void **state)
{
	char home[] = "HOME=/h", secret[] = "SECRET=s", lc[] = "LC_ALL=C",
	     old[] = "STET_TXN=t1", git[] = "GIT_DISCOVERY_ACROSS_FILESYSTEM=0";
	char *ours[] = { home, secret, lc, old, git, NULL, NULL };
	char set[] = "NEW=1=2", pass[] = "SECRET", absent[] = "ABSENT",
	     over[] = "HOME=/x";
	char *add[] = { set, pass, absent, over, NULL };
	char agent[] = "ssh-agent", at[] = "SSH_AUTH_SOCK=/s";
	char *sockets[] = { agent, NULL };
	const struct sandbox_opts clean = { .clean_env = true };
	const struct sandbox_opts more = { .clean_env = true, .env = add };
	const struct sandbox_opts agents = { .clean_env = true, .sockets = sockets };
	struct op_ctx ctx;
	char **env;

	(void)state;
	op_ctx_init(&ctx, ours);
	env = sandbox_env(&ctx, NULL, NULL, 7);
	assert_string_equal(lookup(env, "SECRET"), "s");
	assert_string_equal(lookup(env, "STET_TXN"), "t7");
	assert_string_equal(lookup(env, "GIT_DISCOVERY_ACROSS_FILESYSTEM"), "0");
	assert_int_equal(strv_len(env), 5);
	strv_free(env);
	env = sandbox_env(&ctx, NULL, &clean, 7);
	assert_string_equal(lookup(env, "SECRET"), "(none)");
	assert_string_equal(lookup(env, "LC_ALL"), "C");
	assert_string_equal(lookup(env, "GIT_DISCOVERY_ACROSS_FILESYSTEM"), "1");
	strv_free(env);
	env = sandbox_env(&ctx, NULL, &more, 7);
	assert_string_equal(lookup(env, "SECRET"), "s");
	assert_string_equal(lookup(env, "NEW"), "1=2");
	assert_string_equal(lookup(env, "HOME"), "/x");
	assert_string_equal(lookup(env, "ABSENT"), "(none)");
	strv_free(env);
	ours[5] = at;
	env = sandbox_env(&ctx, NULL, &clean, 7);
	assert_string_equal(lookup(env, "SSH_AUTH_SOCK"), "(none)");
	strv_free(env);
	env = sandbox_env(&ctx, NULL, &agents, 7);
	assert_string_equal(lookup(env, "SSH_AUTH_SOCK"), "/s");
	strv_free(env);
}

static void paths_for_people(void **state)
{
	static const char *const rows[][3] = {
		{ "/w", "/w/a", "a" },
		{ "/w", "/w", "." },
		{ "/w", "/wx/a", "/wx/a" },
		{ "/w", "/w/~/a", "./~/a" },
		{ "/w", "/home/u/b", "~/b" },
		{ "/w", "/home/u", "~" },
		{ "/w", "/home/us/b", "/home/us/b" },
		{ NULL, "/home/u/a\nb", "\"~/a\\nb\"" },
		{ "/w", "/w/\033[2J", "\"\\033[2J\"" },
		{ "/w", "/w/\xff", "\"\\377\"" },
	};
	char home[] = "HOME=/home/u";
	char *env[] = { home, NULL };
	AUTO_BUF struct buf b = BUF_INIT;
	struct op_ctx ctx = { 0 };
	struct console c = { .ctx = &ctx };
	size_t i;

	(void)state;
	op_ctx_init(&ctx, env);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_reset(&b);
		show_path(&b, &c, rows[i][0], rows[i][1]);
		assert_string_equal(buf_str(&b), rows[i][2]);
	}
}

static void argv_for_people(void **state)
{
	char a[] = "sh", b[] = "it's", c[] = "", d[] = "\033[1m", x[] = "a b", y[] = "''";
	char *argv[] = { a, b, c, d, x, y, NULL };
	AUTO_BUF struct buf out = BUF_INIT;

	(void)state;
	show_argv(&out, argv);
	assert_string_equal(buf_str(&out),
			    "sh 'it'\\''s' '' '\\033[1m' 'a b' ''\\'''\\'''");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(commands),
		cmocka_unit_test(help_needs_nothing_else),
		cmocka_unit_test(json_before_errors),
		cmocka_unit_test(nearest),
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(rows_can_be_called),
		cmocka_unit_test(results_are_described),
		cmocka_unit_test(fields_are_written),
		cmocka_unit_test(base64),
		cmocka_unit_test(json_bytes),
		cmocka_unit_test(wishes_survive),
		cmocka_unit_test(bad_wishes),
		cmocka_unit_test(environments),
		cmocka_unit_test(paths_for_people),
		cmocka_unit_test(argv_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
