/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "call/verb.h"
#include "cli/completion.h"

/*
 * Completion scripts. Everything that depends on the verbs is written out from the table;
 * the rest of each script is fixed text. Summaries and help hold no quotes that a shell
 * would mind; a test of the table sees to that.
 */

static void words(FILE *out, const char *const *v)
{
	size_t i;

	for (i = 0; v && v[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", v[i]);
}

static bool runs_command(const struct verb *v)
{
	return v->args && v->args[0].name && v->args[0].kind == ARG_COMMAND;
}

/* At once, or after "--". */
static bool takes_command(const struct verb *v)
{
	size_t i;

	for (i = 0; v->args && v->args[i].name; i++)
		if (v->args[i].kind == ARG_COMMAND)
			return true;
	return false;
}

/* Names of two words are completed one by one. */
static size_t first_len(const struct verb *v)
{
	return strcspn(v->name, " ");
}

static bool same_group(const struct verb *a, const struct verb *b)
{
	size_t n = first_len(a);

	return n == first_len(b) && strncmp(a->name, b->name, n) == 0;
}

/* Does number @i begin a group of names of two words? */
static bool new_group(size_t i)
{
	return verbs[i]->name[first_len(verbs[i])] &&
	       (i == 0 || !same_group(verbs[i], verbs[i - 1]));
}

static void first_words(FILE *out)
{
	size_t i;

	for (i = 0; verbs[i]; i++)
		if (new_group(i) || !verbs[i]->name[first_len(verbs[i])])
			fprintf(out, "%s%.*s", i ? " " : "", (int)first_len(verbs[i]),
				verbs[i]->name);
}

static void second_words(FILE *out, const struct verb *group)
{
	const char *between = "";
	size_t i;

	for (i = 0; verbs[i]; i++) {
		if (!same_group(verbs[i], group))
			continue;
		fprintf(out, "%s%s", between, verbs[i]->name + first_len(group) + 1);
		between = " ";
	}
}

static void bash_kind(FILE *out, enum arg_kind kind, const char *const *choices)
{
	switch (kind) {
	case ARG_TXN:
		fputs("_stet_words \"$(stet list --ids 2>/dev/null)\"", out);
		break;
	case ARG_PATH:
		fputs("_stet_files -f", out);
		break;
	case ARG_DIR:
		fputs("_stet_files -d", out);
		break;
	case ARG_ENV:
		fputs("_stet_words \"$(compgen -e)\"", out);
		break;
	case ARG_VERB:
		fputs("_stet_words \"$verbs\"", out);
		break;
	case ARG_CHOICE:
		fputs("_stet_words \"", out);
		words(out, choices);
		fputc('"', out);
		break;
	default:
		fputs(":", out);
	}
}

static void bash_verb(FILE *out, const struct verb *v)
{
	const struct verb_opt *o;
	size_t i;

	fprintf(out, "\t'%s')\n\t\tcase $prev in\n", v->name);
	for (i = 0; (o = verb_opt_at(v, i)); i++) {
		if (o->type == OPT_FLAG)
			continue;
		fprintf(out, "\t\t--%s", o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		fputs(") ", out);
		bash_kind(out, o->kind, o->choices);
		fputs("; return ;;\n", out);
	}
	fputs("\t\tesac\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_stet_words \"", out);
	for (i = 0; (o = verb_opt_at(v, i)); i++)
		fprintf(out, "%s--%s", i ? " " : "", o->name);
	fputs("\"\n\t\t\treturn\n\t\tfi\n", out);
	for (i = 0; v->args && v->args[i].name; i++) {
		if (v->args[i].kind == ARG_COMMAND)
			continue;
		fputs("\t\t", out);
		bash_kind(out, v->args[i].kind, v->args[i].choices);
		fputc('\n', out);
	}
	if (runs_command(v))
		fputs("\t\t_stet_words \"$(compgen -c -- \"$cur\")\"\n", out);
	fputs("\t\t;;\n", out);
}

static void bash(FILE *out)
{
	size_t i;

	fputs("# bash completion for stet\n"
	      "_stet_words() {\n"
	      "\tlocal w\n"
	      "\twhile IFS= read -r w; do COMPREPLY+=(\"$w\"); done "
	      "< <(compgen -W \"$1\" -- \"$cur\")\n"
	      "}\n"
	      "_stet_files() {\n"
	      "\tlocal w\n"
	      "\tcompopt -o filenames 2>/dev/null\n"
	      "\twhile IFS= read -r w; do COMPREPLY+=(\"$w\"); done "
	      "< <(compgen \"$1\" -- \"$cur\")\n"
	      "}\n"
	      "_stet() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal verb=${COMP_WORDS[1]} i verbs=\"",
	      out);
	first_words(out);
	fputs("\" runs=\":", out);
	for (i = 0; verbs[i]; i++)
		if (takes_command(verbs[i]))
			fprintf(out, "%s:", verbs[i]->name);
	fputs("\"\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [[ $cur == = ]]; then\n"
	      "\t\tcur=''\n"
	      "\telif [[ $prev == = ]]; then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "\tfi\n"
	      "\tif ((COMP_CWORD == 1)); then\n"
	      "\t\t_stet_words \"$verbs --help --version\"\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tcase $verb in\n",
	      out);
	for (i = 0; verbs[i]; i++) {
		if (!new_group(i))
			continue;
		fprintf(out,
			"\t%.*s)\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\t_stet_words \"",
			(int)first_len(verbs[i]), verbs[i]->name);
		second_words(out, verbs[i]);
		fputs("\"\n\t\t\treturn\n\t\tfi\n\t\tverb+=\" ${COMP_WORDS[2]}\"\n\t\t;;\n",
		      out);
	}
	fputs("\tesac\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\t[[ ${COMP_WORDS[i]} == -- ]] || continue\n"
	      "\t\tif [[ $runs == *\":$verb:\"* ]] && declare -F _command_offset >/dev/null; then\n"
	      "\t\t\t_command_offset $((i + 1))\n"
	      "\t\telse\n"
	      "\t\t\t_stet_files -f\n"
	      "\t\tfi\n"
	      "\t\treturn\n"
	      "\tdone\n"
	      "\tcase $verb in\n",
	      out);
	for (i = 0; verbs[i]; i++)
		bash_verb(out, verbs[i]);
	fputs("\tesac\n}\ncomplete -F _stet stet\n", out);
}

/* Brackets and colons mean something inside the arguments of _arguments. */
static void zsh_text(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (strchr("[]:\\", *s))
			fputc('\\', out);
		if (*s == '\'')
			fputs("'\\''", out);
		else
			fputc(*s, out);
	}
}

static void zsh_kind(FILE *out, enum arg_kind kind, const char *const *choices)
{
	switch (kind) {
	case ARG_TXN:
		fputs("_stet_txns", out);
		break;
	case ARG_PATH:
		fputs("_files", out);
		break;
	case ARG_DIR:
		fputs("_files -/", out);
		break;
	case ARG_ENV:
		fputs("_parameters -g \"*export*\"", out);
		break;
	case ARG_VERB:
		fputs("_stet_verbs", out);
		break;
	case ARG_CHOICE:
		fputc('(', out);
		words(out, choices);
		fputc(')', out);
		break;
	default:
		break;
	}
}

static void zsh_option(FILE *out, const struct verb_opt *o)
{
	const char *many = o->type == OPT_LIST ? "*" : "";

	if (o->letter)
		fprintf(out, " \\\n\t\t\t'%s-%c[", many, o->letter);
	for (int pass = o->letter ? 0 : 1; pass < 2; pass++) {
		if (pass == 1)
			fprintf(out, " \\\n\t\t\t'%s--%s%s[", many, o->name,
				o->type == OPT_FLAG ? "" : "=");
		zsh_text(out, o->help);
		fputc(']', out);
		if (o->type != OPT_FLAG) {
			fputc(':', out);
			zsh_text(out, o->arg);
			fputc(':', out);
			zsh_kind(out, o->kind, o->choices);
		}
		fputc('\'', out);
	}
}

static void zsh(FILE *out)
{
	const struct verb_opt *o;
	size_t i, k;

	fputs("#compdef stet\n"
	      "_stet_txns() {\n"
	      "\tlocal -a txns\n"
	      "\ttxns=(${(f)\"$(stet list --ids 2>/dev/null)\"})\n"
	      "\tcompadd -a txns\n"
	      "}\n"
	      "_stet_verbs() {\n"
	      "\tlocal -a verbs\n"
	      "\tverbs=(\n",
	      out);
	for (i = 0; verbs[i]; i++) {
		bool group = new_group(i);

		if (!group && verbs[i]->name[first_len(verbs[i])])
			continue;
		fprintf(out, "\t\t'%.*s:", (int)first_len(verbs[i]), verbs[i]->name);
		if (group)
			second_words(out, verbs[i]);
		else
			zsh_text(out, verbs[i]->summary);
		fputs("'\n", out);
	}
	fputs("\t)\n\t_describe verb verbs\n}\n"
	      "_stet() {\n"
	      "\tif ((CURRENT == 2)); then\n\t\t_stet_verbs\n\t\treturn\n\tfi\n"
	      "\tlocal verb=$words[2]\n"
	      "\tshift words\n\t((CURRENT--))\n"
	      "\tcase $verb in\n",
	      out);
	for (i = 0; verbs[i]; i++) {
		if (!new_group(i))
			continue;
		fprintf(out, "\t%.*s)\n\t\tif ((CURRENT == 2)); then\n\t\t\tcompadd ",
			(int)first_len(verbs[i]), verbs[i]->name);
		second_words(out, verbs[i]);
		fputs("\n\t\t\treturn\n\t\tfi\n\t\tverb+=\" $words[2]\"\n"
		      "\t\tshift words\n\t\t((CURRENT--))\n\t\t;;\n",
		      out);
	}
	fputs("\tesac\n\tcase $verb in\n", out);
	for (i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];

		fprintf(out, "\t'%s')\n\t\t_arguments -s -S", v->name);
		for (k = 0; (o = verb_opt_at(v, k)); k++)
			zsh_option(out, o);
		for (k = 0; v->args && v->args[k].name; k++) {
			const struct verb_arg *a = &v->args[k];

			if (a->kind == ARG_COMMAND) {
				fputs(" \\\n\t\t\t'*::command:_normal'", out);
				continue;
			}
			fprintf(out, " \\\n\t\t\t'%s:%s:", a->many ? "*" : "", a->name);
			zsh_kind(out, a->kind, a->choices);
			fputc('\'', out);
		}
		fputs("\n\t\t;;\n", out);
	}
	fputs("\tesac\n}\n"
	      "if [[ $funcstack[1] == _stet ]]; then _stet \"$@\"; else compdef _stet stet; fi\n",
	      out);
}

static void fish_text(FILE *out, const char *s)
{
	fputc('\'', out);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputc('\'', out);
}

static void fish_kind(FILE *out, enum arg_kind kind, const char *const *choices)
{
	switch (kind) {
	case ARG_TXN:
		fputs(" -f -a '(stet list --ids 2>/dev/null)'", out);
		break;
	case ARG_PATH:
		fputs(" -F", out);
		break;
	case ARG_DIR:
		fputs(" -f -a '(__fish_complete_directories)'", out);
		break;
	case ARG_ENV:
		fputs(" -f -a '(set -xn)'", out);
		break;
	case ARG_VERB:
		fputs(" -f -a '", out);
		first_words(out);
		fputc('\'', out);
		break;
	case ARG_CHOICE:
		fputs(" -f -a '", out);
		words(out, choices);
		fputc('\'', out);
		break;
	case ARG_COMMAND:
		fputs(" -a '(__fish_complete_subcommand --fcs-skip=2)'", out);
		break;
	default:
		fputs(" -f", out);
	}
}

/* The condition that only the first word of a name is there. */
static void fish_first(FILE *out, const struct verb *v)
{
	fprintf(out,
		" -n '__fish_seen_subcommand_from %.*s; and not __fish_seen_subcommand_from ",
		(int)first_len(v), v->name);
	second_words(out, v);
	fputc('\'', out);
}

/* The condition that the verb is there. */
static void fish_seen(FILE *out, const struct verb *v)
{
	const char *second = v->name + first_len(v);

	fprintf(out, " -n '__fish_seen_subcommand_from %.*s", (int)first_len(v), v->name);
	if (*second)
		fprintf(out, "; and __fish_seen_subcommand_from %s", second + 1);
	fputc('\'', out);
}

static void fish(FILE *out)
{
	const struct verb_opt *o;
	size_t i, k;

	fputs("# fish completion for stet\ncomplete -c stet -f\n", out);
	for (i = 0; verbs[i]; i++) {
		const char *second = verbs[i]->name + first_len(verbs[i]);

		if (!*second || new_group(i)) {
			fprintf(out,
				"complete -c stet -n __fish_use_subcommand -a %.*s -d ",
				(int)first_len(verbs[i]), verbs[i]->name);
			fish_text(out, verbs[i]->summary);
			fputc('\n', out);
		}
		if (*second) {
			fputs("complete -c stet", out);
			fish_first(out, verbs[i]);
			fprintf(out, " -a %s -d ", second + 1);
			fish_text(out, verbs[i]->summary);
			fputc('\n', out);
		}
	}
	for (i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];

		for (k = 0; (o = verb_opt_at(v, k)); k++) {
			fputs("complete -c stet", out);
			fish_seen(out, v);
			fprintf(out, " -l %s", o->name);
			if (o->letter)
				fprintf(out, " -s %c", o->letter);
			if (o->type != OPT_FLAG) {
				fputs(" -r", out);
				fish_kind(out, o->kind, o->choices);
			}
			fputs(" -d ", out);
			fish_text(out, o->help);
			fputc('\n', out);
		}
		for (k = 0; v->args && v->args[k].name; k++) {
			fputs("complete -c stet", out);
			fish_seen(out, v);
			fish_kind(out, v->args[k].kind, v->args[k].choices);
			fputc('\n', out);
		}
	}
}

void completion_script(FILE *out, const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		bash(out);
	else if (strcmp(shell, "zsh") == 0)
		zsh(out);
	else
		fish(out);
}
