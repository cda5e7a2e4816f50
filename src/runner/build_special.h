/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_BUILD_SPECIAL_H
#define STET_RUNNER_BUILD_SPECIAL_H

#include "runner/build.h"

int build_proc(struct build *b, const struct step *s, struct err *e);

int build_dev(struct build *b, const struct step *s, struct err *e);

int build_run(struct build *b, const struct step *s, struct err *e);

#endif
