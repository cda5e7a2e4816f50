/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_CLOCK_H
#define STET_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of a clock of the kernel, as a number. */
int64_t clock_ns(clockid_t clock);
int64_t clock_us(clockid_t clock);
int64_t clock_ms(clockid_t clock);

#endif
