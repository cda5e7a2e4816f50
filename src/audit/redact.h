/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_REDACT_H
#define STET_AUDIT_REDACT_H

#include "audit/audit.h"

void redact_word(struct redact *r, const char *s, size_t len, struct buf *out);

#endif
