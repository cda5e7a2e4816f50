/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_SAY_H
#define STET_GATE_SAY_H

#include <sys/types.h>

/*
 * Writes a line to what process @pid has as standard error, if that is a pipe, a terminal,
 * a socket or an ordinary file. Never waits: what cannot be written at once is lost.
 */
void say_to(pid_t pid, const char *line);

#endif
