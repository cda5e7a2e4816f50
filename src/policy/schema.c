/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/schema.h"

#include "base/cleanup.h"
#include "policy/doc.h"
#include "policy/facts.h"
#include "policy/verdict.h"

enum { STRING_MAX = 4096, LIST_MAX = 65536 };

#define OPT CYAML_FLAG_OPTIONAL

#define STRICT (CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT)

#define STRING(type, field)                                                      \
	CYAML_FIELD_STRING_PTR(#field, CYAML_FLAG_POINTER | OPT, type, field, 0, \
			       STRING_MAX)

#define NEEDED(type, field) \
	CYAML_FIELD_STRING_PTR(#field, CYAML_FLAG_POINTER, type, field, 1, STRING_MAX)

#define LIST_AS(key, type, field)                                                    \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | OPT, type, field, &string, 0, \
			     LIST_MAX)

#define LIST(type, field) LIST_AS(#field, type, field)

#define STRUCT(type, field, fields) \
	CYAML_FIELD_MAPPING_PTR(#field, CYAML_FLAG_POINTER | OPT, type, field, fields)

#define STRUCTS(type, field, entry)                                                    \
	CYAML_FIELD_SEQUENCE(#field, CYAML_FLAG_POINTER | OPT, type, field, &entry, 0, \
			     LIST_MAX)

#define ENUM(key, type, field, names) \
	CYAML_FIELD_ENUM(key, STRICT, type, field, names, ARRAY_SIZE(names))

#define FLAGS(type, field, names) \
	CYAML_FIELD_FLAGS(#field, STRICT, type, field, names, ARRAY_SIZE(names))

static const cyaml_schema_value_t string = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, STRING_MAX),
};

static const cyaml_strval_t verdicts[] = {
	{ "allow", VERDICT_ALLOW }, { "checkpoint", VERDICT_CHECKPOINT },
	{ "ask", VERDICT_ASK },	    { "deny", VERDICT_DENY },
	{ "kill", VERDICT_KILL },
};

static const cyaml_strval_t whiches[] = {
	{ "any", WHICH_ANY },
	{ "last", WHICH_LAST },
	{ "others", WHICH_OTHERS },
	{ "value", WHICH_VALUE },
};

static const cyaml_strval_t exes[] = {
	{ "memfd", EXE_MEMFD },	    { "deleted", EXE_DELETED },
	{ "loader", EXE_LOADER },   { "built-here", EXE_BUILT_HERE },
	{ "unknown", EXE_UNKNOWN }, { "foreign", EXE_FOREIGN },
	{ "traced", EXE_TRACED },
};

static const cyaml_strval_t changes[] = {
	{ "written", CHANGED_WRITTEN },	      { "deleted", CHANGED_DELETED },
	{ "setuid", CHANGED_SETUID },	      { "link-out", CHANGED_LINK_OUT },
	{ "executable", CHANGED_EXECUTABLE }, { "replaced", CHANGED_REPLACED },
	{ "rights", CHANGED_RIGHTS },	      { "shadows", CHANGED_SHADOWS },
};

static const cyaml_strval_t styles[] = {
	{ "gnu", STYLE_GNU },	    { "long", STYLE_LONG },
	{ "assign", STYLE_ASSIGN }, { "signal", STYLE_SIGNAL },
	{ "bundle", STYLE_BUNDLE },
};

static const cyaml_schema_field_t paths_fields[] = {
	ENUM("which", struct doc_paths, which, whiches),
	LIST(struct doc_paths, within),
	LIST(struct doc_paths, outside),
	LIST(struct doc_paths, is),
	LIST(struct doc_paths, above),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t unless_fields[] = {
	LIST(struct doc_match, command),
	LIST(struct doc_match, options),
	LIST(struct doc_match, operands),
	STRUCT(struct doc_match, paths, paths_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tests_fields[] = {
	LIST(struct doc_tests, allow),
	LIST(struct doc_tests, defer),
	LIST(struct doc_tests, checkpoint),
	LIST(struct doc_tests, ask),
	LIST(struct doc_tests, deny),
	LIST(struct doc_tests, kill),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t rule_fields[] = {
	NEEDED(struct doc_rule, id),
	CYAML_FIELD_ENUM("verdict", CYAML_FLAG_STRICT, struct doc_rule, verdict, verdicts,
			 ARRAY_SIZE(verdicts)),
	STRING(struct doc_rule, group),
	LIST_AS("program", struct doc_rule, match.program),
	LIST_AS("command", struct doc_rule, match.command),
	LIST_AS("options", struct doc_rule, match.options),
	LIST_AS("operands", struct doc_rule, match.operands),
	LIST_AS("from", struct doc_rule, match.from),
	LIST_AS("sql", struct doc_rule, match.sql),
	CYAML_FIELD_MAPPING_PTR("paths", CYAML_FLAG_POINTER | OPT, struct doc_rule,
				match.paths, paths_fields),
	CYAML_FIELD_MAPPING_PTR("writes", CYAML_FLAG_POINTER | OPT, struct doc_rule,
				match.writes, paths_fields),
	CYAML_FIELD_FLAGS("exe", STRICT, struct doc_rule, match.exe, exes,
			  ARRAY_SIZE(exes)),
	CYAML_FIELD_UINT("most", OPT, struct doc_rule, match.most),
	STRUCT(struct doc_rule, unless, unless_fields),
	NEEDED(struct doc_rule, why),
	STRING(struct doc_rule, hint),
	STRUCT(struct doc_rule, tests, tests_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t diff_fields[] = {
	NEEDED(struct doc_diff, id),
	CYAML_FIELD_ENUM("verdict", CYAML_FLAG_STRICT, struct doc_diff, verdict, verdicts,
			 ARRAY_SIZE(verdicts)),
	FLAGS(struct doc_diff, what, changes),
	CYAML_FIELD_BOOL("unseen", OPT, struct doc_diff, unseen),
	STRUCT(struct doc_diff, paths, paths_fields),
	NEEDED(struct doc_diff, why),
	STRING(struct doc_diff, hint),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t class_fields[] = {
	NEEDED(struct doc_class, name),
	LIST(struct doc_class, paths),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t command_fields[] = {
	NEEDED(struct doc_command, name),
	CYAML_FIELD_STRING_PTR("flags", CYAML_FLAG_POINTER | OPT, struct doc_command,
			       options.flags, 0, STRING_MAX),
	LIST_AS("words", struct doc_command, options.words),
	CYAML_FIELD_END,
};

static const cyaml_strval_t languages[] = {
	{ "nothing", READS_NOTHING },
	{ "awk", READS_AWK },
	{ "sed", READS_SED },
};

static const cyaml_strval_t variable_whats[] = {
	{ "code", VARIABLE_CODE },     { "text", VARIABLE_TEXT },
	{ "prompt", VARIABLE_PROMPT }, { "options", VARIABLE_OPTIONS },
	{ "file", VARIABLE_FILE },     { "path", VARIABLE_PATH },
};

static const cyaml_schema_field_t variable_fields[] = {
	LIST(struct doc_variable, names),
	ENUM("what", struct doc_variable, what, variable_whats),
	STRING(struct doc_variable, of),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t variable_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_variable, variable_fields),
};

static const cyaml_schema_field_t inner_fields[] = {
	CYAML_FIELD_BOOL("command", OPT, struct doc_inner, command),
	CYAML_FIELD_UINT("skip", OPT, struct doc_inner, skip),
	CYAML_FIELD_BOOL("assign", OPT, struct doc_inner, assign),
	CYAML_FIELD_BOOL("append", OPT, struct doc_inner, append),
	CYAML_FIELD_BOOL("script", OPT, struct doc_inner, script),
	CYAML_FIELD_BOOL("text", OPT, struct doc_inner, text),
	CYAML_FIELD_BOOL("remote", OPT, struct doc_inner, remote),
	LIST(struct doc_inner, never),
	LIST(struct doc_inner, string),
	LIST(struct doc_inner, texts),
	LIST(struct doc_inner, splits),
	LIST(struct doc_inner, modules),
	LIST(struct doc_inner, runs),
	LIST(struct doc_inner, code),
	LIST(struct doc_inner, again),
	LIST(struct doc_inner, after),
	LIST(struct doc_inner, recipes),
	CYAML_FIELD_BOOL("each", OPT, struct doc_inner, each),
	LIST(struct doc_inner, after_text),
	LIST(struct doc_inner, lines),
	LIST(struct doc_inner, escapes),
	LIST(struct doc_inner, calls),
	ENUM("reads", struct doc_inner, reads, languages),
	LIST(struct doc_inner, program),
	CYAML_FIELD_BOOL("stdin_text", OPT, struct doc_inner, stdin_text),
	CYAML_FIELD_BOOL("stdin_code", OPT, struct doc_inner, stdin_code),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t command_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_command, command_fields),
};

static const cyaml_schema_field_t tool_fields[] = {
	LIST(struct doc_tool, names),
	ENUM("style", struct doc_tool, style, styles),
	CYAML_FIELD_BOOL("first", OPT, struct doc_tool, first),
	CYAML_FIELD_STRING_PTR("flags", CYAML_FLAG_POINTER | OPT, struct doc_tool,
			       options.flags, 0, STRING_MAX),
	LIST_AS("words", struct doc_tool, options.words),
	CYAML_FIELD_UINT("depth", OPT, struct doc_tool, depth),
	STRUCTS(struct doc_tool, commands, command_value),
	STRUCT(struct doc_tool, inner, inner_fields),
	CYAML_FIELD_UINT("skip", OPT, struct doc_tool, skip),
	LIST(struct doc_tool, values),
	LIST(struct doc_tool, target),
	LIST(struct doc_tool, sql),
	CYAML_FIELD_BOOL("nofollow", OPT, struct doc_tool, nofollow),
	LIST(struct doc_tool, follow),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
	STRING(struct doc_limits, wall),
	STRING(struct doc_limits, cpu),
	STRING(struct doc_limits, memory),
	STRING(struct doc_limits, disk),
	STRING(struct doc_limits, file),
	STRING(struct doc_limits, output),
	CYAML_FIELD_INT("pids", OPT, struct doc_limits, pids),
	CYAML_FIELD_INT("files", OPT, struct doc_limits, files),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t class_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_class, class_fields),
};

static const cyaml_schema_value_t tool_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_tool, tool_fields),
};

static const cyaml_schema_value_t rule_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_rule, rule_fields),
};

const cyaml_schema_value_t doc_rule_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc_rule, rule_fields),
};

static const cyaml_schema_value_t diff_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_diff, diff_fields),
};

const cyaml_schema_value_t doc_diff_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc_diff, diff_fields),
};

static const cyaml_schema_field_t doc_fields[] = {
	CYAML_FIELD_UINT("version", CYAML_FLAG_DEFAULT, struct doc, version),
	ENUM("default", struct doc, fallback, verdicts),
	STRUCT(struct doc, limits, limits_fields),
	LIST(struct doc, environment),
	LIST(struct doc, off),
	STRUCTS(struct doc, classes, class_value),
	STRUCTS(struct doc, tools, tool_value),
	STRUCTS(struct doc, variables, variable_value),
	STRUCTS(struct doc, rules, rule_value),
	STRUCTS(struct doc, diff, diff_value),
	CYAML_FIELD_END,
};

const cyaml_schema_value_t doc_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc, doc_fields),
};
