/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "conf/scan.h"

const cyaml_schema_value_t conf_string = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CONF_STRING_MAX),
};

/* The library's report on a document that does not fit the schema. */
struct complaint {
	char reason[256];
	uint32_t line;
};

static void take_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

static void take_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct complaint *c = ctx;
	char text[256];
	const char *at;

	(void)level;
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = 0;
	at = strstr(text, "(line: ");
	if (at && !c->line)
		c->line = (uint32_t)strtoul(at + strlen("(line: "), NULL, 10);
	else if (!at && !c->reason[0] && !strstr(text, "Backtrace"))
		snprintf(c->reason, sizeof(c->reason), "%s",
			 strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
}

static void *take_memory(void *ctx, void *p, size_t size)
{
	(void)ctx;
	if (size)
		return xrealloc(p, size);
	free(p);
	return NULL;
}

static cyaml_config_t config(struct complaint *c)
{
	return (cyaml_config_t){
		.log_fn = take_log,
		.log_ctx = c,
		.mem_fn = take_memory,
		.log_level = CYAML_LOG_ERROR,
		.flags = CYAML_CFG_NO_ALIAS,
	};
}

/* A reason in words for readers, in place of the library's terms. */
static const char *in_words(const char *reason)
{
	static const struct {
		const char *theirs, *ours;
	} words[] = {
		{ "Expecting SEQUENCE", "a list is expected here, such as [a, b]" },
		{ "Expecting MAPPING", "keys with values are expected here" },
		{ "Expecting SCALAR", "a single value is expected here" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(reason, words[i].theirs, strlen(words[i].theirs)) == 0)
			return words[i].ours;
	return reason;
}

static int complain(const char *name, const struct scan *s, struct complaint *c,
		    cyaml_err_t r, struct err *e)
{
	static const char *const keyed[] = { "Unexpected key: ",
					     "Mapping field already seen: " };
	uint32_t line = c->line ? c->line : 1;
	size_t i;

	/* The library gives the line of the last key that was right. */
	for (i = 0; i < ARRAY_SIZE(keyed); i++) {
		size_t n = strlen(keyed[i]);

		if (strncmp(c->reason, keyed[i], n) == 0)
			line = scan_find(s, c->reason + n, strlen(c->reason + n),
					 i ? line + 1 : line);
	}
	return err_set(e, ERR_USAGE, "%s:%u: %s", name, line,
		       c->reason[0] ? in_words(c->reason) : cyaml_strerror(r));
}

void *conf_load(const cyaml_schema_value_t *schema, const struct conf_source *source,
		struct conf_lines *lines, struct err *e)
{
	struct complaint c = { "", 0 };
	cyaml_config_t cfg = config(&c);
	cyaml_data_t *data = NULL;
	struct scan s;
	cyaml_err_t r;

	if (scan_text(source, &s, e) < 0) {
		scan_free(&s);
		return NULL;
	}
	r = cyaml_load_data((const uint8_t *)source->text, source->len, &cfg, schema,
			    &data, NULL);
	if (r != CYAML_OK || !data) {
		complain(source->name, &s, &c, r, e);
		scan_free(&s);
		return NULL;
	}
	if (lines) {
		*lines = s.lines;
		memset(&s.lines, 0, sizeof(s.lines));
	}
	scan_free(&s);
	return data;
}

void conf_free(const cyaml_schema_value_t *schema, void *data)
{
	cyaml_config_t cfg = config(NULL);

	if (data)
		cyaml_free(&cfg, schema, data, 0);
}

char *conf_text(const cyaml_schema_value_t *schema, const void *data)
{
	struct complaint c = { "", 0 };
	cyaml_config_t cfg = config(&c);
	char *out = NULL, *text;
	size_t len = 0;

	cfg.flags |= CYAML_CFG_STYLE_BLOCK;
	if (cyaml_save_data(&out, &len, &cfg, schema, data, 0) != CYAML_OK)
		abort();
	text = xstrndup(out, len);
	free(out);
	return text;
}
