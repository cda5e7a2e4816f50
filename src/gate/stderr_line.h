/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_STDERR_LINE_H
#define STET_GATE_STDERR_LINE_H

#include <sys/types.h>

/*
 * Writes a line to the standard error of process @pid, if that is a pipe, a terminal, a socket
 * or an ordinary file. Never waits: a line that cannot be written at once is lost.
 */
void stderr_line(pid_t pid, const char *line);

#endif
