/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_KERNEL_H
#define STET_SYS_KERNEL_H

#include <stdbool.h>

/* This version or a newer one? For what a kernel does without saying so. */
bool kernel_is(unsigned major, unsigned minor);

#endif
