/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/schema.h"

#include "rules/doc.h"
#include "rules/facts.h"
#include "rules/verdict.h"

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
	CONF_ENUM("which", struct doc_paths, which, whiches),
	CONF_LIST(struct doc_paths, within),
	CONF_LIST(struct doc_paths, outside),
	CONF_LIST(struct doc_paths, is),
	CONF_LIST(struct doc_paths, above),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t unless_fields[] = {
	CONF_LIST(struct doc_match, command),
	CONF_LIST(struct doc_match, options),
	CONF_LIST(struct doc_match, operands),
	CONF_STRUCT(struct doc_match, paths, paths_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tests_fields[] = {
	CONF_LIST(struct doc_tests, allow),
	CONF_LIST(struct doc_tests, defer),
	CONF_LIST(struct doc_tests, checkpoint),
	CONF_LIST(struct doc_tests, ask),
	CONF_LIST(struct doc_tests, deny),
	CONF_LIST(struct doc_tests, kill),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t rule_fields[] = {
	CONF_NEEDED(struct doc_rule, id),
	CYAML_FIELD_ENUM("verdict", CYAML_FLAG_STRICT, struct doc_rule, verdict, verdicts,
			 ARRAY_SIZE(verdicts)),
	CONF_STRING(struct doc_rule, group),
	CONF_LIST_AS("program", struct doc_rule, match.program),
	CONF_LIST_AS("command", struct doc_rule, match.command),
	CONF_LIST_AS("options", struct doc_rule, match.options),
	CONF_LIST_AS("operands", struct doc_rule, match.operands),
	CONF_LIST_AS("from", struct doc_rule, match.from),
	CONF_LIST_AS("sql", struct doc_rule, match.sql),
	CONF_STRUCT_AS("paths", struct doc_rule, match.paths, paths_fields),
	CONF_STRUCT_AS("writes", struct doc_rule, match.writes, paths_fields),
	CONF_FLAGS_AS("exe", struct doc_rule, match.exe, exes),
	CONF_UINT_AS("most", struct doc_rule, match.most),
	CONF_STRUCT(struct doc_rule, unless, unless_fields),
	CONF_NEEDED(struct doc_rule, why),
	CONF_STRING(struct doc_rule, hint),
	CONF_STRUCT(struct doc_rule, tests, tests_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t diff_fields[] = {
	CONF_NEEDED(struct doc_diff, id),
	CYAML_FIELD_ENUM("verdict", CYAML_FLAG_STRICT, struct doc_diff, verdict, verdicts,
			 ARRAY_SIZE(verdicts)),
	CONF_FLAGS(struct doc_diff, what, changes),
	CONF_BOOL(struct doc_diff, unseen),
	CONF_STRUCT(struct doc_diff, paths, paths_fields),
	CONF_NEEDED(struct doc_diff, why),
	CONF_STRING(struct doc_diff, hint),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t class_fields[] = {
	CONF_NEEDED(struct doc_class, name),
	CONF_LIST(struct doc_class, paths),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t command_fields[] = {
	CONF_NEEDED(struct doc_command, name),
	CONF_STRING_AS("flags", struct doc_command, options.flags),
	CONF_LIST_AS("words", struct doc_command, options.words),
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
	CONF_LIST(struct doc_variable, names),
	CONF_ENUM("what", struct doc_variable, what, variable_whats),
	CONF_STRING(struct doc_variable, of),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t variable_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_variable, variable_fields),
};

static const cyaml_schema_field_t inner_fields[] = {
	CONF_BOOL(struct doc_inner, command),
	CONF_UINT(struct doc_inner, skip),
	CONF_BOOL(struct doc_inner, assign),
	CONF_BOOL(struct doc_inner, append),
	CONF_BOOL(struct doc_inner, script),
	CONF_BOOL(struct doc_inner, text),
	CONF_BOOL(struct doc_inner, remote),
	CONF_LIST(struct doc_inner, never),
	CONF_LIST(struct doc_inner, string),
	CONF_LIST(struct doc_inner, texts),
	CONF_LIST(struct doc_inner, splits),
	CONF_LIST(struct doc_inner, modules),
	CONF_LIST(struct doc_inner, runs),
	CONF_LIST(struct doc_inner, code),
	CONF_LIST(struct doc_inner, again),
	CONF_LIST(struct doc_inner, after),
	CONF_LIST(struct doc_inner, recipes),
	CONF_BOOL(struct doc_inner, each),
	CONF_LIST(struct doc_inner, after_text),
	CONF_LIST(struct doc_inner, lines),
	CONF_LIST(struct doc_inner, escapes),
	CONF_LIST(struct doc_inner, calls),
	CONF_ENUM("reads", struct doc_inner, reads, languages),
	CONF_LIST(struct doc_inner, program),
	CONF_BOOL(struct doc_inner, stdin_text),
	CONF_BOOL(struct doc_inner, stdin_code),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t command_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_command, command_fields),
};

static const cyaml_schema_field_t tool_fields[] = {
	CONF_LIST(struct doc_tool, names),
	CONF_ENUM("style", struct doc_tool, style, styles),
	CONF_BOOL(struct doc_tool, first),
	CONF_STRING_AS("flags", struct doc_tool, options.flags),
	CONF_LIST_AS("words", struct doc_tool, options.words),
	CONF_UINT(struct doc_tool, depth),
	CONF_STRUCTS(struct doc_tool, commands, command_value),
	CONF_STRUCT(struct doc_tool, inner, inner_fields),
	CONF_UINT(struct doc_tool, skip),
	CONF_LIST(struct doc_tool, values),
	CONF_LIST(struct doc_tool, target),
	CONF_LIST(struct doc_tool, sql),
	CONF_BOOL(struct doc_tool, nofollow),
	CONF_LIST(struct doc_tool, follow),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
	CONF_STRING(struct doc_limits, wall),
	CONF_STRING(struct doc_limits, cpu),
	CONF_STRING(struct doc_limits, memory),
	CONF_STRING(struct doc_limits, disk),
	CONF_STRING(struct doc_limits, file),
	CONF_STRING(struct doc_limits, output),
	CONF_INT(struct doc_limits, pids),
	CONF_INT(struct doc_limits, files),
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
	CONF_ENUM("default", struct doc, fallback, verdicts),
	CONF_STRUCT(struct doc, limits, limits_fields),
	CONF_LIST(struct doc, environment),
	CONF_LIST(struct doc, off),
	CONF_STRUCTS(struct doc, classes, class_value),
	CONF_STRUCTS(struct doc, tools, tool_value),
	CONF_STRUCTS(struct doc, variables, variable_value),
	CONF_STRUCTS(struct doc, rules, rule_value),
	CONF_STRUCTS(struct doc, diff, diff_value),
	CYAML_FIELD_END,
};

const cyaml_schema_value_t doc_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc, doc_fields),
};
