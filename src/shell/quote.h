/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_QUOTE_H
#define STET_SHELL_QUOTE_H

#include "base/arena.h"

/* The word in single quotes, so that a shell reads it as it is. */
const char *shell_quoted(struct arena *a, const char *w);

#endif
