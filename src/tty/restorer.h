/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_RESTORER_H
#define STET_TTY_RESTORER_H

#include <sys/types.h>

#include "tty/modes.h"
#include "tty/tty.h"

/*
 * A child that waits for our death and then restores the terminal. SIGKILL leaves us no time,
 * and a shell script would go on in raw mode, on the alternate screen.
 */
struct restorer_page {
	struct tty tty;
	struct modes modes;
};

struct restorer {
	struct restorer_page
		*page; /* shared with the child: the present state; NULL: none */
	pid_t pid;
};

/*
 * Before the terminal is changed. From here on the state in k->page is the one that counts;
 * the child reads it when we are dead. Returns 0, or -errno: then there is no keeper.
 */
int restorer_start(struct restorer *k, const struct tty *t, const struct modes *m);

/* The terminal is as it was: nobody has to wait any longer. Nothing, if there is none. */
void restorer_stop(struct restorer *k);

#endif
