/* SPDX-License-Identifier: Apache-2.0 */
#include "call/schema.h"

#include <string.h>

#include "base/buf.h"
#include "call/facts.h"
#include "call/json.h"

#define MEMBER(at, f, type) \
	(*(type const *)(const void *)((const char *)(at) + (f)->offset))

static json_t *number(const struct field *f, json_int_t n)
{
	if ((n == 0 && f->flags & FIELD_NULL_0) || (n < 0 && f->flags & FIELD_NULL_NEG))
		return json_null();
	return json_integer(n);
}

static json_t *strings(char *const *v)
{
	json_t *a = json_array();

	for (; v && *v; v++)
		json_array_append_new(a, json_lossy(*v));
	return a;
}

static size_t count(const struct field *f, const void *at)
{
	return *(const size_t *)(const void *)((const char *)at + f->count);
}

static json_t *list(const struct field *f, const void *at)
{
	const char *item = MEMBER(at, f, char *);
	size_t n = count(f, at);
	json_t *a = json_array();

	for (; n; n--, item += f->stride)
		json_array_append_new(a, schema_write(f->fields, item));
	return a;
}

/* The value of a member of which the JSON is one value under one key; NULL: it is none. */
static json_t *value(const struct field *f, const void *at)
{
	switch (f->type) {
	case FIELD_BOOL:
		return json_boolean(MEMBER(at, f, bool));
	case FIELD_INT:
		return number(f, MEMBER(at, f, int));
	case FIELD_UNSIGNED:
		return number(f, MEMBER(at, f, unsigned));
	case FIELD_INT64:
		return number(f, MEMBER(at, f, int64_t));
	case FIELD_UINT64:
		return number(f, (json_int_t)MEMBER(at, f, uint64_t));
	case FIELD_COUNT:
		return number(f, (json_int_t)MEMBER(at, f, size_t));
	case FIELD_STRINGS:
		return strings(MEMBER(at, f, char **));
	case FIELD_KILO:
		return json_real((double)(MEMBER(at, f, int64_t) / 10) / 100);
	case FIELD_TXN:
		return json_txn_ref(MEMBER(at, f, int64_t));
	case FIELD_OBJECT:
		return schema_write(f->fields, (const char *)at + f->offset);
	case FIELD_LIST:
		return list(f, at);
	default:
		return NULL;
	}
}

static bool is_set(const struct field *f, const void *at)
{
	switch (f->type) {
	case FIELD_BOOL:
		return MEMBER(at, f, bool);
	case FIELD_INT:
		return MEMBER(at, f, int);
	case FIELD_INT64:
	case FIELD_TXN:
		return MEMBER(at, f, int64_t);
	case FIELD_UINT64:
		return MEMBER(at, f, uint64_t);
	case FIELD_STRING:
	case FIELD_BYTES:
		return MEMBER(at, f, char *);
	default:
		return true;
	}
}

static void add_field(json_t *o, const struct field *f, const void *at)
{
	const char *here = (const char *)at + f->offset;

	if (f->word)
		json_set_str(o, f->name, f->word(at));
	else if (f->make)
		json_object_set_new(o, f->name, f->make(at));
	else if (f->type == FIELD_STRING)
		json_set_str(o, f->name, MEMBER(at, f, char *));
	else if (f->type == FIELD_BYTES)
		json_set_bytes(o, f->name, MEMBER(at, f, char *), count(f, at));
	else if (f->type == FIELD_TEXT)
		json_set_str(o, f->name, here);
	else if (f->type == FIELD_TIME)
		json_set_time(o, f->name, MEMBER(at, f, int64_t));
	else if (f->type == FIELD_NOTES)
		json_set_notes(o, f->name, (const void *)here);
	else if (f->flags & FIELD_FLAT)
		schema_add(o, f->fields, here);
	else if (f->type != FIELD_ITEMS)
		json_object_set_new(o, f->name, value(f, at));
}

void schema_add(json_t *o, const struct field *fields, const void *at)
{
	for (const struct field *f = fields; f->name; f++)
		if ((!f->present || f->present(at)) &&
		    (!(f->flags & FIELD_IF_SET) || is_set(f, at)))
			add_field(o, f, at);
}

json_t *schema_write(const struct field *fields, const void *at)
{
	json_t *o = json_object();

	schema_add(o, fields, at);
	return o;
}

static const char *type_name(enum field_type t)
{
	switch (t) {
	case FIELD_BOOL:
		return "boolean";
	case FIELD_INT:
	case FIELD_UNSIGNED:
	case FIELD_INT64:
	case FIELD_UINT64:
	case FIELD_COUNT:
		return "integer";
	case FIELD_KILO:
	case FIELD_NUMBER:
		return "number";
	case FIELD_TIME:
		return "time";
	case FIELD_TXN:
		return "transaction";
	case FIELD_STRINGS:
		return "strings";
	case FIELD_NOTES:
		return "notes";
	case FIELD_OBJECT:
		return "object";
	case FIELD_LIST:
	case FIELD_ITEMS:
		return "list";
	default:
		return "string";
	}
}

static bool can_be_null(const struct field *f)
{
	return f->flags & (FIELD_NULL_0 | FIELD_NULL_NEG | FIELD_CAN_NULL) ||
	       f->type == FIELD_TIME || f->type == FIELD_TXN;
}

static bool is_optional(const struct field *f)
{
	return f->present || f->flags & FIELD_IF_SET || f->type == FIELD_NOTES;
}

static void describe(json_t *all, const struct field *fields, bool optional)
{
	for (const struct field *f = fields; f && f->name; f++) {
		json_t *o;

		if (f->flags & FIELD_FLAT) {
			describe(all, f->fields, optional || f->present);
			continue;
		}
		o = json_object();
		json_set_str(o, "name", f->name);
		json_set_str(o, "type", type_name(f->type));
		json_set_str(o, "help", f->help);
		if (optional || is_optional(f))
			json_object_set_new(o, "optional", json_true());
		if (can_be_null(f))
			json_object_set_new(o, "null", json_true());
		if (f->fields)
			json_object_set_new(o, "fields", schema_describe(f->fields));
		json_array_append_new(all, o);
	}
}

json_t *schema_describe(const struct field *fields)
{
	json_t *all = json_array();

	describe(all, fields, false);
	return all;
}

/* --- rows that several results share --- */

static const struct field effect_fields[] = {
	{ "kind", FIELD_STRING, offsetof(struct effect_record, kind),
	  "write-through, socket, network, in-place" },
	{ "what", FIELD_STRING, offsetof(struct effect_record, what),
	  "a path or a text" },
	{ NULL },
};

#define AT(field) offsetof(struct txn_facts, field)

const struct field txn_fields[] = {
	{ "id", FIELD_TXN, AT(rec.id), "its number, as t3" },
	{ "name", FIELD_STRING, AT(rec.name), "given with run --name", FIELD_CAN_NULL },
	{ "state", FIELD_STRING, AT(state),
	  "running, interrupted, pending, committed, rolled back, unfinished or pruned" },
	{ "workspace", FIELD_STRING, AT(rec.workspace), "the directory it belongs to" },
	{ "command", FIELD_STRINGS, AT(rec.argv), "the command and its arguments" },
	{ "begin", FIELD_TIME, AT(rec.begin_ns), "when the command was started" },
	{ "end", FIELD_TIME, AT(rec.end_ns), "when the command ended" },
	{ "exit", FIELD_INT, AT(rec.exit_status), "exit status of the command",
	  FIELD_NULL_NEG },
	{ "reason", FIELD_STRING, AT(rec.reason), "why the command ended",
	  FIELD_CAN_NULL },
	{ "policy", FIELD_STRING, AT(rec.policy), "hash of the policy that judged it",
	  FIELD_IF_SET },
	{ "not_undoable", FIELD_LIST, AT(rec.effects),
	  "what reached the host or the network at once", .fields = effect_fields,
	  .count = AT(rec.neffects), .stride = sizeof(struct effect_record) },
	{ NULL },
};

#undef AT
#define AT(field) offsetof(struct change_totals, field)

const struct field totals_fields[] = {
	{ "added", FIELD_UINT64, AT(added), "objects that are new" },
	{ "changed", FIELD_UINT64, AT(modified), "objects that differ" },
	{ "deleted", FIELD_UINT64, AT(deleted), "objects that are gone" },
	{ "bytes", FIELD_UINT64, AT(bytes), "size of the added and changed files" },
	{ NULL },
};

#undef AT
#define AT(field) offsetof(struct err, field)

static const char *kind_of_error(const void *e)
{
	return err_kind_name(((const struct err *)e)->kind);
}

static const char *hint_of_error(const void *e)
{
	const struct err *err = e;

	return err->hint[0] ? err->hint : NULL;
}

const struct field error_fields[] = {
	{ "kind", FIELD_STRING, 0, "usage, denied, conflict, state, …",
	  .word = kind_of_error },
	{ "message", FIELD_TEXT, AT(msg), "what went wrong" },
	{ "hint", FIELD_STRING, 0, "what to do about it", FIELD_CAN_NULL,
	  .word = hint_of_error },
	{ "errno", FIELD_INT, AT(sys), "of the system call that failed", FIELD_NULL_0 },
	{ NULL },
};

static const struct field side_fields[] = {
	{ "type", FIELD_STRING, 0, "file, directory, link, fifo, socket, … device" },
	{ "mode", FIELD_STRING, 0, "in octal, as 0644" },
	{ "size", FIELD_UINT64, 0, "in bytes" },
	{ NULL },
};

const struct field change_fields[] = {
	{ "kind", FIELD_STRING, 0, "A added, M changed, D deleted, T type, R renamed" },
	{ "path", FIELD_STRING, 0, "absolute" },
	{ "from", FIELD_STRING, 0, "the path before a rename", FIELD_IF_SET },
	{ "what", FIELD_STRINGS, 0, "content, mode, owner, xattr, times" },
	{ "implied", FIELD_BOOL, 0,
	  "a change of the directory around it says so already" },
	{ "hidden", FIELD_BOOL, 0, "the command could not see what the host has there" },
	{ "read_only", FIELD_BOOL, 0, "the command could not write there" },
	{ "before", FIELD_OBJECT, 0, "the host's object", FIELD_CAN_NULL, side_fields },
	{ "after", FIELD_OBJECT, 0, "the transaction's object", FIELD_CAN_NULL,
	  side_fields },
	{ NULL },
};
