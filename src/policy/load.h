/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_LOAD_H
#define STET_POLICY_LOAD_H

#include "base/err.h"
#include "policy/policy.h"

/*
 * Makes the effective policy of the built-in layer and @n further ones. *out is to be released
 * with policy_free(). The texts are not needed after the call.
 *
 * Fails as a whole (ERR_USAGE, the message begins with "FILE:LINE: ") if a layer is not a
 * policy: a key or value is not known, an alias, the text is too large, a rule's test comes
 * out otherwise than the rule says, a rule denies its own hint, a project's layer would
 * loosen something. Nothing may run under a policy that did not load.
 */
int policy_load(const struct conf_source *sources, size_t n, struct policy **out,
		struct err *e);
void policy_free(struct policy *p); /* NULL is fine */

/* SHA-256 of a text, as 64 hexadecimal digits. */
void policy_text_hash(const char *text, size_t len, char hex[65]);

#endif
