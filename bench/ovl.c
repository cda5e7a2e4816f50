/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the design: one volatile kernel overlay over one tree, in a user and a
 * mount namespace, and nothing else. What stet adds is measured against this.
 *
 * usage: ovl TREE UPPER WORK COMMAND...
 *
 * Paths may hold no comma and no colon.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "ovl: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

int main(int argc, char *argv[])
{
	char map[64], opts[4096 * 3];
	unsigned uid = getuid(), gid = getgid();

	if (argc < 5) {
		fprintf(stderr, "usage: ovl TREE UPPER WORK COMMAND...\n");
		return 125;
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		die("unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	put("/proc/self/gid_map", map);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("mount");
	snprintf(opts, sizeof(opts),
		 "lowerdir=%s,upperdir=%s,workdir=%s,volatile,userxattr", argv[1],
		 argv[2], argv[3]);
	if (mount("bench", argv[1], "overlay", MS_NOSUID | MS_NODEV, opts) < 0)
		die("overlay");
	/* The present directory is still the one below the overlay. */
	if (chdir(argv[1]) < 0)
		die(argv[1]);
	execvp(argv[4], argv + 4);
	die(argv[4]);
}
