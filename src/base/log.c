/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool enabled;
static struct timespec began;

void log_enable(bool on)
{
	enabled = on;
	clock_gettime(CLOCK_MONOTONIC, &began);
}

static long elapsed_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - began.tv_sec) * 1000000 +
	       (now.tv_nsec - began.tv_nsec) / 1000;
}

bool log_enabled(void)
{
	return enabled;
}

void log_debug(const char *fmt, ...)
{
	char line[1024];
	int saved = errno;
	size_t n, room;
	va_list ap;
	int w;

	if (!enabled)
		return;
	n = (size_t)snprintf(line, sizeof(line), "stet: %6ld us: ", elapsed_us());
	room = sizeof(line) - n - 1;
	va_start(ap, fmt);
	w = vsnprintf(line + n, room, fmt, ap);
	va_end(ap);
	n += w < 0 ? 0 : (size_t)w < room ? (size_t)w : room - 1;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		n = 0; /* nothing to be done about a closed stderr */
	errno = saved;
}
