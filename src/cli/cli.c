/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "call/call.h"
#include "call/json.h"
#include "cli/dialog.h"
#include "cli/help.h"
#include "cli/inside.h"
#include "cli/inside_worker.h"
#include "cli/parse.h"
#include "print/complaint.h"
#include "print/term.h"
#include "review/status.h"
#include "session/housekeep.h"
#include "session/sandbox.h"
#include "verbs/meta.h"
#include "verbs/run.h"
#include "verbs/verbs.h"

static const struct {
	const struct verb *verb;
	print_fn *print;
} printers[] = {
#define VERB(name) { &verb_##name, print_##name },
#include "verbs/verbs.def"
#undef VERB
};

/* Every verb has one: both come from the same list. */
static print_fn *printer_of(const struct verb *v)
{
	size_t i = 0;

	while (printers[i].verb != v)
		i++;
	return printers[i].print;
}

void cli_open(struct cli *c, char *const *env)
{
	*c = (struct cli){ .con = { .ctx = &c->ctx, .out = stdout } };
	op_ctx_init(&c->ctx, env);
}

void cli_close(struct cli *c)
{
	op_ctx_close(&c->ctx);
}

/* On a terminal, JSON is written in ASCII alone: a name must not be taken for a control sequence,
 * nor look like another name. */
static size_t json_flags(FILE *out)
{
	return JSON_COMPACT | JSON_REAL_PRECISION(12) |
	       (isatty(fileno(out)) ? JSON_ENSURE_ASCII : 0);
}

static void write_line(FILE *out, const json_t *o)
{
	json_dumpf(o, out, json_flags(out));
	fputc('\n', out);
}

/* The destination of a result as JSON if no option names one. */
static FILE *plain_out(const struct verb *v)
{
	return v && v->effect == EFFECT_RUNS && !(v->flags & VERB_CAPTURES) ? stderr
									    : stdout;
}

/* The last line that the command wrote to the same place may have no end yet. */
static FILE *begin_json(struct cli *c, const struct verb *v, struct err *e)
{
	if (report_begin(&c->report, plain_out(v), e) < 0)
		return NULL;
	if (c->ctx.mid_line)
		fputc('\n', c->report.out);
	c->ctx.mid_line = false;
	return c->report.out;
}

static int write_json(struct cli *c, const struct verb *v, json_t *o, struct err *e)
{
	FILE *out = begin_json(c, v, e);
	size_t i;

	if (!out) {
		json_decref(o);
		return -1;
	}
	if (json_is_array(o))
		for (i = 0; i < json_array_size(o); i++)
			write_line(out, json_array_get(o, i));
	else
		write_line(out, o);
	json_decref(o);
	if (out == stderr)
		fflush(out);
	return 0;
}

/* A long list on its way out: only one item is in memory, as text. */
struct list_out {
	FILE *to;
	struct buf text;
	bool more;
	size_t flags;
};

static int add_text(const char *s, size_t n, void *to)
{
	buf_add(to, s, n);
	return 0;
}

static int write_item(void *arg, json_t *item, struct err *e)
{
	struct list_out *l = arg;

	(void)e;
	buf_reset(&l->text);
	if (l->more)
		buf_addc(&l->text, ',');
	l->more = true;
	json_dump_callback(item, add_text, &l->text, l->flags);
	json_decref(item);
	fwrite(l->text.data, 1, l->text.len, l->to);
	return 0;
}

/* Writes the object with the list as its last key. If the list fails half-way, a key with the error
 * follows it. */
static int write_with_list(struct cli *c, const struct verb *v, const void *res,
			   json_t *o, struct err *why)
{
	struct list_out l = { begin_json(c, v, why), BUF_INIT, false, 0 };
	json_t *failed;
	struct err e;

	if (!l.to) {
		json_decref(o);
		return -1;
	}
	l.flags = json_flags(l.to);
	json_dump_callback(o, add_text, &l.text, l.flags);
	fwrite(l.text.data, 1, l.text.len - 1, l.to);
	fprintf(l.to, ",\"%s\":[", v->list.key);
	if (v->list.each(res, write_item, &l, &e) < 0) {
		failed = json_object();
		json_set_str(failed, "error", e.msg);
		buf_reset(&l.text);
		json_dump_callback(failed, add_text, &l.text, l.flags | JSON_EMBED);
		fprintf(l.to, "],%s}\n", buf_str(&l.text));
		json_decref(failed);
	} else {
		fputs("]}\n", l.to);
	}
	json_decref(o);
	buf_free(&l.text);
	return 0;
}

static int status_of(const struct verb *v, const struct err *e)
{
	if (v && v->effect == EFFECT_RUNS)
		return RUN_STATUS_AROUND;
	return e->kind ? (int)e->kind : ERR_SYSTEM;
}

int cli_report(struct cli *c, const struct verb *v, bool json, const struct err *e)
{
	struct err second;

	if (!json || write_json(c, v, json_error(e), &second) < 0)
		print_complaint(e, true);
	return status_of(v, e);
}

/* A failure of which the result tells more. */
static int report_with(struct cli *c, const struct verb *v, const void *req,
		       const void *res, const struct err *e)
{
	const struct verb_common *common = req;
	struct err second;
	json_t *o;
	int status;

	if (common->json) {
		o = json_error(e);
		schema_add(json_object_get(o, "error"), v->explain, res);
		if (write_json(c, v, o, &second) < 0)
			print_complaint(e, true);
		return status_of(v, e);
	}
	status = dialog_refused(c, v, req, res, e);
	return status < 0 ? status_of(v, e) : status;
}

static int print_text(struct cli *c, const struct verb *v, const void *req,
		      const void *res, struct err *e)
{
	const struct verb_common *common = req;
	struct pager pager = { 0, NULL };
	struct console *con = &c->con;
	int r;

	con->out = v->effect == EFFECT_RUNS ? stderr : stdout;
	/* A stream of objects. */
	if (common->json && !(con->out = begin_json(c, v, e)))
		return -1;
	con->tty = isatty(fileno(con->out));
	con->color = (v->flags & VERB_COLOR || v->effect == EFFECT_RUNS) &&
		     term_wants_color(&c->ctx, common->color, fileno(con->out));
	if (v->flags & VERB_PAGER && !common->no_pager) {
		pager_open(&c->ctx, &pager);
		con->out = pager.out;
	}
	r = printer_of(v)(con, req, res, e);
	pager_close(&pager);
	con->out = stdout;
	return r;
}

/* Output that did not reach standard output must not look like success. */
static int check_output(struct err *e)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno)
		return err_sys(e, errno, "standard output");
	return err_set(e, ERR_SYSTEM, "standard output: not all of it could be written");
}

/* The verb itself, with a progress bar on the terminal. */
static int run(struct cli *c, const struct verb *v, const void *req, void *res,
	       struct err *e)
{
	struct verb_call call = { .verb = v, .req = req, .ctx = &c->ctx };
	const struct verb_common *common = req;
	struct progress p = { 0 };
	int r;

	if (!common->quiet)
		progress_begin(&c->ctx, &p);
	r = call_begin(&call, e);
	if (r == 0)
		r = v->run(&call, req, res, e);
	r = call_end(&call, res, r);
	progress_end(&c->ctx, &p);
	/* The message says where the disk is full, but not what helps. */
	if (r < 0 && (e->sys == ENOSPC || e->sys == EDQUOT) && !e->hint[0])
		err_hint(e, "free some space there, or let old data go: stet prune");
	return r;
}

int cli_verb(struct cli *c, const struct verb *v, const void *req)
{
	const struct verb_common *common = req;
	AUTO_FREE void *res = xcalloc(1, v->result_size);
	struct err e = { 0 };
	json_t *o;
	int r, status, asked = -1;

	r = run(c, v, req, res, &e);
	if (r < 0 && !v->explain)
		return cli_report(c, v, common->json, &e);
	if (r < 0) {
		status = report_with(c, v, req, res, &e);
		if (v->free)
			v->free(res);
		return status;
	}
	status = v->status ? v->status(req, res) : 0;
	o = common->json && !(v->streams && v->streams(res)) ? verb_json(v, res) : NULL;
	if (o && v->list.key)
		r = write_with_list(c, v, res, o, &e);
	else if (o)
		r = write_json(c, v, o, &e);
	else if (!common->quiet || status || v->effect == EFFECT_RUNS) {
		r = print_text(c, v, req, res, &e);
		if (r == 0)
			asked = dialog_done(c, v, req, res);
	}
	if (v->free)
		v->free(res);
	if (r == 0 &&
	    (v->effect != EFFECT_RUNS || (v->flags & VERB_CAPTURES && common->json)) &&
	    check_output(&e) < 0) /* nor would it take an object that says so */
		return cli_report(c, v, false, &e);
	if (r < 0)
		return cli_report(c, v, common->json && !o, &e);
	return asked < 0 ? status : asked;
}

int cli_open_report(struct cli *c, const struct verb *v, const struct verb_common *common,
		    struct err *e)
{
	if (report_open(&c->report, common, c->ctx.only, e) < 0)
		return -1;
	if (common->json && v->effect == EFFECT_RUNS)
		c->ctx.report = report_fd(&c->report, plain_out(v));
	return 0;
}

int cli_end_report(struct cli *c, const struct verb *v, int status)
{
	struct err e;

	return report_end(&c->report, &e) < 0 ? cli_report(c, v, false, &e) : status;
}

/* A line that cannot be parsed may still say where its result is to go. */
static int report_usage(struct cli *c, const struct verb *v, int argc, char **argv,
			const struct err *e)
{
	struct verb_common common = { 0 };
	struct err second;

	parse_report(v, argc, argv, &common);
	if (common.json && cli_open_report(c, v, &common, &second) < 0) {
		common.json = false;
		cli_end_report(c, v, 0);
	}
	return cli_report(c, v, common.json, e);
}

int cli_line(struct cli *c, const struct verb *v, int argc, char **argv)
{
	AUTO_FREE void *req = xcalloc(1, v->request_size);
	const struct verb_common *common = req;
	struct err e = { 0 };
	int status;

	/* Our parent may have ignored SIGPIPE; output into a closed pipe shall end us. */
	if (v->effect != EFFECT_RUNS)
		signal(SIGPIPE, SIG_DFL);
	if (parse_verb(v, argc, argv, req, &e) < 0) {
		status = report_usage(c, v, argc, argv, &e);
	} else if (common->help) {
		help_text(stdout, v);
		status = check_output(&e) < 0 ? cli_report(c, NULL, false, &e) : 0;
	} else if (cli_open_report(c, v, common, &e) < 0) {
		status = cli_report(c, v, false, &e);
	} else {
		log_enable(common->debug);
		if (v->effect == EFFECT_RUNS && term_can_ask()) {
			c->ctx.consent = dialog_consent;
			c->ctx.consent_arg = c;
		}
		status = cli_verb(c, v, req);
	}
	parse_free(v, req);
	return cli_end_report(c, v, status);
}

static int run_bare(struct cli *c)
{
	struct status_req req = { .bare = true };

	signal(SIGPIPE, SIG_DFL);
	return cli_verb(c, &verb_status, &req);
}

/* The words typed in place of a verb: one, or two if the first is half a name. */
static char *typed_verb(int argc, char **argv)
{
	if (argc > 2 && argv[2][0] != '-' && verb_is_group(argv[1]))
		return xasprintf("%s %s", argv[1], argv[2]);
	return xstrdup(argv[1]);
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
	struct cli c;
	struct err e;
	int status, words = 1;
	size_t i;

	if (argc > 1 && strcmp(argv[1], HOUSEKEEP_OPTION) == 0)
		return housekeep_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], VISITOR_OPTION) == 0)
		return inside_worker_main(argc, argv, env);
	cli_open(&c, env);
	v = verb_at(argc - 1, argv + 1, &words);
	for (i = 0; argc > 1 && i < ARRAY_SIZE(spelt); i++)
		if (strcmp(argv[1], spelt[i].option) == 0)
			v = spelt[i].verb;
	if (argc < 2) {
		status = inside_line(&c, &verb_status, 0, NULL);
		if (status < 0)
			status = run_bare(&c);
	} else if (v) {
		status = inside_line(&c, v, argc - words, argv + words);
		if (status < 0)
			status = cli_line(&c, v, argc - words, argv + words);
	} else {
		if (argv[1][0] == '-') {
			err_set(&e, ERR_USAGE, "unknown option '%s' before the verb",
				argv[1]);
			err_hint(&e, "see: stet help");
		} else {
			AUTO_FREE char *name = typed_verb(argc, argv);

			verb_unknown(name, &e);
		}
		status = cli_report(&c, NULL, false, &e);
	}
	cli_close(&c);
	return status;
}
