/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "verbs/verbs.def"
#undef VERB
	NULL,
};

static const char *const color_choices[] = { "auto", "always", "never", NULL };

/* Shared options, with the flag that a verb must have to take them (0: every verb). */
static const struct {
	unsigned flag;
	struct verb_opt opt;
} shared[] = {
	{ VERB_JSON,
	  { "json", 0, OPT_FLAG, NULL, "report as one JSON object",
	    offsetof(struct verb_common, json) } },
	{ VERB_JSON,
	  { "json-fd", 0, OPT_STRING, "N", "the same, written to descriptor N",
	    offsetof(struct verb_common, json_fd) } },
	{ VERB_JSON,
	  { "json-file", 0, OPT_STRING, "FILE",
	    "the same, written to FILE, whole or not at all",
	    offsetof(struct verb_common, json_file), NULL, ARG_PATH } },
	{ VERB_QUIET,
	  { "quiet", 'q', OPT_FLAG, NULL, "say nothing unless it fails",
	    offsetof(struct verb_common, quiet) } },
	{ VERB_COLOR,
	  { "color", 0, OPT_CHOICE, "WHEN", "colour: auto, always or never",
	    offsetof(struct verb_common, color), color_choices, ARG_CHOICE } },
	{ 0,
	  { "debug", 0, OPT_FLAG, NULL, "say each step on standard error",
	    offsetof(struct verb_common, debug) } },
	{ 0,
	  { "help", 'h', OPT_FLAG, NULL, "show this help",
	    offsetof(struct verb_common, help) } },
};

const struct verb_opt *verb_opt_at(const struct verb *v, size_t i)
{
	size_t k;

	for (k = 0; v->opts && v->opts[k].name; k++)
		if (i-- == 0)
			return &v->opts[k];
	for (k = 0; k < ARRAY_SIZE(shared); k++)
		if ((v->flags & shared[k].flag) == shared[k].flag && i-- == 0)
			return &shared[k].opt;
	return NULL;
}

const struct verb *verb_find(const char *name)
{
	size_t i;

	for (i = 0; verbs[i]; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

const struct verb *verb_at(int argc, char *const *argv, int *words)
{
	const struct verb *v = NULL;
	char name[64];

	*words = 2;
	if (argc > 1 &&
	    snprintf(name, sizeof(name), "%s %s", argv[0], argv[1]) < (int)sizeof(name))
		v = verb_find(name);
	if (v)
		return v;
	*words = 1;
	return argc > 0 ? verb_find(argv[0]) : NULL;
}

bool verb_is_in(const struct verb *v, const char *group)
{
	size_t len = strlen(group);

	return strncmp(v->name, group, len) == 0 && v->name[len] == ' ';
}

bool verb_is_group(const char *name)
{
	size_t i = 0;

	while (verbs[i] && !verb_is_in(verbs[i], name))
		i++;
	return verbs[i];
}

enum { NAME_MAX_LEN = 24 };

/* Insertions, deletions, replacements and swaps of neighbours that turn @a into @b. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
	size_t i, k;

	for (i = 0; i <= na; i++)
		d[i][0] = i;
	for (k = 0; k <= nb; k++)
		d[0][k] = k;
	for (i = 1; i <= na; i++) {
		for (k = 1; k <= nb; k++) {
			size_t best = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);

			if (d[i - 1][k] + 1 < best)
				best = d[i - 1][k] + 1;
			if (d[i][k - 1] + 1 < best)
				best = d[i][k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1] && d[i - 2][k - 2] + 1 < best)
				best = d[i - 2][k - 2] + 1;
			d[i][k] = best;
		}
	}
	return d[na][nb];
}

const struct verb *verb_nearest(const char *name)
{
	const struct verb *best = NULL;
	size_t least = 3, len = strlen(name), i;

	if (!len || len > NAME_MAX_LEN)
		return NULL;
	for (i = 0; verbs[i]; i++) {
		size_t n = strlen(verbs[i]->name), d;

		if (len >= 2 && strncmp(verbs[i]->name, name, len) == 0)
			return verbs[i];
		d = distance(name, len, verbs[i]->name, n);
		/* Of a short word nothing may be left if two letters differ. */
		if (d < least && d * 2 < n) {
			least = d;
			best = verbs[i];
		}
	}
	return best;
}
