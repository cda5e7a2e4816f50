/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/tty.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void tty_look(struct tty *t, int fd)
{
	t->fd = fd;
	/* In the background these would be the modes of the shell's line editor. */
	t->known = tty_foreground(t) && tcgetattr(fd, &t->modes) == 0;
	if (ioctl(fd, TIOCGWINSZ, &t->size))
		t->size = (struct winsize){ 0 };
}

bool tty_foreground(const struct tty *t)
{
	pid_t group = tcgetpgrp(t->fd);

	return group < 0 || group == getpgrp();
}

void tty_raw(struct tty *t)
{
	struct termios raw;

	if (!t->raw && tcgetattr(t->fd, &t->modes))
		return;
	t->raw = true;
	raw = t->modes;
	cfmakeraw(&raw);
	tcsetattr(t->fd, TCSANOW, &raw);
}

void tty_restore(struct tty *t)
{
	if (!t->raw)
		return;
	t->raw = false;
	if (tty_foreground(t))
		tcsetattr(t->fd, TCSANOW, &t->modes);
}

void tty_resize(const struct tty *t, int master)
{
	struct winsize size;

	if (ioctl(t->fd, TIOCGWINSZ, &size) == 0)
		ioctl(master, TIOCSWINSZ, &size);
}

void tty_copy(const struct tty *t, int master)
{
	if (t->known)
		tcsetattr(master, TCSANOW, &t->modes);
	ioctl(master, TIOCSWINSZ, &t->size);
}

int tty_reopen(int fd, int mode)
{
	char path[32];
	struct stat st;

	/* Opening a pty's master again would make a new pty. */
	if (fstat(fd, &st) || st.st_rdev == makedev(5, 2))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}
