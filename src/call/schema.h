/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_SCHEMA_H
#define STET_CALL_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The JSON of a result, as data: one row for each key, in the order of the output. The same
 * rows write the JSON (schema_write()) and describe it (schema_describe(), stet help --json).
 */
enum field_type {
	/* Members of a struct. */
	FIELD_BOOL,	/* bool */
	FIELD_INT,	/* int */
	FIELD_UNSIGNED, /* unsigned */
	FIELD_INT64,	/* int64_t */
	FIELD_UINT64,	/* uint64_t */
	FIELD_COUNT,	/* size_t */
	FIELD_STRING,	/* char *; NULL becomes null. Not UTF-8: NAME_b64 has the bytes */
	FIELD_TEXT,	/* char[]: the text is in the struct itself; as FIELD_STRING */
	FIELD_BYTES, /* char *, of which the length is the size_t at @count; as FIELD_STRING */
	FIELD_STRINGS, /* char **, NULL-ended or NULL */
	FIELD_TIME, /* int64_t, nanoseconds: "2026-01-31T12:00:00.123Z"; 0 becomes null */
	FIELD_KILO, /* int64_t: thousands of it (microseconds as milliseconds), two decimals */
	FIELD_TXN,    /* int64_t: "t3"; 0 becomes null */
	FIELD_NOTES,  /* struct path_notes: [{"path", "what", "by"}]; left out if empty */
	FIELD_OBJECT, /* a struct: an object of @fields */
	FIELD_LIST, /* a pointer to @stride bytes each, size_t of them at @count: @fields each */
	FIELD_NUMBER, /* for @make: a number */
	/* The list that verb.list hands out, item by item: described here, written there. */
	FIELD_ITEMS,
};

enum field_flags {
	FIELD_NULL_0 = 1 << 0,	 /* 0 becomes null */
	FIELD_NULL_NEG = 1 << 1, /* a negative number becomes null */
	FIELD_IF_SET = 1 << 2,	 /* left out if false, 0 or NULL */
	FIELD_CAN_NULL = 1 << 3, /* @make may return null */
	FIELD_FLAT = 1 << 4,	 /* OBJECT: its keys are written in place of it */
};

struct field {
	const char *name; /* of the key; NULL ends a table */
	enum field_type type;
	size_t offset; /* of the member in the struct that the table is about */
	const char *help;
	unsigned flags; /* enum field_flags */
	const struct field *fields;
	size_t count, stride; /* FIELD_LIST; count: FIELD_BYTES, too */
	/* If set, the key is there only if it returns true for the struct. */
	bool (*present)(const void *at);
	/*
	 * A field that is no member of the struct has one of these functions, which makes the
	 * value; a new reference.
	 */
	const char *(*word)(const void *at);
	json_t *(*make)(const void *at);
};

/* Adds the keys that @fields say of the struct @at to @o. */
void schema_add(json_t *o, const struct field *fields, const void *at);

/* schema_write() as an object; a new reference. */
json_t *schema_write(const struct field *fields, const void *at);

/* [{"name", "type", "help", …}]: what a program has to know to read it. A new reference. */
json_t *schema_describe(const struct field *fields);

/* Rows that several results share. */
extern const struct field txn_fields[];	   /* of struct txn_facts */
extern const struct field totals_fields[]; /* of struct change_totals */
extern const struct field change_fields[]; /* described only: see json_change() */
extern const struct field error_fields[];  /* of struct err */

/* The first row of a result about one transaction, which is struct txn_facts at @at. */
#define FIELD_OF_TXN(at)                                                           \
	{                                                                          \
		"txn", FIELD_OBJECT, (at), "the transaction", .fields = txn_fields \
	}

#endif
