/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_INSIDE_WORKER_H
#define STET_CLI_INSIDE_WORKER_H

#include "cli/inside.h"

/*
 * A request of @len bytes (which may be more than @b holds, if more than INSIDE_MAX) in @b:
 * true with the current directory and the words in @words, which point into it, and NULL
 * after them. There are two words at least. False if it is no request.
 */
bool inside_parse(char *b, size_t len, char *words[INSIDE_WORDS + 1], size_t *n);

/* What answers one request, or makes the checkpoint of an interval; see sandbox.h. */
int inside_worker_main(int argc, char **argv, char *const *env);

#endif
