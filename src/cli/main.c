/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "cli/cli.h"

extern char **environ;

int main(int argc, char **argv)
{
	int fd;

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
