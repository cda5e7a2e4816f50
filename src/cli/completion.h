/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_COMPLETION_H
#define STET_CLI_COMPLETION_H

#include "print/print.h"

void completion_script(FILE *out, const char *shell);

#endif
