/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Becomes the program that its argv[0] names, for which no wait for the disk waits any more. A
 * program that needs to is broken by it, and the test that cuts the power has to notice. In the
 * kernel, since a program that is linked statically takes nothing that is preloaded.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IF_CALL(nr, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), (then), 0)

int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		IF_CALL(SYS_fsync, 4),
		IF_CALL(SYS_fdatasync, 3),
		IF_CALL(SYS_syncfs, 2),
		IF_CALL(SYS_sync_file_range, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		/* The error 0: success, and nothing was done. */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(*f), f };

	(void)argc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0)
		execv(argv[0], argv);
	perror(argv[0]);
	return 1;
}
