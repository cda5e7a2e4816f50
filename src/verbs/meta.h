/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_META_H
#define STET_VERBS_META_H

#include "call/verb.h"

/* Verbs about the program itself. */

struct version_req {
	struct verb_common common;
};
struct version_res {
	const char *version;
};

struct help_req {
	struct verb_common common;
	char **words; /* of the verb's name */
	bool man;
};
struct help_res {
	const struct verb *verb; /* NULL: all of them */
	bool man;
};

struct completion_req {
	struct verb_common common;
	const char *shell;
};
struct completion_res {
	const char *shell;
};

/* ERR_USAGE "unknown command", with the nearest one as hint. */
int verb_unknown(const char *name, struct err *e);

/* "[TX] [PATH...]", to be freed: the operands of a verb as a synopsis shows them. */
char *verb_operands(const struct verb *v);

#endif
