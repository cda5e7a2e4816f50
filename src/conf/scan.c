/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "conf/schema.h"

enum { DEPTH_MAX = 12 };

struct frame {
	bool mapping;
	bool value; /* the next node in the mapping is a value, not a key */
};

struct state {
	const char *name;
	struct scan *out;
	struct conf_key *top; /* the last key of the document itself */
	struct frame stack[DEPTH_MAX];
	size_t depth;
	size_t documents, keys_cap;
};

static int refuse(const struct state *s, const yaml_mark_t *at, const char *why,
		  struct err *e)
{
	return err_set(e, ERR_USAGE, "%s:%zu: %s", s->name, at->line + 1, why);
}

static void note_key(struct state *s, const char *name, size_t line)
{
	struct scan *out = s->out;

	if (out->keys_count == s->keys_cap) {
		s->keys_cap = s->keys_cap ? 2 * s->keys_cap : 64;
		out->keys = xrealloc(out->keys, s->keys_cap * sizeof(*out->keys));
	}
	out->keys[out->keys_count].name = xstrdup(name);
	out->keys[out->keys_count++].line = (uint32_t)line;
}

/* A key of the document itself; NULL: the key is no scalar. */
static void note_top(struct state *s, const char *name, size_t line)
{
	struct conf_lines *l = &s->out->lines;

	s->top = NULL;
	if (!name || l->keys_count == ARRAY_SIZE(l->keys))
		return;
	s->top = &l->keys[l->keys_count++];
	snprintf(s->top->name, sizeof(s->top->name), "%s", name);
	s->top->line = (uint32_t)line;
}

/* An element of the list under such a key. */
static void note_item(struct state *s, size_t line)
{
	struct conf_key *k = s->top;

	if (!k)
		return;
	/* The array is full whenever the number of elements is a power of two. */
	if ((k->items_count & (k->items_count - 1)) == 0)
		k->items = xrealloc(k->items, (k->items_count ? 2 * k->items_count : 1) *
						      sizeof(*k->items));
	k->items[k->items_count++] = (uint32_t)line;
}

/* A node begins. Its place in the document tells whether it is a key, a value or an element. */
static void place_node(struct state *s, const yaml_event_t *ev)
{
	struct frame *f = s->depth ? &s->stack[s->depth - 1] : NULL;
	size_t line = ev->start_mark.line + 1;

	if (!f)
		return;
	if (f->mapping && !f->value) {
		const char *name = ev->type == YAML_SCALAR_EVENT
					   ? (const char *)ev->data.scalar.value
					   : NULL;

		if (name)
			note_key(s, name, line);
		if (s->depth == 1)
			note_top(s, name, line);
	} else if (s->depth == 2 && !f->mapping && s->stack[0].mapping) {
		note_item(s, line);
	}
	if (f->mapping)
		f->value = !f->value;
}

static int take_event(struct state *s, const yaml_event_t *ev, struct err *e)
{
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return refuse(s, &ev->start_mark,
			      "aliases are not allowed; use a class of paths", e);
	case YAML_DOCUMENT_START_EVENT:
		if (++s->documents > 1)
			return refuse(s, &ev->start_mark, "a second document", e);
		return 0;
	case YAML_SCALAR_EVENT:
		if (memchr(ev->data.scalar.value, 0, ev->data.scalar.length))
			return refuse(s, &ev->start_mark, "a NUL character", e);
		place_node(s, ev);
		return 0;
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		place_node(s, ev);
		if (s->depth == DEPTH_MAX)
			return refuse(s, &ev->start_mark, "nested too deep", e);
		s->stack[s->depth++] = (struct frame){
			.mapping = ev->type == YAML_MAPPING_START_EVENT,
		};
		return 0;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		s->depth--;
		return 0;
	default:
		return 0;
	}
}

static int run(struct state *s, yaml_parser_t *p, struct err *e)
{
	bool end = false;
	int r = 0;

	while (!end && r == 0) {
		yaml_event_t ev;

		if (!yaml_parser_parse(p, &ev)) {
			yaml_mark_t at = p->problem_mark;

			/*
			 * For bytes that are not UTF-8 the library gives no mark of the
			 * problem.
			 */
			if (p->error == YAML_READER_ERROR)
				at = p->mark;
			return refuse(s, &at, p->problem ? p->problem : "not YAML", e);
		}
		end = ev.type == YAML_STREAM_END_EVENT;
		r = take_event(s, &ev, e);
		yaml_event_delete(&ev);
	}
	return r;
}

int scan_text(const struct conf_source *source, struct scan *out, struct err *e)
{
	struct state s = { .name = source->name, .out = out };
	yaml_parser_t parser;
	int r;

	memset(out, 0, sizeof(*out));
	if (source->len > CONF_SIZE_MAX)
		return err_set(e, ERR_USAGE, "%s:1: larger than %d MiB", source->name,
			       CONF_SIZE_MAX >> 20);
	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, (const unsigned char *)source->text,
				     source->len);
	r = run(&s, &parser, e);
	yaml_parser_delete(&parser);
	if (r == 0 && !s.documents)
		return err_set(e, ERR_USAGE, "%s:1: empty", source->name);
	return r;
}

void scan_free(struct scan *s)
{
	size_t i;

	for (i = 0; i < s->keys_count; i++)
		free(s->keys[i].name);
	free(s->keys);
	conf_lines_free(&s->lines);
	memset(s, 0, sizeof(*s));
}

uint32_t scan_find(const struct scan *s, const char *name, size_t len, uint32_t line)
{
	size_t i;

	for (i = 0; i < s->keys_count; i++)
		if (s->keys[i].line >= line && strlen(s->keys[i].name) == len &&
		    memcmp(s->keys[i].name, name, len) == 0)
			return s->keys[i].line;
	return line;
}
