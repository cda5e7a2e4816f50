/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/meta.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "session/json.h"

#include <string.h>

int op_version(struct op_ctx *ctx, const void *req, void *res, struct err *e)
{
	(void)ctx;
	(void)req;
	(void)e;
	((struct version_res *)res)->version = STET_VERSION;
	return 0;
}

static json_t *version_json(const void *res)
{
	json_t *o = json_result();

	json_set_str(o, "version", ((const struct version_res *)res)->version);
	return o;
}

const struct verb verb_version = {
	.name = "version",
	.summary = "print the version",
	.description = "Prints the version of stet.",
	.flags = VERB_JSON | VERB_ANYWHERE,
	.request_size = sizeof(struct version_req),
	.result_size = sizeof(struct version_res),
	.run = op_version,
	.json = version_json,
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

int op_help(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct help_req *rq = req;
	struct help_res *res = result;
	AUTO_BUF struct buf name = BUF_INIT;
	size_t i;

	(void)ctx;
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

static json_t *verb_json(const struct verb *v)
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
	return o;
}

static json_t *help_json(const void *result)
{
	const struct help_res *res = result;
	json_t *o = json_result(), *a = json_array();
	size_t i;

	for (i = 0; verbs[i]; i++)
		if (!res->verb || res->verb == verbs[i])
			json_array_append_new(a, verb_json(verbs[i]));
	json_object_set_new(o, "verbs", a);
	return o;
}

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
	.flags = VERB_JSON | VERB_ANYWHERE,
	.request_size = sizeof(struct help_req),
	.result_size = sizeof(struct help_res),
	.run = op_help,
	.json = help_json,
};

int op_completion(struct op_ctx *ctx, const void *req, void *res, struct err *e)
{
	(void)ctx;
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
	.flags = VERB_ANYWHERE,
	.args = completion_args,
	.request_size = sizeof(struct completion_req),
	.result_size = sizeof(struct completion_res),
	.run = op_completion,
};
