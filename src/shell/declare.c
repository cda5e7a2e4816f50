/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments, declarations and arithmetic, which set variables. */
#include "shell/declare.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "shell/builtin.h"
#include "shell/tree.h"
#include "shell/walk.h"
#include "shell/word.h"

static const struct word unknown = { "", WORD_OPEN, NULL };

/*
 * An assignment. All assignments of a command are evaluated before the first is carried
 * out.
 */
struct setting {
	const char *name;
	size_t len;
	struct word value;
	bool more; /* X+=y */
};

static size_t name_length(const char *s, size_t len)
{
	size_t n = 0;

	if (len && isdigit((unsigned char)*s))
		return 0;
	while (n < len && (isalnum((unsigned char)s[n]) || s[n] == '_'))
		n++;
	return n;
}

void walk_subscripts(struct shell *sh, const char *text)
{
	struct done done = { 0 };

	if (strstr(text, "$(") || strchr(text, '`') || strstr(text, "${"))
		shell_eval(sh, arena_printf(sh->ctx->arena, ": \"%s\"", text), NULL,
			   &done);
}

/* a[$(…)]: arithmetic in which the variable is used would run the command. */
void walk_value(struct shell *sh, const struct word *w)
{
	const char *p = strchr(w->s, '[');

	if (p && p != w->s && (isalnum((unsigned char)p[-1]) || p[-1] == '_') &&
	    (strstr(p, "$(") || strchr(p, '`')))
		walk_subscripts(sh, w->s);
}

static void apply(struct shell *sh, const struct setting *a)
{
	const struct word *old = shell_get(sh, a->name, a->len);
	struct word value = a->value;

	walk_value(sh, &value);
	if (a->more && old && !(old->flags & WORD_OPEN) && !(value.flags & WORD_OPEN))
		value.s = arena_printf(sh->ctx->arena, "%s%s", old->s, value.s);
	else if (a->more)
		value.flags |= WORD_OPEN;
	shell_set(sh, a->name, a->len, value);
}

/* Does the value begin with the variable's old value, as in PATH=$PATH:x? */
static bool begins_itself(const struct setting *a, const char *value, size_t len)
{
	size_t n = len && *value == '"';

	if (n + 1 < len && value[n] == '$')
		n += 1 + (value[n + 1] == '{');
	else
		return false;
	return len - n >= a->len && memcmp(value + n, a->name, a->len) == 0 &&
	       (n + a->len == len || !isalnum((unsigned char)value[n + a->len]));
}

static struct setting evaluate(struct shell *sh, TSNode n)
{
	TSNode name = ts_node_named_child(n, 0);
	size_t from = ts_node_start_byte(name), to = ts_node_end_byte(name);
	size_t at = to, end = ts_node_end_byte(n);
	struct setting out = { .name = sh->src + from, .len = to - from };
	struct done done = { 0 };

	if (sh->src[at] == '+') {
		out.more = true;
		at++;
	}
	at += sh->src[at] == '=';
	if (!node_is(name, "variable_name") || (at < end && sh->src[at] == '(')) {
		shell_children(sh, n, NULL, &done);
		out.value = unknown;
		out.len = strcspn(out.name, "[=+");
	} else {
		out.value = word_value(sh, at, end);
		if (begins_itself(&out, sh->src + at, end - at))
			out.value.flags |= WORD_ITSELF;
	}
	return out;
}

void walk_assignment(struct shell *sh, TSNode n)
{
	struct setting a = evaluate(sh, n);

	apply(sh, &a);
}

/* The kind of a declaration and the attributes that it gives. */
struct declaration {
	bool unset, local, reference, odd, fixed, functions, variables, exported, global;
};

static struct declaration declaration_of(const struct shell *sh, const char *name)
{
	struct declaration d = { .unset = strncmp(name, "unset", 5) == 0,
				 .fixed = strcmp(name, "readonly") == 0,
				 .exported = strcmp(name, "export") == 0 };

	d.local = strcmp(name, "local") == 0 ||
		  (sh->calls && !d.unset && !d.fixed && !d.exported);
	return d;
}

static void take_flags(struct declaration *d, const char *word)
{
	const char *p;

	for (p = word + 1; *p; p++) {
		d->functions |= *p == 'f';
		d->variables |= *p == 'v';
		if (d->unset || word[0] == '+')
			continue;
		d->global |= *p == 'g';
		d->odd |= strchr("iulcaA", *p) != NULL;
		/*
		 * Only for declare does -n make a reference. For the others, to take the
		 * value as unknown is safe.
		 */
		d->reference |= *p == 'n' && !d->exported && !d->fixed;
		d->fixed |= *p == 'r';
		d->exported |= *p == 'x';
	}
}

static void drop_function(struct shell *sh, const char *name, size_t len)
{
	struct func *f = arena_take(sh->ctx->arena, sizeof(*f));

	f->name = arena_str(sh->ctx->arena, name, len);
	f->gone = true;
	f->next = sh->funcs;
	sh->funcs = f;
}

/* Carries out a declaration without a value. */
static void declare_name(struct shell *sh, const struct declaration *d, const char *name,
			 size_t len)
{
	if (d->unset) {
		if (!d->variables)
			drop_function(sh, name, len);
		if (!d->functions && len == 3 && memcmp(name, "IFS", 3) == 0)
			shell_set(sh, name, len, (struct word){ " \t\n", 0, NULL });
		else if (!d->functions)
			shell_set_again(sh, name, len, unknown);
		return;
	}
	if (d->functions) {
		/* Another shell may call an exported function, with any arguments. */
		struct word word = { arena_str(sh->ctx->arena, name, len), 0, NULL };
		struct cmd c = { .words = &word, .n = 1, .more = true };
		struct done done = { 0 };

		if (d->exported)
			run_function(sh, &c, &done);
		return;
	}
	if (d->odd)
		shell_set_odd(sh, name, len);
	else if (d->fixed)
		shell_set_fixed(sh, name, len);
	else if (d->local && !d->global)
		shell_set(sh, name, len, unknown);
}

static void keep_local(struct shell *sh, const char *name, size_t len)
{
	struct names *n = arena_take(sh->ctx->arena, sizeof(*n));

	n->name = arena_str(sh->ctx->arena, name, len);
	n->next = sh->local;
	sh->local = n;
}

/*
 * Carries out a declaration for a word that the grammar does not parse as one, such as
 * "A=$b".
 */
static void declare_word(struct shell *sh, struct declaration *d, const struct word *w)
{
	size_t len = name_length(w->s, strlen(w->s));
	bool more = w->s[len] == '+' && w->s[len + 1] == '=';
	struct setting a = { w->s, len, *w, more };

	walk_subscripts(sh, w->s);
	if (w->s[0] == '-' || w->s[0] == '+') {
		take_flags(d, w->s);
		return;
	}
	if (!len || (w->flags & WORD_OPEN && !w->s[len])) {
		/* The word may name any variable. */
		sh->opaque |= (w->flags & WORD_OPEN) != 0;
		return;
	}
	if (d->local && !d->global)
		keep_local(sh, w->s, len);
	if (w->s[len + more] == '=') {
		a.value.s = w->s + len + more + 1;
		apply(sh, &a);
		if (d->odd || d->fixed)
			declare_name(sh, d, w->s, len);
	} else if (w->s[len]) {
		shell_set(sh, w->s, len, unknown);
	} else {
		declare_name(sh, d, w->s, len);
	}
}

void walk_declaration(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct setting *all = arena_take(sh->ctx->arena, (count + 1) * sizeof(*all));
	struct word *words = arena_take(sh->ctx->arena, (count + 1) * sizeof(*words));
	size_t from = ts_node_start_byte(n);
	struct declaration d;

	d = declaration_of(
		sh, arena_str(sh->ctx->arena, sh->src + from,
			      name_length(sh->src + from, ts_node_end_byte(n) - from)));
	/*
	 * All words are evaluated before any is carried out: in declare A=1 B=$A, B gets
	 * the old A.
	 */
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (node_is(c, "variable_assignment"))
			all[i] = evaluate(sh, c);
		else
			words[i] = word_value(sh, ts_node_start_byte(c),
					      ts_node_end_byte(c));
	}
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (!node_is(c, "variable_assignment")) {
			declare_word(sh, &d, &words[i]);
			continue;
		}
		if (d.local && !d.global)
			keep_local(sh, all[i].name, all[i].len);
		apply(sh, &all[i]);
		if (d.odd || d.fixed)
			declare_name(sh, &d, all[i].name, all[i].len);
	}
	sh->opaque |= d.reference;
}

bool run_declaration(struct shell *sh, const struct cmd *c)
{
	static const char *const names[] = { "declare", "typeset",  "export",
					     "local",	"readonly", "unset" };
	struct declaration d;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], c->words[0].s) == 0)
			break;
	if (i == ARRAY_SIZE(names))
		return false;
	d = declaration_of(sh, c->words[0].s);
	for (i = 1; i < c->n; i++)
		declare_word(sh, &d, &c->words[i]);
	sh->opaque |= d.reference || c->more;
	return true;
}

void walk_arithmetic(struct shell *sh, const char *text, size_t len)
{
	size_t i, n;
	bool sets = false;

	for (i = 0; i + 1 < len; i++)
		sets |= (text[i] == '=' && text[i + 1] != '=' &&
			 !(i && strchr("=!<>", text[i - 1]))) ||
			(text[i] == '<' && text[i + 1] == '<') ||
			(text[i] == '>' && text[i + 1] == '>') ||
			((text[i] == '+' || text[i] == '-') && text[i + 1] == text[i]);
	for (i = 0; sets && i < len; i += n ? n : 1) {
		n = name_length(text + i, len - i);
		if (n)
			shell_set(sh, text + i, n, unknown);
	}
}
