/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "verbs/meta.h"

static const char intro[] =
	"stet runs commands and agents in transactions: everything they change is kept aside, "
	"can be looked at, committed or thrown away, and taken back after that. Until a commit, "
	"the host's files stay as they are.";

static const char transactions[] =
	"A transaction is named by its number (t3 or 3) or the name given with run --name; "
	"where none is given, the newest one of the current directory that is not decided yet "
	"(running or pending) is meant, else the newest.";

struct item {
	const char *name, *text;
};

static const struct item environment[] = {
	{ "STET_STATE_DIR",
	  "where the journal is kept; otherwise $XDG_STATE_HOME/stet or "
	  "~/.local/state/stet" },
	{ "STET_PAGER",
	  "the pager of stet diff, before GIT_PAGER and PAGER; empty for none" },
	{ "STET_LIBEXEC",
	  "where stet-text is, which compares texts; otherwise beside stet, or in "
	  "../libexec/stet" },
	{ "NO_COLOR",
	  "if not empty, no colour; CLICOLOR_FORCE asks for it, also in pipes" },
	{ "STET_TXN", "set inside a transaction to its number" },
};

static const struct item statuses[] = {
	{ "0", "done" },
	{ "1", "the command line is wrong" },
	{ "2", "denied by a rule or a person" },
	{ "3", "conflict: the host changed meanwhile" },
	{ "4", "not possible in the transaction's state" },
	{ "5", "this kernel, filesystem or configuration cannot do it" },
	{ "6", "a system call failed" },
	{ "7", "what was stored is damaged" },
	{ "124", "run: time limit" },
	{ "125", "run: the sandbox could not be made, nothing was executed" },
	{ "126, 127", "run: the command cannot be executed, is not found" },
};

/* Prints words filled into lines of 80 columns, from column @col on, indented by @in. */
static void fill(FILE *out, const char *text, size_t len, size_t in, size_t col)
{
	const char *end = text + len;

	while (text < end) {
		size_t n = strcspn(text, " \n");

		if (n > (size_t)(end - text))
			n = (size_t)(end - text);
		if (n && col > in && col + 1 + n > 79) {
			fprintf(out, "\n%*s", (int)in, "");
			col = in;
		}
		if (n) {
			fprintf(out, "%s%.*s", col > in ? " " : "", (int)n, text);
			col += n + (col > in);
		}
		text += n;
		text += text < end;
	}
	fputc('\n', out);
}

/* Calls @fn for each paragraph; those whose lines begin with two spaces are code. */
static void paragraphs(const char *text, void (*fn)(FILE *, const char *, size_t, bool),
		       FILE *out)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t n = end ? (size_t)(end - text) : strlen(text);

		fn(out, text, n, strncmp(text, "  ", 2) == 0);
		text += n;
		text += strspn(text, "\n");
	}
}

static void plain_paragraph(FILE *out, const char *s, size_t n, bool code)
{
	fputc('\n', out);
	if (code)
		fprintf(out, "%.*s\n", (int)n, s);
	else
		fill(out, s, n, 0, 0);
}

static void row(FILE *out, const char *left, const char *right, size_t in)
{
	size_t n = strlen(left) + 2;

	if (n + 2 > in)
		fprintf(out, "  %s\n%*s", left, (int)in, "");
	else
		fprintf(out, "  %-*s", (int)in - 2, left);
	fill(out, right, strlen(right), in, in);
}

/* "-w, --workspace DIR" */
static char *option_head(const struct verb_opt *o)
{
	struct buf b = BUF_INIT;

	buf_adds(&b, "    ");
	if (o->letter) {
		buf_truncate(&b, 0);
		buf_addf(&b, "-%c, ", o->letter);
	}
	buf_addf(&b, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
	return buf_take(&b);
}

char *help_page(const struct verb *v)
{
	char *page = v ? xasprintf("stet-%s", v->name) : xstrdup("stet"), *p;

	for (p = page; *p; p++)
		if (*p == ' ')
			*p = '-';
	return page;
}

static void overview(FILE *out)
{
	size_t i;

	fputs("Usage: stet VERB [OPTION...] [OPERAND...]\n\n", out);
	fill(out, intro, strlen(intro), 0, 0);
	fputs("\nVerbs:\n", out);
	for (i = 0; verbs[i]; i++)
		row(out, verbs[i]->name, verbs[i]->summary, 18);
	fputc('\n', out);
	fill(out, transactions, strlen(transactions), 0, 0);
	fputs("\nMore: stet help VERB\n", out);
}

void help_text(FILE *out, const struct verb *v)
{
	AUTO_FREE char *operands = NULL;
	const struct verb_opt *o;
	size_t i;

	if (!v) {
		overview(out);
		return;
	}
	operands = verb_operands(v);
	fprintf(out, "Usage: stet %s [OPTION...]%s%s\n\n%c%s.\n", v->name,
		*operands ? " " : "", operands, toupper((unsigned char)v->summary[0]),
		v->summary + 1);
	paragraphs(v->description, plain_paragraph, out);
	fputs("\nOptions:\n", out);
	for (i = 0; (o = verb_opt_at(v, i)); i++) {
		AUTO_FREE char *head = option_head(o);

		row(out, head, o->help, 28);
	}
}

/* Text for roff: backslashes and hyphens literal, no line taken for a request. */
static void roff(FILE *out, const char *s, size_t n)
{
	bool start = true;

	for (; n; s++, n--) {
		if (start && (*s == '.' || *s == '\''))
			fputs("\\&", out);
		start = *s == '\n';
		if (*s == '\\')
			fputs("\\e", out);
		else if (*s == '-')
			fputs("\\-", out);
		else if (*s == '~')
			fputs("\\(ti", out);
		else if (*s == '^')
			fputs("\\(ha", out);
		else if (*s == '`')
			fputs("\\(ga", out);
		else
			fputc(*s, out);
	}
}

static void roff_s(FILE *out, const char *s)
{
	roff(out, s, strlen(s));
}

static void roff_paragraph(FILE *out, const char *s, size_t n, bool code)
{
	fputs(code ? ".PP\n.nf\n.RS\n" : ".PP\n", out);
	for (; code && n;) {
		const char *nl = memchr(s, '\n', n);
		size_t line = nl ? (size_t)(nl - s) : n;

		/* The indentation is the macro's here. */
		roff(out, s + 2, line - 2);
		fputc('\n', out);
		s += line + (nl != NULL);
		n -= line + (nl != NULL);
	}
	if (!code)
		roff(out, s, n);
	fputs(code ? ".RE\n.fi\n" : "\n", out);
}

static void roff_items(FILE *out, const struct item *items, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		fputs(".TP\n.B ", out);
		roff_s(out, items[i].name);
		fputc('\n', out);
		roff_s(out, items[i].text);
		fputc('\n', out);
	}
}

static void man_head(FILE *out, const char *page, const char *summary)
{
	size_t i;

	fputs(".\\\" Made from the verb table by stet help --man.\n.TH ", out);
	for (i = 0; page[i]; i++)
		fputc(toupper((unsigned char)page[i]), out);
	fputs(" 1 \"\" \"stet " STET_VERSION "\" \"User Commands\"\n.SH NAME\n", out);
	roff_s(out, page);
	fputs(" \\- ", out);
	roff_s(out, summary);
	fputs("\n.SH SYNOPSIS\n", out);
}

static void man_overview(FILE *out)
{
	size_t i;

	man_head(out, "stet", "a transactional sandbox for coding agents");
	fputs(".B stet\n.I VERB\n[\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n", out);
	fputs(".SH DESCRIPTION\n", out);
	roff_s(out, intro);
	fputs("\n.PP\n", out);
	roff_s(out, transactions);
	fputs("\n.SH VERBS\n", out);
	for (i = 0; verbs[i]; i++) {
		AUTO_FREE char *page = help_page(verbs[i]);

		fputs(".TP\n.BR ", out);
		roff_s(out, page);
		fputs(" (1)\n", out);
		roff_s(out, verbs[i]->summary);
		fputc('\n', out);
	}
	fputs(".SH EXIT STATUS\n", out);
	roff_items(out, statuses, ARRAY_SIZE(statuses));
	fputs(".SH ENVIRONMENT\n", out);
	roff_items(out, environment, ARRAY_SIZE(environment));
}

void help_man(FILE *out, const struct verb *v)
{
	AUTO_FREE char *operands = NULL, *page = NULL;
	const struct verb_opt *o;
	size_t i;

	if (!v) {
		man_overview(out);
		return;
	}
	operands = verb_operands(v);
	page = help_page(v);
	man_head(out, page, v->summary);
	fprintf(out, ".B stet %s\n[\\fIOPTION\\fR...]\n", v->name);
	roff_s(out, operands);
	fputs("\n.SH DESCRIPTION\n", out);
	paragraphs(v->description, roff_paragraph, out);
	fputs(".SH OPTIONS\n", out);
	for (i = 0; (o = verb_opt_at(v, i)); i++) {
		AUTO_FREE char *head = option_head(o);

		fputs(".TP\n.B ", out);
		roff_s(out, head + strspn(head, " "));
		fputc('\n', out);
		roff_s(out, o->help);
		fputc('\n', out);
	}
	fputs(".SH SEE ALSO\n.BR stet (1)\n", out);
}

int print_help(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct help_res *res = result;

	(void)req;
	(void)e;
	if (res->man)
		help_man(c->out, res->verb);
	else
		help_text(c->out, res->verb);
	return 0;
}

int print_version(struct console *c, const void *req, const void *result, struct err *e)
{
	(void)req;
	(void)e;
	fprintf(c->out, "stet %s\n", ((const struct version_res *)result)->version);
	return 0;
}

int print_completion(struct console *c, const void *req, const void *result,
		     struct err *e)
{
	(void)req;
	(void)e;
	completion_script(c->out, ((const struct completion_res *)result)->shell);
	return 0;
}
