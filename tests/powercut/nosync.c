/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded: nothing waits for the disk any more. A program that needs to is broken by
 * it, and the test that cuts the power has to notice.
 */
#include <unistd.h>

int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

int syncfs(int fd)
{
	(void)fd;
	return 0;
}
