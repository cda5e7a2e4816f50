/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_PRINT_POINT_H
#define STET_CLI_PRINT_POINT_H

#include "cli/cli.h"

int print_timeline(struct cli *c, const struct log_res *res);

#endif
