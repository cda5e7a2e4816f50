/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_SCHEMA_H
#define STET_POLICY_SCHEMA_H

#include <cyaml/cyaml.h>

#include "policy/doc.h"

/* The form of a document; also how genpolicy writes one out. */
extern const cyaml_schema_value_t doc_schema;

/* One rule as YAML, to be freed. */
char *doc_rule_text(const struct doc_rule *r);
char *doc_diff_text(const struct doc_diff *r);

#endif
