/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CONF_ORIGIN_H
#define STET_CONF_ORIGIN_H

#include <stddef.h>

/* The author of a document, from the most trusted to the least trusted. */
enum conf_origin { CONF_BUILTIN, CONF_SYSTEM, CONF_USER, CONF_PROJECT };

/* "built-in", "system", "user", "project" */
const char *conf_origin_name(enum conf_origin origin);

/* The text of a document. The strings belong to the caller. */
struct conf_source {
	enum conf_origin origin;
	const char *name; /* of the file, for messages */
	const char *text;
	size_t len;
};

#endif
