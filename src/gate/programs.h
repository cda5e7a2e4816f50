/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_PROGRAMS_H
#define STET_GATE_PROGRAMS_H

#include "gate/image.h"

/*
 * The name of the program in the usual directories that the open (O_PATH) file @fd is a copy
 * of, or NULL. The answer is kept for each file.
 */
const char *programs_find(int fd, const struct stat *st);

/* Is this the name of a dynamic loader? */
bool programs_loader(const char *path);

#endif
