/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/check.h"

#include <fnmatch.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "policy/line.h"
#include "policy/tests.h"

struct checker {
	const struct policy *p;
	const struct doc *d;
	size_t at;
	const char *name;
	const struct conf_lines *lines;
	uint32_t line;
	struct err *e;
};

static int refuse(struct checker *c, const char *what, const char *detail)
{
	return err_set(c->e, ERR_USAGE, "%s:%u: %s%s%s", c->name, c->line, what,
		       detail ? ": " : "", detail ? detail : "");
}

static bool class_known(const struct checker *c, const char *name)
{
	size_t i;
	uint32_t k;

	for (i = 0; i <= c->at; i++)
		for (k = 0; k < c->p->docs[i]->classes_count; k++)
			if (strcmp(c->p->docs[i]->classes[k].name, name) == 0)
				return true;
	return false;
}

static int check_specs(struct checker *c, const char *const *specs, uint32_t n)
{
	static const char *const begins[] = { "~", "$HOME", "$WORKSPACE", "$TMP",
					      "$GIT" };
	uint32_t i;
	size_t k;

	for (i = 0; i < n; i++) {
		const char *s = specs[i];
		bool good = s[0] == '/';

		if (s[0] == '@') {
			if (!class_known(c, s + 1))
				return refuse(c, "no such class of paths", s);
			continue;
		}
		for (k = 0; k < ARRAY_SIZE(begins); k++) {
			size_t len = strlen(begins[k]);

			good |= strncmp(s, begins[k], len) == 0 &&
				(!s[len] || s[len] == '/');
		}
		if (!good)
			return refuse(
				c,
				"a path begins with /, ~, $HOME, $WORKSPACE, $TMP, $GIT "
				"or @class",
				s);
		if (strstr(s, "/../") || strstr(s, "/./") || strstr(s, "//"))
			return refuse(c, "a path with ., .. or // in it", s);
	}
	return 0;
}

static int check_paths(struct checker *c, const struct doc_paths *p)
{
	if (!p)
		return 0;
	if (!p->within_count && !p->outside_count && !p->is_count && !p->above_count)
		return refuse(c, "paths without within, outside, is or above", NULL);
	if (check_specs(c, p->within, p->within_count) < 0 ||
	    check_specs(c, p->outside, p->outside_count) < 0 ||
	    check_specs(c, p->is, p->is_count) < 0 ||
	    check_specs(c, p->above, p->above_count) < 0)
		return -1;
	return 0;
}

static int check_options(struct checker *c, const char *const *options, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const char *p = options[i];

		if (!*p)
			return refuse(c, "an empty option", NULL);
		while (*p) {
			size_t len = strcspn(p, "|");

			if (!len || (p[0] != '-' && !memchr(p, '=', len)))
				return refuse(c, "not an option", options[i]);
			p += len;
			if (*p && !*++p)
				return refuse(c, "not an option", options[i]);
		}
	}
	return 0;
}

static int check_match(struct checker *c, const struct doc_match *m)
{
	if (!m)
		return 0;
	if (check_options(c, m->options, m->options_count) < 0 ||
	    check_paths(c, m->paths) < 0 || check_paths(c, m->writes) < 0)
		return -1;
	return 0;
}

static int check_id(struct checker *c, const char *id)
{
	struct policy_rule r;
	size_t i, seen = 0;

	if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != strlen(id) ||
	    strcmp(id, "default") == 0)
		return refuse(c, "an id has small letters, digits, '.', '-' and '_'", id);
	for (i = 0; policy_rule_at(c->p, i, &r); i++)
		seen += strcmp(r.id, id) == 0;
	if (seen > 1)
		return refuse(c, "this id is taken", id);
	return 0;
}

static int check_rule(struct checker *c, uint32_t i)
{
	const struct doc_rule *r = &c->d->rules[i];
	const struct doc_match *m = &r->match;

	c->line = conf_item_line(c->lines, "rules", i);
	if (check_id(c, r->id) < 0)
		return -1;
	if (!m->program_count && !m->writes && !m->exe && !m->paths)
		return refuse(c, "no program, paths, writes or exe to match", r->id);
	if (m->writes && (m->program_count || m->paths || m->options_count ||
			  m->operands_count || m->command_count))
		return refuse(c, "writes stands alone", r->id);
	if (c->p->origins[c->at] == CONF_PROJECT && r->verdict == VERDICT_ALLOW)
		return refuse(c, "a project may not allow", r->id);
	if (check_match(c, m) < 0 || check_match(c, r->unless) < 0)
		return -1;
	return 0;
}

static int check_diff(struct checker *c, uint32_t i)
{
	const struct doc_diff *r = &c->d->diff[i];

	c->line = conf_item_line(c->lines, "diff", i);
	if (check_id(c, r->id) < 0)
		return -1;
	if (!r->what && !r->paths)
		return refuse(c, "neither what nor paths", r->id);
	if (c->p->origins[c->at] == CONF_PROJECT && r->verdict == VERDICT_ALLOW)
		return refuse(c, "a project may not allow", r->id);
	return check_paths(c, r->paths);
}

static int check_limits(struct checker *c, const struct doc_limits *l)
{
	const char *sizes[] = { l->memory, l->disk, l->file, l->output };
	const char *times[] = { l->wall, l->cpu };
	uint64_t size;
	int64_t ms;
	size_t i;

	c->line = conf_line(c->lines, "limits");
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i] && (text_parse_size(sizes[i], &size) < 0 || !size))
			return refuse(c, "not a size such as 64k, 10M or 2G", sizes[i]);
	for (i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i] && (text_parse_duration(times[i], &ms) < 0 || !ms))
			return refuse(c, "not a time such as 90s, 5m or 2h", times[i]);
	if (l->pids < 0)
		return refuse(c, "pids is not a number from 1 on", NULL);
	if (l->files < 0)
		return refuse(c, "files is not a number from 1 on", NULL);
	return 0;
}

static int check_classes(struct checker *c)
{
	uint32_t i;
	size_t d, k;

	c->line = conf_line(c->lines, "classes");
	for (i = 0; i < c->d->classes_count; i++) {
		const struct doc_class *cl = &c->d->classes[i];

		for (d = 0; d < c->at; d++)
			for (k = 0; k < c->p->docs[d]->classes_count; k++)
				if (c->p->origins[c->at] == CONF_PROJECT &&
				    strcmp(c->p->docs[d]->classes[k].name, cl->name) == 0)
					return refuse(
						c, "a project may not redefine a class",
						cl->name);
		if (check_specs(c, cl->paths, cl->paths_count) < 0)
			return -1;
	}
	return 0;
}

static int check_project(struct checker *c)
{
	static const char why[] = "a project may only tighten";

	if (c->d->off_count) {
		c->line = conf_line(c->lines, "off");
		return refuse(c, why, "off");
	}
	if (c->d->variables_count) {
		c->line = conf_line(c->lines, "variables");
		return refuse(c, why, "variables");
	}
	if (c->d->tools_count) {
		c->line = conf_line(c->lines, "tools");
		return refuse(c, why, "tools");
	}
	return 0;
}

static int check_off(struct checker *c)
{
	struct policy_rule r;
	uint32_t i;
	size_t k;

	c->line = conf_line(c->lines, "off");
	for (i = 0; i < c->d->off_count; i++) {
		for (k = 0; policy_rule_at(c->p, k, &r); k++)
			if (fnmatch(c->d->off[i], r.id, 0) == 0)
				break;
		if (!policy_rule_at(c->p, k, &r))
			return refuse(c, "no such rule", c->d->off[i]);
	}
	return 0;
}

int check_layer(const struct policy *p, size_t at, const char *name,
		const struct conf_lines *lines, struct err *e)
{
	struct checker c = { p, p->docs[at], at, name, lines, 1, e };
	uint32_t i;

	c.line = conf_line(lines, "version");
	if (c.d->version != DOC_VERSION)
		return refuse(&c, "this version of the format is not known; it is 1",
			      NULL);
	if (p->origins[at] == CONF_PROJECT && check_project(&c) < 0)
		return -1;
	if (check_classes(&c) < 0 || check_off(&c) < 0 ||
	    (c.d->limits && check_limits(&c, c.d->limits) < 0))
		return -1;
	for (i = 0; i < c.d->rules_count; i++)
		if (check_rule(&c, i) < 0)
			return -1;
	for (i = 0; i < c.d->diff_count; i++)
		if (check_diff(&c, i) < 0)
			return -1;
	return 0;
}

static void complain(void *arg, const struct policy_test *t)
{
	struct checker *c = arg;
	AUTO_BUF struct buf text = BUF_INIT;

	if (t->passed || c->e->kind)
		return;
	c->line = conf_item_line(c->lines, "rules", t->index);
	text_escape(&text, t->text, strlen(t->text));
	err_set(c->e, ERR_USAGE, "%s:%u: rule %s: %s'%s' is %s%s%s", c->name, c->line,
		t->rule, t->is_hint ? "its own hint " : "its test ", buf_str(&text),
		verdict_name(t->got.kind), t->got.rule ? " by " : "",
		t->got.rule ? t->got.rule : "");
}

int check_tests(const struct policy *p, size_t at, const char *name,
		const struct conf_lines *lines, struct err *e)
{
	struct checker c = { p, p->docs[at], at, name, lines, 1, e };

	memset(e, 0, sizeof(*e));
	return tests_run_layer(p, at, complain, &c) ? -1 : 0;
}
