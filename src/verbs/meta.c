/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/meta.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "call/call.h"
#include "call/json.h"
#include "txn/find.h"

#include <string.h>

static int op_version(struct verb_call *c, const void *req, void *res, struct err *e)
{
	(void)c;
	(void)req;
	(void)e;
	((struct version_res *)res)->version = STET_VERSION;
	return 0;
}

static const struct field version_fields[] = {
	{ "version", FIELD_STRING, offsetof(struct version_res, version), "of stet" },
	{ NULL },
};

const struct verb verb_version = {
	.name = "version",
	.summary = "print the version",
	.description = "Prints the version of stet.",
	.request_size = sizeof(struct version_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON,
	.run = op_version,
	.result_size = sizeof(struct version_res),
	.result = version_fields,
};

/* The first word of verbs of two: all of them are meant. */
static int half_a_name(const char *name, struct err *e)
{
	AUTO_BUF struct buf all = BUF_INIT;

	for (size_t i = 0; verbs[i]; i++)
		if (verb_is_in(verbs[i], name))
			buf_addf(&all, "%sstet %s", all.len ? ", " : "", verbs[i]->name);
	err_set(e, ERR_USAGE, "%s: a second word is missing", name);
	return err_hint(e, "%s", buf_str(&all));
}

int verb_unknown(const char *name, struct err *e)
{
	const struct verb *near = verb_nearest(name);

	if (verb_is_group(name))
		return half_a_name(name, e);
	err_set(e, ERR_USAGE, "unknown command '%s'", name);
	if (near)
		return err_hint(e, "did you mean: stet %s", near->name);
	return err_hint(e, "see: stet help");
}

static int op_help(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct help_req *rq = req;
	struct help_res *res = result;
	AUTO_BUF struct buf name = BUF_INIT;
	size_t i;

	(void)c;
	res->man = rq->man;
	if (!rq->words)
		return 0;
	for (i = 0; rq->words[i]; i++)
		buf_addf(&name, "%s%s", i ? " " : "", rq->words[i]);
	res->verb = verb_find(buf_str(&name));
	return res->verb ? 0 : verb_unknown(buf_str(&name), e);
}

char *verb_operands(const struct verb *v)
{
	struct buf b = BUF_INIT;
	size_t i;

	for (i = 0; v->args && v->args[i].name; i++) {
		const struct verb_arg *a = &v->args[i];
		const char *open = a->required ? "" : "[",
			   *close = a->required ? "" : "]";

		if (b.len)
			buf_addc(&b, ' ');
		if (a->kind == ARG_COMMAND)
			buf_addf(&b,
				 a->required ? "[--] %s [ARG...]" : "[-- %s [ARG...]]",
				 a->name);
		else
			buf_addf(&b, "%s%s%s%s", open, a->name, a->many ? "..." : "",
				 close);
	}
	buf_adds(&b, "");
	return b.data ? buf_take(&b) : xstrdup("");
}

static json_t *names(const char *const *choices)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; choices && choices[i]; i++)
		json_array_append_new(a, json_string(choices[i]));
	return a;
}

static json_t *opt_json(const struct verb_opt *o)
{
	static const char *const types[] = {
		[OPT_FLAG] = "flag",   [OPT_STRING] = "string",
		[OPT_LIST] = "list",   [OPT_DURATION] = "duration",
		[OPT_SIZE] = "size",   [OPT_CHOICE] = "choice",
		[OPT_COUNT] = "count",
	};
	char letter[2] = { o->letter, 0 };
	json_t *j = json_object();

	json_set_str(j, "name", o->name);
	json_set_str(j, "letter", o->letter ? letter : NULL);
	json_set_str(j, "type", types[o->type]);
	json_set_str(j, "argument", o->arg);
	json_set_str(j, "help", o->help);
	if (o->choices)
		json_object_set_new(j, "choices", names(o->choices));
	return j;
}

static const char *const arg_kinds[] = {
	[ARG_WORD] = "word",	 [ARG_TXN] = "transaction", [ARG_PATH] = "path",
	[ARG_DIR] = "directory", [ARG_ENV] = "variable",    [ARG_VERB] = "verb",
	[ARG_CHOICE] = "choice", [ARG_COMMAND] = "command",
};

static json_t *args_json(const struct verb *v)
{
	json_t *all = json_array();

	for (const struct verb_arg *a = v->args; a && a->name; a++) {
		json_t *o = json_object();

		json_set_str(o, "name", a->name);
		json_set_str(o, "kind", arg_kinds[a->kind]);
		json_object_set_new(o, "required", json_boolean(a->required));
		json_object_set_new(o, "many", json_boolean(a->many));
		if (a->choices)
			json_object_set_new(o, "choices", names(a->choices));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *states_json(const struct verb_states *s)
{
	json_t *a = json_array();

	for (int i = 0; i < TXN_LOOKS; i++)
		if (s->in & IN(i))
			json_array_append_new(
				a, json_string(txn_look_name((enum txn_look)i)));
	return a;
}

/* What a program has to know before it calls the verb for somebody. */
static void add_conduct(json_t *o, const struct verb *v)
{
	static const char *const effects[] = { [EFFECT_READS] = "reads",
					       [EFFECT_STORE] = "store",
					       [EFFECT_HOST] = "host",
					       [EFFECT_RUNS] = "runs" };
	static const char *const inside[] = { [INSIDE_REFUSED] = "refused",
					      [INSIDE_ASKS] = "asks",
					      [INSIDE_ANYWHERE] = "anywhere" };

	json_set_str(o, "effect", effects[v->effect]);
	json_set_str(o, "inside", inside[v->inside]);
	if (v->states)
		json_object_set_new(o, "states", states_json(v->states));
	if (v->flags & VERB_LINES)
		json_object_set_new(o, "lines", json_true());
	if (v->result)
		json_object_set_new(o, "result", schema_describe(v->result));
	if (v->explain)
		json_object_set_new(o, "error", schema_describe(v->explain));
}

static json_t *one_verb(const struct verb *v)
{
	AUTO_FREE char *operands = verb_operands(v);
	json_t *o = json_object(), *opts = json_array();
	const struct verb_opt *opt;
	size_t i;

	json_set_str(o, "name", v->name);
	json_set_str(o, "summary", v->summary);
	json_set_str(o, "operands", operands);
	json_set_str(o, "description", v->description);
	for (i = 0; (opt = verb_opt_at(v, i)); i++)
		json_array_append_new(opts, opt_json(opt));
	json_object_set_new(o, "options", opts);
	json_object_set_new(o, "arguments", args_json(v));
	add_conduct(o, v);
	return o;
}

static json_t *verbs_json(const void *at)
{
	const struct help_res *res = at;
	json_t *a = json_array();

	for (size_t i = 0; verbs[i]; i++)
		if (!res->verb || res->verb == verbs[i])
			json_array_append_new(a, one_verb(verbs[i]));
	return a;
}

static const struct field help_fields[] = {
	{ "verbs", FIELD_LIST, 0, "every verb, or the one that was named",
	  .make = verbs_json },
	{ NULL },
};

static const struct verb_opt help_opts[] = {
	{ "man", 0, OPT_FLAG, NULL, "print the manual page, for man -l -",
	  offsetof(struct help_req, man) },
	{ NULL },
};

static const struct verb_arg help_args[] = {
	{ "VERB", ARG_VERB, false, true, offsetof(struct help_req, words) },
	{ NULL },
};

const struct verb verb_help = {
	.name = "help",
	.summary = "explain stet or one of its verbs",
	.description =
		"Prints what a verb does and takes, or, without VERB, what verbs there "
		"are.\n"
		"\n"
		"  stet help run\n"
		"  stet help --man run | man -l -",
	.opts = help_opts,
	.args = help_args,
	.request_size = sizeof(struct help_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON,
	.run = op_help,
	.result_size = sizeof(struct help_res),
	.result = help_fields,
};

static int op_completion(struct verb_call *c, const void *req, void *res, struct err *e)
{
	(void)c;
	(void)e;
	((struct completion_res *)res)->shell =
		((const struct completion_req *)req)->shell;
	return 0;
}

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

static const struct verb_arg completion_args[] = {
	{ "SHELL", ARG_CHOICE, true, false, offsetof(struct completion_req, shell),
	  shells },
	{ NULL },
};

const struct verb verb_completion = {
	.name = "completion",
	.summary = "print a completion script for bash, zsh or fish",
	.description =
		"Prints a script that teaches SHELL (bash, zsh or fish) to complete "
		"stet's verbs, options and transactions.\n"
		"\n"
		"  source <(stet completion bash)\n"
		"  stet completion fish > ~/.config/fish/completions/stet.fish",
	.args = completion_args,
	.request_size = sizeof(struct completion_req),
	.inside = INSIDE_ANYWHERE,
	.run = op_completion,
	.result_size = sizeof(struct completion_res),
};
