/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_COMPLAINT_H
#define STET_PRINT_COMPLAINT_H

#include <stdbool.h>

#include "base/err.h"

/* Writes "stet: MESSAGE; HINT" (the hint only if @hint) to standard error, safe for a terminal. */
void print_complaint(const struct err *e, bool hint);

#endif
