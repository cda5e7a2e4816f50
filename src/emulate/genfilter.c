/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time tool: the sandbox's seccomp filter, written in libseccomp's terms, printed as
 * an array of instructions. Compiling it at every start would cost more than loading it.
 * With the argument `gate` it holds every exec, too; with `lone` it is for a user namespace
 * in which the user's own ids are all there are. `pinned` is another one: nobody gets mounts of his
 * own.
 */
#include <errno.h>
#include <linux/btrfs.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SET(n, v) SCMP_CMP(n, SCMP_CMP_MASKED_EQ, (scmp_datum_t)(v), (scmp_datum_t)(v))
#define SAME(n, v) SCMP_CMP(n, SCMP_CMP_MASKED_EQ, 0xffffffffu, (scmp_datum_t)(v))

struct rule {
	uint32_t action;
	int nr;
	unsigned nargs;
	struct scmp_arg_cmp arg;
};

static const struct rule *rules(size_t *n)
{
	static struct rule r[] = {
		/* Renaming a directory of a lower layer is ours to do: overlayfs says EXDEV. */
		{ SCMP_ACT_NOTIFY, SCMP_SYS(rename), 0, { 0 } },
		{ SCMP_ACT_NOTIFY, SCMP_SYS(renameat), 0, { 0 } },
		{ SCMP_ACT_NOTIFY, SCMP_SYS(renameat2), 0, { 0 } },
		/* Reaches the hypervisor whatever the network namespace. */
		{ SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, { 0 } },
		/* Makes others wait, on the host too for what is written through. */
		{ SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(fcntl), 1, { 0 } },
		/* Does file operations that no filter sees. */
		{ SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0, { 0 } },
		{ SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_enter), 0, { 0 } },
		{ SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_register), 0, { 0 } },
		/*
		 * With a descriptor of a cgroup it starts a process there, out of the run's
		 * own, however the cgroups are mounted; its flags are out of a filter's sight.
		 * Who hears that there is no such call uses clone.
		 */
		{ SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, { 0 } },
		/* Keys belong to the user, not to a namespace. */
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(keyctl), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(add_key), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(request_key), 0, { 0 } },
		/* Opens files by inode, past every mount. */
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open_by_handle_at), 0, { 0 } },
		/* Kernel surface that no build or agent needs. */
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(userfaultfd), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(bpf), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kexec_load), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kexec_file_load), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(init_module), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(finit_module), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(delete_module), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(swapon), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(swapoff), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(reboot), 0, { 0 } },
		{ SCMP_ACT_ERRNO(EPERM), SCMP_SYS(quotactl), 0, { 0 } },
	};

	r[3].arg = SAME(0, AF_VSOCK);
	r[4].arg = SAME(1, F_SETLEASE);
	*n = sizeof(r) / sizeof(*r);
	return r;
}

static const unsigned long ioctls[] = {
	/* Typing into a terminal for somebody else. */
	TIOCSTI,
	TIOCLINUX,
	/*
	 * No snapshot of a btrfs subvolume holds what is in another subvolume below it: what a
	 * command did there would be neither shown nor taken back. A read-only subvolume could not
	 * be removed with a private /tmp. A snapshot shows what lies under the mounts of its
	 * source, and a subvolume is removed by number from anywhere on its filesystem: no mount
	 * would hide a store from that.
	 */
	BTRFS_IOC_SUBVOL_CREATE,
	BTRFS_IOC_SUBVOL_CREATE_V2,
	BTRFS_IOC_SNAP_CREATE,
	BTRFS_IOC_SNAP_CREATE_V2,
	BTRFS_IOC_SNAP_DESTROY,
	BTRFS_IOC_SNAP_DESTROY_V2,
	BTRFS_IOC_SUBVOL_SETFLAGS,
};

static const int execs[] = { SCMP_SYS(execve), SCMP_SYS(execveat) };

/*
 * Every group that is not mapped is shown as the same one, which is also the group that files of
 * root and of everybody else seem to have: who asks would take himself for a member of it, and
 * try to give files to it, which the kernel refuses. So the answer is that there are none (no
 * error: 0). What the kernel itself knows, and by which it judges, stays as it is.
 */
static const uint32_t no_groups = SCMP_ACT_ERRNO(0);

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "genfilter: %s: error %d\n", what, -r);
	exit(1);
}

static void add_rules(scmp_filter_ctx c, bool gate, bool lone)
{
	const struct rule *r;
	size_t n;

	r = rules(&n);
	for (size_t i = 0; i < n; i++)
		check(seccomp_rule_add_array(c, r[i].action, r[i].nr, r[i].nargs,
					     &r[i].arg),
		      "rule");
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(*ioctls); i++)
		check(seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
				       SAME(1, ioctls[i])),
		      "ioctl");
	/* Setting limits of another process, which may be one of ours: see notify.c. */
	check(seccomp_rule_add(c, SCMP_ACT_NOTIFY, SCMP_SYS(prlimit64), 2,
			       SCMP_CMP(0, SCMP_CMP_NE, 0, 0),
			       SCMP_CMP(2, SCMP_CMP_NE, 0, 0)),
	      "limits");
	if (lone) {
		check(seccomp_rule_add(c, no_groups, SCMP_SYS(getgroups), 0), "groups");
		/* Only this call, which is git's: others link by another. See notify.c. */
		check(seccomp_rule_add(c, SCMP_ACT_NOTIFY, SCMP_SYS(link), 0), "link");
	}
	if (gate)
		for (size_t i = 0; i < sizeof(execs) / sizeof(*execs); i++)
			check(seccomp_rule_add(c, SCMP_ACT_NOTIFY, execs[i], 0), "gate");
}

/*
 * A mount keeps its place while it is in the mount namespace of who moves or removes the name
 * beneath it. So there is to be no other one, and in this one nothing is unmounted.
 */
static void add_pinned(scmp_filter_ctx c)
{
	static const int calls[] = { SCMP_SYS(pivot_root), SCMP_SYS(umount2),
				     SCMP_SYS(setns) };

	/* clone3 is refused by the other filter. */
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		check(seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), calls[i], 0), "mounts");
	check(seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
			       SET(0, CLONE_NEWNS)),
	      "unshare");
	check(seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			       SET(0, CLONE_NEWNS)),
	      "clone");
}

int main(int argc, char **argv)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	struct sock_filter f;
	FILE *tmp = tmpfile();

	if (!c || !tmp)
		check(-ENOMEM, "start");
	/* Other ABIs number their calls otherwise: nothing below would hold for them. */
	check(seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
	      "badarch");
	if (has(argc, argv, "pinned"))
		add_pinned(c);
	else
		add_rules(c, has(argc, argv, "gate"), has(argc, argv, "lone"));
	check(seccomp_export_bpf(c, fileno(tmp)), "export");
	rewind(tmp);
	puts("/* Generated by genfilter.c. */");
	while (fread(&f, sizeof(f), 1, tmp) == 1)
		printf("\t{ 0x%04x, %u, %u, 0x%08x },\n", f.code, f.jt, f.jf, f.k);
	seccomp_release(c);
	return 0;
}
