/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes documents of rules out as C data, by the schema that reads them, so that the
 * built-in documents need no loading. Usage: genpolicy FILE... > builtin.inc
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "rules/digest.h"
#include "rules/doc.h"
#include "rules/schema.h"

/* The C type of the values under a key. */
static const struct {
	const char *key, *type;
} types[] = {
	{ "rules", "struct doc_rule" },	      { "diff", "struct doc_diff" },
	{ "classes", "struct doc_class" },    { "tools", "struct doc_tool" },
	{ "commands", "struct doc_command" }, { "inner", "struct doc_inner" },
	{ "paths", "struct doc_paths" },      { "writes", "struct doc_paths" },
	{ "unless", "struct doc_match" },     { "tests", "struct doc_tests" },
	{ "limits", "struct doc_limits" },    { "variables", "struct doc_variable" },
};

/*
 * Keys whose member in C has another name. The conditions of a rule are in its member
 * `match`.
 */
static const struct {
	const char *parent, *key, *name;
} renamed[] = {
	{ "", "default", "fallback" },
	{ "tools", "flags", "options.flags" },
	{ "tools", "words", "options.words" },
	{ "commands", "flags", "options.flags" },
	{ "commands", "words", "options.words" },
	{ "rules", "program", "match.program" },
	{ "rules", "command", "match.command" },
	{ "rules", "options", "match.options" },
	{ "rules", "operands", "match.operands" },
	{ "rules", "from", "match.from" },
	{ "rules", "sql", "match.sql" },
	{ "rules", "paths", "match.paths" },
	{ "rules", "writes", "match.writes" },
	{ "rules", "exe", "match.exe" },
	{ "rules", "most", "match.most" },
};

static const char *type_of(const char *key)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].key, key) == 0)
			return types[i].type;
	fprintf(stderr, "genpolicy: no type for '%s'\n", key);
	exit(1);
}

static const char *name_of(const char *parent, const char *key)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(renamed); i++)
		if (strcmp(renamed[i].parent, parent) == 0 &&
		    strcmp(renamed[i].key, key) == 0)
			return renamed[i].name;
	return key;
}

static void write_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\' || c == '?')
			printf("\\%c", c);
		else if (c < 32 || c > 126)
			printf("\\%03o", c);
		else
			putchar(c);
	}
	putchar('"');
}

static uint64_t number(const void *data, size_t size)
{
	uint64_t n = 0;

	memcpy(&n, data, size); /* little-endian, as all machines that stet supports */
	return n;
}

static const void *pointer(const void *data)
{
	const void *p;

	memcpy(&p, data, sizeof(p));
	return p;
}

static void write_mapping(const cyaml_schema_value_t *v, const char *data,
			  const char *parent);

static void write_list(const cyaml_schema_value_t *entry, const char *data,
		       uint64_t count, const char *key)
{
	uint64_t i;

	printf("(%s[]){ ", entry->type == CYAML_STRING ? "const char *" : type_of(key));
	for (i = 0; i < count; i++) {
		if (entry->type == CYAML_STRING)
			write_string(pointer(data + i * sizeof(char *)));
		else
			write_mapping(entry, data + i * entry->data_size, key);
		fputs(", ", stdout);
	}
	fputs("}", stdout);
}

static void write_field(const cyaml_schema_field_t *f, const char *data,
			const char *parent)
{
	const char *at = data + f->data_offset;
	const void *p = f->value.flags & CYAML_FLAG_POINTER ? pointer(at) : at;
	const char *name = name_of(parent, f->key);
	uint64_t n;

	if (!p)
		return;
	switch (f->value.type) {
	case CYAML_STRING:
		printf(".%s = ", name);
		write_string(p);
		break;
	case CYAML_SEQUENCE:
		n = number(data + f->count_offset, f->count_size);
		if (!n)
			return;
		printf(".%s_count = %llu, .%s = ", name, (unsigned long long)n, name);
		write_list(f->value.sequence.entry, p, n, f->key);
		break;
	case CYAML_MAPPING:
		printf(".%s = &(%s)", name, type_of(f->key));
		write_mapping(&f->value, p, f->key);
		break;
	default:
		n = number(p, f->value.data_size);
		if (!n)
			return;
		printf(".%s = %llu", name, (unsigned long long)n);
	}
	fputs(",\n", stdout);
}

static void write_mapping(const cyaml_schema_value_t *v, const char *data,
			  const char *parent)
{
	const cyaml_schema_field_t *f;

	fputs("{\n", stdout);
	for (f = v->mapping.fields; f->key; f++)
		write_field(f, data, parent);
	/* The member `letters` has no key: doc_parse() computes it from the names. */
	if (strcmp(parent, "rules") == 0)
		printf(".letters = 0x%" PRIx64 "U\n",
		       ((const struct doc_rule *)data)->letters);
	if (strcmp(parent, "tools") == 0)
		printf(".letters = 0x%" PRIx64 "U\n",
		       ((const struct doc_tool *)data)->letters);
	fputs("}", stdout);
}

static char *read_whole(const char *path, size_t *len)
{
	struct buf b = BUF_INIT;
	char chunk[65536];
	size_t n;
	FILE *f;

	f = fopen(path, "re");
	if (!f) {
		perror(path);
		exit(1);
	}
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&b, chunk, n);
	fclose(f);
	*len = b.len;
	return buf_take(&b);
}

int main(int argc, char **argv)
{
	struct digest whole;
	char hex[DIGEST_HEX];
	int i;

	digest_begin(&whole);
	printf("/* Made by genpolicy. */\nstatic const struct doc *const builtin_docs[] = {\n");
	for (i = 1; i < argc; i++) {
		struct conf_source source = { CONF_BUILTIN, argv[i], NULL, 0 };
		AUTO_FREE char *text = NULL;
		struct doc *d;
		struct err e;

		source.text = text = read_whole(argv[i], &source.len);
		digest_add(&whole, text, source.len);
		if (doc_parse(&source, &d, NULL, &e) < 0) {
			fprintf(stderr, "%s\n", e.msg);
			return 1;
		}
		fputs("&(const struct doc)", stdout);
		write_mapping(&doc_schema, (const char *)d, "");
		fputs(",\n", stdout);
		doc_free(d);
	}
	digest_end(&whole, hex);
	printf("};\n#define BUILTIN_HASH \"%s\"\n", hex);
	return 0;
}
