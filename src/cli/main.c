/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"

extern char **environ;

/* A page of the journal's index could not be written: the disk is full. */
_Noreturn static void on_sigbus(int sig)
{
	static const char msg[] =
		"stet: no space left for the journal; free some, then stet prune\n";

	(void)sig;
	if (write(STDERR_FILENO, msg, sizeof(msg) - 1) < 0)
		_exit(125);
	_exit(125);
}

int main(int argc, char **argv)
{
	int fd;

	signal(SIGBUS, on_sigbus);
	/* Some daemons leave SIGCHLD ignored; then we could not wait for our children. */
	signal(SIGCHLD, SIG_DFL);
	/* At a limit of file sizes a write is to fail, not to end us; commands get it back. */
	signal(SIGXFSZ, SIG_IGN);

	/*
	 * With a standard descriptor closed, the next file we open would take its place, and
	 * what is meant for people would be written into it.
	 */
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
	return cli_main(argc, argv, environ);
}
