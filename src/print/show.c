/* SPDX-License-Identifier: Apache-2.0 */
#include "print/show.h"

#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/term.h"

/* What is left of @path below @dir: "" if they are equal, NULL if it is not below. */
static const char *below(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (n == 1) /* "/" */
		return path + 1;
	if (strncmp(dir, path, n) != 0)
		return NULL;
	if (path[n] == '/')
		return path + n + 1;
	return path[n] ? NULL : "";
}

void show_path(struct buf *b, const struct console *c, const char *workspace,
	       const char *path)
{
	const char *home = op_ctx_env(c->ctx, "HOME");
	AUTO_BUF struct buf text = BUF_INIT;
	const char *rest;

	rest = workspace ? below(workspace, path) : NULL;
	if (rest) {
		/* A name that could be taken for one in the home directory. */
		if (*rest == '~')
			buf_adds(&text, "./");
		buf_adds(&text, *rest ? rest : ".");
	} else {
		rest = home && home[0] == '/' && home[1] ? below(home, path) : NULL;
		if (rest)
			buf_addf(&text, *rest ? "~/%s" : "~", rest);
		else
			buf_adds(&text, path);
	}
	text_quote(b, buf_str(&text), text.len);
}

void show_argv(struct buf *b, char *const *argv)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";
	size_t i;

	for (i = 0; argv && argv[i]; i++) {
		const char *s = argv[i];
		size_t n = strlen(s);

		if (i)
			buf_addc(b, ' ');
		if (n && strspn(s, plain) == n) {
			buf_add(b, s, n);
			continue;
		}
		buf_addc(b, '\'');
		for (; *s; s++) {
			n = strcspn(s, "'");
			text_escape(b, s, n);
			s += n;
			if (!*s)
				break;
			buf_adds(b, "'\\''");
		}
		buf_addc(b, '\'');
	}
}

void show_typed(struct buf *b, struct console *c, const char *path)
{
	AUTO_BUF struct buf text = BUF_INIT, safe = BUF_INIT;
	const char *cwd, *rest = NULL;
	struct err ignored;
	char *word[2];

	if (op_ctx_cwd(c->ctx, &cwd, &ignored) == 0)
		rest = below(cwd, path);
	/* A name that could be taken for an option or, as the first operand, for a number. */
	if (rest && (*rest == '-' || *rest == '~' || strspn(rest, "t0123456789")))
		buf_adds(&text, "./");
	buf_adds(&text, !rest ? path : *rest ? rest : ".");
	text_quote(&safe, buf_str(&text), text.len);
	if (safe.data[0] != '"') {
		word[0] = text.data;
		word[1] = NULL;
		show_argv(b, word);
		return;
	}
	/* bash, zsh and ksh read the escapes in this form. */
	buf_adds(b, "$'");
	for (size_t i = 1; i + 1 < safe.len; i++) {
		if (safe.data[i] == '\'')
			buf_addc(b, '\\');
		buf_addc(b, safe.data[i]);
	}
	buf_addc(b, '\'');
}

void show_totals(struct buf *b, const struct change_totals *t)
{
	const struct {
		uint64_t n;
		const char *what;
	} parts[] = { { t->added, "added" },
		      { t->modified, "changed" },
		      { t->deleted, "deleted" } };
	size_t i, k = 0;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].n)
			buf_addf(b, "%s%llu %s", k++ ? ", " : "",
				 (unsigned long long)parts[i].n, parts[i].what);
	if (!k)
		buf_adds(b, "nothing changed");
	if (t->bytes) {
		buf_adds(b, " (");
		text_size(b, t->bytes);
		buf_addc(b, ')');
	}
}

void show_duration(struct buf *b, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 1000000)
		buf_addf(b, "%lld ms", (long long)((us + 500) / 1000));
	else if (s < 60)
		buf_addf(b, "%lld.%lld s", (long long)s, (long long)(us / 100000 % 10));
	else if (s < 3600)
		buf_addf(b, "%lld min %lld s", (long long)(s / 60), (long long)(s % 60));
	else
		buf_addf(b, "%lld h %lld min", (long long)(s / 3600),
			 (long long)(s / 60 % 60));
}

void show_end(struct buf *b, const struct txn_record *r)
{
	const char *reason = r->reason ? r->reason : "";
	const char *sig = NULL;

	if (r->exit_status < 0) {
		buf_adds(b, "not known");
	} else if (strcmp(reason, "timeout") == 0) {
		buf_adds(b, "time limit");
	} else if (strcmp(reason, "signal") == 0) {
		sig = sigabbrev_np(r->exit_status - 128);
		buf_addf(b, "ended by signal %d%s%s%s", r->exit_status - 128,
			 sig ? " (SIG" : "", sig ? sig : "", sig ? ")" : "");
	} else {
		buf_addf(b, "exit status %d", r->exit_status);
	}
}

bool show_effects(struct buf *b, const struct console *c, const struct txn_record *r)
{
	size_t i;

	for (i = 0; i < r->neffects; i++) {
		const char *what = r->effects[i].what;

		if (i)
			buf_adds(b, ", ");
		if (*what == '/') {
			text_escape(b, r->effects[i].kind, strlen(r->effects[i].kind));
			buf_addc(b, ' ');
			show_path(b, c, NULL, what);
		} else {
			text_escape(b, what, strlen(what));
		}
	}
	return r->neffects > 0;
}

static const char *letter_color(char letter)
{
	switch (letter) {
	case 'A':
		return "32";
	case 'D':
		return "31";
	case 'M':
		return "33";
	default:
		return "36";
	}
}

void show_change(struct buf *b, const struct console *c, const char *workspace,
		 char letter, const char *path, const char *from, bool dir,
		 uint64_t files, const char *note)
{
	buf_adds(b, "  ");
	show_color(b, c, letter_color(letter));
	buf_addc(b, letter);
	show_color(b, c, NULL);
	buf_addc(b, ' ');
	if (from) {
		show_path(b, c, workspace, from);
		buf_adds(b, " -> ");
	}
	show_path(b, c, workspace, path);
	if (dir)
		buf_addc(b, '/');
	if (files)
		buf_addf(b, "  (%llu file%s)", (unsigned long long)files,
			 files == 1 ? "" : "s");
	if (note && *note)
		buf_addf(b, "  (%s)", note);
	buf_addc(b, '\n');
}

void show_color(struct buf *b, const struct console *c, const char *sgr)
{
	if (c->color)
		buf_addf(b, "\033[%sm", sgr ? sgr : "");
}

void show_flush(struct console *c, struct buf *b)
{
	if (b->len)
		fwrite(b->data, 1, b->len, c->out);
	buf_reset(b);
}

size_t show_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void cut(struct buf *b, size_t from, size_t columns)
{
	size_t i, n = 0;

	for (i = from; i < b->len; i++) {
		n += ((unsigned char)b->data[i] & 0xc0) != 0x80;
		if (n == columns && show_width(b->data + i) > 1) {
			buf_truncate(b, i);
			buf_adds(b, "…");
			return;
		}
	}
}

void show_table(struct console *c, struct buf *cells, size_t rows, size_t columns)
{
	AUTO_FREE size_t *wide = xcalloc(columns, sizeof(*wide));
	int edge = c->tty ? term_width(fileno(c->out)) : 0;
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i, k;

	for (i = 0; i < rows * columns; i++)
		if (show_width(buf_str(&cells[i])) > wide[i % columns])
			wide[i % columns] = show_width(buf_str(&cells[i]));
	for (i = 0; i < rows; i++) {
		size_t from = b.len;

		for (k = 0; k < columns; k++) {
			struct buf *cell = &cells[i * columns + k];
			size_t w = show_width(buf_str(cell));

			buf_adds(&b, buf_str(cell));
			if (k + 1 < columns)
				buf_addf(&b, "%*s", (int)(wide[k] - w + 2), "");
			buf_free(cell);
		}
		while (b.data[b.len - 1] == ' ')
			buf_truncate(&b, b.len - 1);
		if (edge > 0)
			cut(&b, from, (size_t)edge);
		buf_addc(&b, '\n');
	}
	show_flush(c, &b);
}

enum { NOTES_SHOWN = 20 };

void show_notes(struct buf *b, const struct console *c, const char *workspace,
		const struct path_notes *n)
{
	size_t i, shown = n->n < NOTES_SHOWN ? n->n : NOTES_SHOWN, wide = 0, at;
	uint64_t more = n->n - shown + n->more;

	for (i = 0; i < shown; i++) {
		AUTO_BUF struct buf name = BUF_INIT;

		show_path(&name, c, workspace, n->v[i].path);
		wide = name.len > wide && name.len <= 40 ? name.len : wide;
	}
	for (i = 0; i < shown; i++) {
		buf_adds(b, "  ");
		at = b->len;
		show_path(b, c, workspace, n->v[i].path);
		buf_addf(b, "%*s",
			 b->len - at < wide ? (int)(wide - (b->len - at) + 2) : 2, "");
		text_escape(b, n->v[i].what, strlen(n->v[i].what));
		if (n->v[i].by)
			buf_addf(b, ", by t%lld", (long long)n->v[i].by);
		buf_addc(b, '\n');
	}
	if (more)
		buf_addf(b, "  … and %llu more\n", (unsigned long long)more);
}
