/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CONF_SCHEMA_H
#define STET_CONF_SCHEMA_H

#include <cyaml/cyaml.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "conf/lines.h"
#include "conf/origin.h"

/*
 * Documents in YAML. A schema says which keys a document has and in which members of C
 * structures their values go. conf_load() makes such a structure from a text, conf_free()
 * ends it.
 *
 * The macros write the fields of a schema: @type is the structure, @field the member, which
 * has the name of the key except where @key is given. A list @field goes with a member
 * @field_count. Only CONF_NEEDED fields must be there; others are 0 or NULL without a value.
 */
enum { CONF_SIZE_MAX = 8 << 20, CONF_STRING_MAX = 4096, CONF_LIST_MAX = 65536 };

#define CONF_OPT CYAML_FLAG_OPTIONAL
#define CONF_STRICT (CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT)

#define CONF_STRING_AS(key, type, field)                                           \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CONF_OPT, type, field, 0, \
			       CONF_STRING_MAX)
#define CONF_STRING(type, field) CONF_STRING_AS(#field, type, field)
#define CONF_NEEDED(type, field)                                           \
	CYAML_FIELD_STRING_PTR(#field, CYAML_FLAG_POINTER, type, field, 1, \
			       CONF_STRING_MAX)
#define CONF_LIST_AS(key, type, field)                                        \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CONF_OPT, type, field, \
			     &conf_string, 0, CONF_LIST_MAX)
#define CONF_LIST(type, field) CONF_LIST_AS(#field, type, field)
#define CONF_STRUCT_AS(key, type, field, fields) \
	CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER | CONF_OPT, type, field, fields)
#define CONF_STRUCT(type, field, fields) CONF_STRUCT_AS(#field, type, field, fields)
#define CONF_STRUCTS(type, field, entry)                                                 \
	CYAML_FIELD_SEQUENCE(#field, CYAML_FLAG_POINTER | CONF_OPT, type, field, &entry, \
			     0, CONF_LIST_MAX)
#define CONF_ENUM(key, type, field, names) \
	CYAML_FIELD_ENUM(key, CONF_STRICT, type, field, names, ARRAY_SIZE(names))
#define CONF_FLAGS_AS(key, type, field, names) \
	CYAML_FIELD_FLAGS(key, CONF_STRICT, type, field, names, ARRAY_SIZE(names))
#define CONF_FLAGS(type, field, names) CONF_FLAGS_AS(#field, type, field, names)
#define CONF_BOOL(type, field) CYAML_FIELD_BOOL(#field, CONF_OPT, type, field)
#define CONF_UINT_AS(key, type, field) CYAML_FIELD_UINT(key, CONF_OPT, type, field)
#define CONF_UINT(type, field) CONF_UINT_AS(#field, type, field)
#define CONF_INT(type, field) CYAML_FIELD_INT(#field, CONF_OPT, type, field)

/* The elements of a list of strings. */
extern const cyaml_schema_value_t conf_string;

/*
 * Reads a document by @schema. The result is to be released with conf_free(), *lines (@lines
 * may be NULL) with conf_lines_free(). NULL with ERR_USAGE and "NAME:LINE: reason": too
 * large, not YAML, an alias, nested too deep, a key twice, an unknown key, a value of another
 * type.
 */
void *conf_load(const cyaml_schema_value_t *schema, const struct conf_source *source,
		struct conf_lines *lines, struct err *e);
void conf_free(const cyaml_schema_value_t *schema, void *data); /* NULL is fine */

/* The structure as YAML, to be freed. */
char *conf_text(const cyaml_schema_value_t *schema, const void *data);

#endif
