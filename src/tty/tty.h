/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_TTY_H
#define STET_TTY_TTY_H

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

/* The user's terminal, and what it has to be put back to. */
struct tty {
	int fd; /* -1: we have none; not owned */
	bool raw;
	bool known; /* modes and size below are the foreground's at tty_look() */
	struct termios modes;
	struct winsize size;
};

/* Remembers modes and window size of @fd. */
void tty_look(struct tty *t, int fd);

/* May we use it now? A terminal that does not control us is nobody else's. */
bool tty_foreground(const struct tty *t);

/* Raw mode; repeated calls set it again but keep the modes remembered at the first. */
void tty_raw(struct tty *t);

/*
 * Ends raw mode. In the background it does nothing to the terminal: a shell that took
 * it back has set its own modes, and ours would break its line editor.
 */
void tty_restore(struct tty *t);

/* Gives @master the window size that the terminal has now. */
void tty_resize(const struct tty *t, int master);

/* Gives @master modes and size as they were at tty_look(). */
void tty_copy(const struct tty *t, int master);

/*
 * A description of our own of the terminal @fd, so that O_NONBLOCK does not reach the
 * other programs that use it. Returns -1 if there is none to be had.
 */
int tty_reopen(int fd, int mode);

#endif
