/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/parse.h"
#include "cli/term.h"
#include "ops/diff.h"
#include "ops/json.h"
#include "ops/meta.h"
#include "ops/status.h"
#include "ops/verbs.h"

enum { EXIT_AROUND = 125 }; /* we failed before or around a command */

static const struct {
	const struct verb *verb;
	cli_print *print;
} printers[] = {
	{ &verb_run, print_run },
	{ &verb_explore, print_explore },
	{ &verb_status, print_status },
	{ &verb_list, print_list },
	{ &verb_diff, print_diff },
	{ &verb_rollback, print_rollback },
	{ &verb_prune, print_prune },
	{ &verb_doctor, print_doctor },
	{ &verb_version, print_version },
	{ &verb_help, print_help },
	{ &verb_completion, print_completion },
};

static cli_print *printer_of(const struct verb *v)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(printers); i++)
		if (printers[i].verb == v)
			return printers[i].print;
	return NULL;
}

static void write_json(FILE *out, json_t *o)
{
	json_dumpf(o, out, JSON_COMPACT);
	fputc('\n', out);
	json_decref(o);
}

/* @v may be NULL: no verb was found. Returns the exit status. */
static int report(const struct verb *v, bool json, const struct err *e)
{
	bool runs = v && v->flags & VERB_RUNS;
	AUTO_BUF struct buf b = BUF_INIT;

	fflush(stdout);
	if (json) {
		FILE *out = runs ? stderr : stdout;

		write_json(out, json_error(e));
		fflush(out);
	} else {
		buf_adds(&b, "stet: ");
		text_escape(&b, e->msg, strlen(e->msg));
		if (e->hint[0]) {
			buf_adds(&b, "; ");
			text_escape(&b, e->hint, strlen(e->hint));
		}
		buf_addc(&b, '\n');
		fputs(buf_str(&b), stderr);
	}
	if (runs)
		return EXIT_AROUND;
	return e->kind ? (int)e->kind : ERR_SYSTEM;
}

static int print_text(struct cli *c, const struct verb *v, const void *req,
		      const void *res, struct err *e)
{
	const struct verb_common *common = req;
	struct pager pager = { 0, NULL };
	int r;

	c->out = v->flags & VERB_RUNS ? stderr : stdout;
	c->tty = isatty(fileno(c->out));
	c->color = v->flags & (VERB_COLOR | VERB_RUNS) &&
		   term_wants_color(&c->ctx, common->color, fileno(c->out));
	if (v == &verb_diff && !((const struct diff_req *)req)->no_pager) {
		pager_open(&c->ctx, &pager);
		c->out = pager.out;
	}
	r = printer_of(v)(c, req, res, e);
	pager_close(&pager);
	c->out = stdout;
	return r;
}

/* What did not reach standard output must not look like success. */
static int check_output(struct err *e)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return err_sys(e, errno ? errno : EIO, "standard output");
}

int cli_verb(struct cli *c, const struct verb *v, const void *req)
{
	const struct verb_common *common = req;
	AUTO_FREE void *res = xcalloc(1, v->result_size);
	struct err e = { 0 };
	int r, status;

	if (v->run(&c->ctx, req, res, &e) < 0)
		return report(v, common->json, &e);
	status = v->status ? v->status(req, res) : 0;
	if (common->json) {
		write_json(v->flags & VERB_RUNS ? stderr : stdout, v->json(res));
		r = 0;
	} else {
		r = print_text(c, v, req, res, &e);
	}
	if (v->free)
		v->free(res);
	if (r == 0 && !(v->flags & VERB_RUNS))
		r = check_output(&e);
	return r < 0 ? report(v, common->json, &e) : status;
}

static int run_line(struct cli *c, const struct verb *v, int argc, char **argv)
{
	AUTO_FREE void *req = xcalloc(1, v->request_size);
	const struct verb_common *common = req;
	struct err e = { 0 };
	int status;

	/* Whoever started us may have had it ignored; output into a closed pipe ends us. */
	if (!(v->flags & VERB_RUNS))
		signal(SIGPIPE, SIG_DFL);
	if (parse_verb(v, argc, argv, req, &e) < 0) {
		status = report(v, parse_wants_json(v, argc, argv), &e);
	} else if (common->help) {
		help_text(stdout, v);
		status = check_output(&e) < 0 ? report(NULL, false, &e) : 0;
	} else {
		log_enable(common->debug);
		status = cli_verb(c, v, req);
	}
	parse_free(v, req);
	return status;
}

static int run_bare(struct cli *c)
{
	struct status_req req = { .bare = true };

	signal(SIGPIPE, SIG_DFL);
	return cli_verb(c, &verb_status, &req);
}

int cli_main(int argc, char **argv, char *const *env)
{
	static const struct {
		const char *option;
		const struct verb *verb;
	} spelt[] = {
		{ "--help", &verb_help },
		{ "-h", &verb_help },
		{ "--version", &verb_version },
		{ "-V", &verb_version },
	};
	const struct verb *v;
	struct cli c = { .out = stdout };
	struct err e;
	int status;
	size_t i;

	op_ctx_init(&c.ctx, env);
	v = argc > 1 ? verb_find(argv[1]) : NULL;
	for (i = 0; argc > 1 && i < ARRAY_SIZE(spelt); i++)
		if (strcmp(argv[1], spelt[i].option) == 0)
			v = spelt[i].verb;
	if (argc < 2) {
		status = run_bare(&c);
	} else if (v) {
		status = run_line(&c, v, argc - 1, argv + 1);
	} else {
		if (argv[1][0] == '-') {
			err_set(&e, ERR_USAGE, "unknown option '%s' before the verb",
				argv[1]);
			err_hint(&e, "see: stet help");
		} else {
			verb_unknown(argv[1], &e);
		}
		status = report(NULL, false, &e);
	}
	op_ctx_close(&c.ctx);
	return status;
}
