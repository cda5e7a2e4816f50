/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_us(clockid_t clock)
{
	return clock_ns(clock) / 1000;
}

int64_t clock_ms(clockid_t clock)
{
	return clock_ns(clock) / 1000000;
}
