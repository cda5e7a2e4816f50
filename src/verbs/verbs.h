/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_VERBS_H
#define STET_VERBS_VERBS_H

#include "call/verb.h"

/* verb_run, verb_exec, …: the rows. */
#define VERB(name) extern const struct verb verb_##name;
#include "verbs/verbs.def"
#undef VERB

#endif
