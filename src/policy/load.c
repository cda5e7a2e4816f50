/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "policy/check.h"
#include "policy/parts.h"
#include "rules/digest.h"
#include "rules/doc.h"

/* Lowers the limit to @value. 0 stands for no limit. */
static void tighten(uint64_t *limit, uint64_t value)
{
	if (value && (!*limit || value < *limit))
		*limit = value;
}

static void take_limits(struct policy_limits *l, const struct doc_limits *d)
{
	const struct {
		const char *text;
		uint64_t *size;
		int64_t *time;
	} each[] = {
		{ d->memory, &l->memory, NULL }, { d->disk, &l->disk, NULL },
		{ d->file, &l->file, NULL },	 { d->output, &l->output, NULL },
		{ d->wall, NULL, &l->wall_ms },	 { d->cpu, NULL, &l->cpu_ms },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(each); i++) {
		uint64_t size = 0;
		int64_t ms = 0;

		if (!each[i].text)
			continue;
		if (each[i].size && text_parse_size(each[i].text, &size) == 0)
			tighten(each[i].size, size);
		if (each[i].time && text_parse_duration(each[i].text, &ms) == 0 &&
		    (!*each[i].time || ms < *each[i].time))
			*each[i].time = ms;
	}
	if (d->pids > 0 && (!l->pids || d->pids < l->pids))
		l->pids = d->pids;
	if (d->files > 0 && (!l->files || d->files < l->files))
		l->files = d->files;
}

static struct policy *make(size_t layers)
{
	struct policy *p = xcalloc(1, sizeof(*p));
	size_t n = policy_builtin()->docs_count, i;
	const struct doc **docs = xcalloc(n + layers, sizeof(*docs));
	enum conf_origin *origins = xcalloc(n + layers, sizeof(*origins));

	for (i = 0; i < n; i++)
		docs[i] = policy_builtin()->docs[i];
	p->docs = docs;
	p->origins = origins;
	p->docs_count = n;
	p->owned = xcalloc(layers + 1, sizeof(*p->owned));
	return p;
}

static void add_layer(struct policy *p, struct doc *d, enum conf_origin origin)
{
	/* make() has allocated both arrays. */
	const struct doc **docs = (const struct doc **)(uintptr_t)p->docs;
	enum conf_origin *origins = (enum conf_origin *)(uintptr_t)p->origins;

	docs[p->docs_count] = d;
	origins[p->docs_count++] = origin;
	p->owned[p->owned_count++] = d;
}

static void settle(struct policy *p)
{
	size_t i;

	for (i = 0; i < p->docs_count; i++) {
		if (p->docs[i]->limits)
			take_limits(&p->limits, p->docs[i]->limits);
		if (p->docs[i]->fallback > p->fallback)
			p->fallback = p->docs[i]->fallback;
	}
}

static void make_hash(struct policy *p, const struct conf_source *sources, size_t n)
{
	struct digest d;
	size_t i;

	if (!n) {
		memcpy(p->hash, policy_hash(policy_builtin()), sizeof(p->hash));
		return;
	}
	digest_begin(&d);
	digest_add(&d, policy_hash(policy_builtin()), sizeof(p->hash));
	for (i = 0; i < n; i++) {
		struct digest one;
		char hex[DIGEST_HEX];

		digest_begin(&one);
		digest_add(&one, sources[i].text, sources[i].len);
		digest_end(&one, hex);
		digest_add(&d, conf_origin_name(sources[i].origin), 4);
		digest_add(&d, hex, sizeof(hex));
	}
	digest_end(&d, p->hash);
}

int policy_load(const struct conf_source *sources, size_t n, struct policy **out,
		struct err *e)
{
	struct conf_lines *lines = xcalloc(n + 1, sizeof(*lines));
	struct policy *p = make(n);
	size_t i;
	int r = 0;

	*out = NULL;
	for (i = 0; i < n && r == 0; i++) {
		struct doc *d;

		r = doc_parse(&sources[i], &d, &lines[i], e);
		if (r < 0)
			break;
		add_layer(p, d, sources[i].origin);
		r = check_layer(p, p->docs_count - 1, sources[i].name, &lines[i], e);
	}
	if (r == 0) {
		settle(p);
		make_hash(p, sources, n);
	}
	/*
	 * The tests run under the whole policy, because each layer may change their
	 * verdicts.
	 */
	for (i = 0; i < n && r == 0; i++)
		r = check_tests(p, policy_builtin()->docs_count + i, sources[i].name,
				&lines[i], e);
	for (i = 0; i < n; i++)
		conf_lines_free(&lines[i]);
	free(lines);
	if (r < 0)
		policy_free(p);
	else
		*out = p;
	return r;
}

void policy_free(struct policy *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->owned_count; i++)
		doc_free(p->owned[i]);
	free(p->owned);
	free((void *)(uintptr_t)p->docs);
	free((void *)(uintptr_t)p->origins);
	free(p);
}

void policy_text_hash(const char *text, size_t len, char hex[65])
{
	struct digest d;

	digest_begin(&d);
	digest_add(&d, text, len);
	digest_end(&d, hex);
}
