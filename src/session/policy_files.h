/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_POLICY_FILES_H
#define STET_SESSION_POLICY_FILES_H

#include "call/ctx.h"
#include "call/schema.h"
#include "policy/policy.h"

/* The state of a project's own policy. */
enum project_policy {
	PROJECT_NONE,	 /* there is none */
	PROJECT_ALLOWED, /* it is in force */
	PROJECT_WAITING, /* nobody has allowed it: not in force */
	PROJECT_CHANGED, /* it is not what was allowed: not in force */
};

/* Row of a result, about an enum project_policy: "project_policy" if it is not in force. */
extern const struct field project_fields[];

struct op_policy {
	const struct policy *p;
	struct policy *owned; /* NULL: the built-in one */
	char *files[3];	      /* of the system, the user, the project; NULL: none */
	enum project_policy project;
	char *project_file;
};

/*
 * The policy in force in @workspace: the built-in one with what the system, the user and the
 * project (once it is allowed) add. A file that cannot be read or is no policy is an error:
 * nothing may run then. Free @out in any case.
 */
int op_policy_load(struct op_ctx *ctx, const char *workspace, struct op_policy *out,
		   struct err *e);
/* op_policy_load() with @file as the user's policy. */
int op_policy_load_file(struct op_ctx *ctx, const char *file, struct op_policy *out,
			struct err *e);
void op_policy_free(struct op_policy *p);

/* Puts the policy of the project in @dir in force, as it is now (@hash is told), or, with
 * @revoke, out of force. ERR_STATE if there is none. */
int op_policy_allow(struct op_ctx *ctx, const char *dir, bool revoke, char hash[65],
		    char **file, struct err *e);

#endif
