/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RULES_SCHEMA_H
#define STET_RULES_SCHEMA_H

#include "conf/schema.h"

/* The form of a document. genpolicy writes one out by it. */
extern const cyaml_schema_value_t doc_schema;

/* The form of one rule, and of one rule about changes. */
extern const cyaml_schema_value_t doc_rule_schema, doc_diff_schema;

#endif
