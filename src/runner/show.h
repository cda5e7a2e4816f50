/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_SHOW_H
#define STET_RUNNER_SHOW_H

#include "runner/build.h"

int build_show(struct build *b, const struct step *s, struct err *e);

int build_socket(struct build *b, const struct step *s, struct err *e);

#endif
