/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parse.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Values that getopt_long() gives back for long options: LONG + index. */
enum { OPERAND = 1, LONG = 256 };

#define FIELD(req, off, type) ((type *)(void *)((char *)(req) + (off)))

static int usage_error(const struct verb *v, struct err *e)
{
	err_wrap(e, "%s", v->name);
	return err_hint(e, "see: stet help %s", v->name);
}

/* A list of borrowed strings; grows like strv_push() but owns only the array. */
static void push(char ***list, char *s)
{
	strv_push(list, s);
}

static int bad_choice(const char *what, const char *given, const char *const *choices,
		      struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; choices[i]; i++)
		buf_addf(&b, "%s%s",
			 !i		  ? ""
			 : choices[i + 1] ? ", "
					  : " or ",
			 choices[i]);
	return err_set(e, ERR_USAGE, "%s: '%s' is not %s", what, given, buf_str(&b));
}

static int choice_index(const char *const *choices, const char *given)
{
	int i;

	for (i = 0; choices[i]; i++)
		if (strcmp(choices[i], given) == 0)
			return i;
	return -1;
}

static int parse_count(const char *s, int64_t *n)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoll(s, &end, 10);
	return errno || *end || *n == 0 ? -EINVAL : 0;
}

static int set_option(const struct verb_opt *o, char *value, void *req, struct err *e)
{
	char what[64];
	int i;

	snprintf(what, sizeof(what), "--%s", o->name);
	switch (o->type) {
	case OPT_FLAG:
		*FIELD(req, o->offset, bool) = true;
		return 0;
	case OPT_STRING:
		*FIELD(req, o->offset, const char *) = value;
		return 0;
	case OPT_LIST:
		push(FIELD(req, o->offset, char **), value);
		return 0;
	case OPT_DURATION:
		if (text_parse_duration(value, FIELD(req, o->offset, int64_t)) < 0 ||
		    *FIELD(req, o->offset, int64_t) == 0)
			return err_set(e, ERR_USAGE,
				       "%s: '%s' is not a time such as 90s, 5m or 2h",
				       what, value);
		return 0;
	case OPT_SIZE:
		if (text_parse_size(value, FIELD(req, o->offset, uint64_t)) < 0)
			return err_set(e, ERR_USAGE,
				       "%s: '%s' is not a size such as 64k, 10M or 2G",
				       what, value);
		return 0;
	case OPT_COUNT:
		if (parse_count(value, FIELD(req, o->offset, int64_t)) < 0)
			return err_set(e, ERR_USAGE, "%s: '%s' is not a number from 1 on",
				       what, value);
		return 0;
	case OPT_CHOICE:
		i = choice_index(o->choices, value);
		if (i < 0)
			return bad_choice(what, value, o->choices, e);
		*FIELD(req, o->offset, int) = i + 1;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s: unknown type", what);
}

/* The verb's options in getopt's form; both are to be freed. */
static void make_tables(const struct verb *v, struct option **longs, char **shorts)
{
	struct buf letters = BUF_INIT;
	const struct verb_opt *o;
	struct option *l = NULL;
	size_t n;

	/* "-": operands are returned in order; ":": a missing argument is not an unknown option. */
	buf_adds(&letters, "-:");
	for (n = 0; (o = verb_opt_at(v, n)); n++) {
		int takes = o->type == OPT_FLAG ? no_argument : required_argument;

		l = xrealloc(l, (n + 2) * sizeof(*l));
		l[n] = (struct option){ o->name, takes, NULL, LONG + (int)n };
		if (o->letter)
			buf_addf(&letters, "%c%s", o->letter, takes ? ":" : "");
	}
	memset(&l[n], 0, sizeof(*l));
	*longs = l;
	*shorts = buf_take(&letters);
}

static const struct verb_opt *by_value(const struct verb *v, int value)
{
	const struct verb_opt *o;
	size_t i;

	if (value >= LONG)
		return verb_opt_at(v, (size_t)(value - LONG));
	for (i = 0; (o = verb_opt_at(v, i)); i++)
		if (o->letter == value)
			return o;
	return NULL;
}

/* @word: the argument that getopt was looking at. */
static int option_error(const struct verb *v, int c, int opt, const char *word,
			struct err *e)
{
	const struct verb_opt *o = opt ? by_value(v, opt) : NULL;

	if (c == ':' && o)
		return err_set(e, ERR_USAGE, "--%s needs an argument: %s", o->name,
			       o->arg);
	if (o)
		return err_set(e, ERR_USAGE, "--%s takes no argument", o->name);
	if (opt)
		return err_set(e, ERR_USAGE, "unknown option '-%c'", opt);
	return err_set(e, ERR_USAGE, "unknown option '%s'", word);
}

struct operands {
	char **v;    /* before "--", borrowed strings */
	char **rest; /* after it */
};

static bool begins_with_command(const struct verb *v)
{
	return v->args && v->args[0].name && v->args[0].kind == ARG_COMMAND;
}

static int parse_options(const struct verb *v, int argc, char **argv, void *req,
			 struct operands *ops, struct err *e)
{
	AUTO_FREE struct option *longs = NULL;
	AUTO_FREE char *shorts = NULL;
	int c;

	make_tables(v, &longs, &shorts);
	opterr = 0;
	optind = 0; /* start afresh, whatever was parsed before */
	for (;;) {
		int at = optind ? optind : 1;

		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c < 0)
			break;
		if (c == OPERAND) {
			if (begins_with_command(v)) {
				optind--;
				break;
			}
			push(&ops->v, optarg);
			continue;
		}
		if (c == '?' || c == ':')
			return option_error(v, c, optopt, argv[at], e);
		if (set_option(by_value(v, c), optarg, req, e) < 0)
			return -1;
	}
	ops->rest = argv + optind;
	return 0;
}

static int too_many(const char *word, struct err *e)
{
	return err_set(e, ERR_USAGE, "unexpected operand '%s'", word);
}

/* Gives the operands out to the fields that the table names, in order. */
static int set_operands(const struct verb *v, const struct operands *ops, void *req,
			struct err *e)
{
	char **before = ops->v, **rest = ops->rest;
	const struct verb_arg *a;

	for (a = v->args; a && a->name; a++) {
		char *word;

		if (a->many) {
			/* A command in second place comes after "--" only. */
			for (; before && *before && a->kind != ARG_COMMAND; before++)
				push(FIELD(req, a->offset, char **), *before);
			for (; *rest && !(before && *before); rest++)
				push(FIELD(req, a->offset, char **), *rest);
			if (a->required && !*FIELD(req, a->offset, char **))
				return err_set(e, ERR_USAGE, "%s is missing", a->name);
			continue;
		}
		word = before && *before ? *before++ : NULL;
		/* What follows "--" is meant for the list at the end, if there is one. */
		if (!word && !a[1].name && *rest)
			word = *rest++;
		if (!word && a->required)
			return err_set(e, ERR_USAGE, "%s is missing", a->name);
		if (word && a->choices && choice_index(a->choices, word) < 0)
			return bad_choice(a->name, word, a->choices, e);
		*FIELD(req, a->offset, const char *) = word;
	}
	if (before && *before)
		return too_many(*before, e);
	return *rest ? too_many(*rest, e) : 0;
}

int parse_verb(const struct verb *v, int argc, char **argv, void *req, struct err *e)
{
	struct verb_common *common = req;
	struct operands ops = { NULL, NULL };
	int r;

	r = parse_options(v, argc, argv, req, &ops, e);
	if (r == 0 && !common->help)
		r = set_operands(v, &ops, req, e);
	free(ops.v);
	if (common->json_fd || common->json_file)
		common->json = true;
	return r < 0 ? usage_error(v, e) : 0;
}

void parse_free(const struct verb *v, void *req)
{
	const struct verb_opt *o;
	size_t i;

	for (i = 0; (o = verb_opt_at(v, i)); i++)
		if (o->type == OPT_LIST)
			free(*FIELD(req, o->offset, char **));
	for (i = 0; v->args && v->args[i].name; i++)
		if (v->args[i].many)
			free(*FIELD(req, v->args[i].offset, char **));
}

/* The value of option @name, which begins @argv or not, or NULL. */
static const char *value_of(char **argv, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(argv[0], name, len) != 0)
		return NULL;
	return argv[0][len] == '=' ? argv[0] + len + 1 : argv[0][len] ? NULL : argv[1];
}

/* Is @word an option of which the argument is the next word? */
static bool takes_next(const struct verb *v, const char *word)
{
	const struct verb_opt *o;

	for (size_t i = 0; (o = verb_opt_at(v, i)); i++)
		if (o->type != OPT_FLAG &&
		    ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0) ||
		     (o->letter && word[0] == '-' && word[1] == o->letter && !word[2])))
			return true;
	return false;
}

static void look_through(const struct verb *v, int argc, char **argv,
			 struct verb_common *common)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *fd = value_of(argv + i, "--json-fd");
		const char *file = value_of(argv + i, "--json-file");

		if (strcmp(argv[i], "--json") == 0 || fd || file)
			common->json = true;
		else if (begins_with_command(v) && argv[i][0] != '-')
			return;
		if (fd)
			common->json_fd = fd;
		if (file)
			common->json_file = file;
		i += takes_next(v, argv[i]);
	}
}

void parse_report(const struct verb *v, int argc, char **argv, struct verb_common *common)
{
	AUTO_FREE void *req = xcalloc(1, v->request_size);
	const struct verb_common *parsed = req;
	struct err e;

	*common = (struct verb_common){ 0 };
	if (!(v->flags & VERB_JSON))
		return;
	if (parse_verb(v, argc, argv, req, &e) == 0) {
		common->json = parsed->json;
		common->json_fd = parsed->json_fd;
		common->json_file = parsed->json_file;
	} else {
		look_through(v, argc, argv, common);
	}
	parse_free(v, req);
}
