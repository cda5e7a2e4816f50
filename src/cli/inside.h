/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_INSIDE_H
#define STET_CLI_INSIDE_H

#include "cli/cli.h"

/*
 * stet inside of a sandbox. It can reach nothing of what is kept outside; for the few verbs
 * that are about its own transaction (VERB_INSIDE) it knocks at the door (ctl/inside_socket.h) and
 * shows what it is told. There is no door while a transaction is explored: then it says so. The
 * other end is inside_worker_main(), outside, for which every byte of
 * a request is hostile.
 *
 * One request in one message: INSIDE_HELLO, the current directory and the words of the command
 * line, each ended by NUL. Answers: messages that begin with a letter, 'o' for standard
 * output, 'e' for standard error, text after it; the last is 'x' and the exit status.
 */
#define INSIDE_HELLO "stet 1"
enum { INSIDE_MAX = 65536, INSIDE_WORDS = 256 };

/*
 * Returns the exit status if this is the inside and the verb is not one that works by
 * itself there; -1 otherwise: it is to be done here.
 */
int inside_line(struct cli *c, const struct verb *v, int argc, char **argv);

#endif
