/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_LOG_H
#define STET_BASE_LOG_H

#include <stdbool.h>

/*
 * Debug lines (--debug), one write(2) each, to stderr, with the microseconds since
 * log_enable(). Off by default. Safe between clone and exec. Not for errors: those are
 * values (err.h).
 */
void log_enable(bool on);
bool log_enabled(void);
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
