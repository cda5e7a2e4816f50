/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor/filters.h"
#include "doctor/parts.h"
#include "doctor/probe.h"

#define NEWER(v)                                                     \
	"boot Linux " v " or newer; in a container or a user-space " \
	"kernel, one that passes the call on:\nuname -r"

static const char landlock_repair[] =
	"add landlock to the kernel's security modules and restart:\n"
	"sudo sed -i \"s/^GRUB_CMDLINE_LINUX=\\\"/&lsm=landlock,"
	"$(cat /sys/kernel/security/lsm) /\" /etc/default/grub\n"
	"sudo update-grub && sudo reboot";

/* Checks that are one probe and fixed texts. */
static const struct {
	const char *id, *title;
	int (*probe)(void);
	enum doctor_status grave;
	const char *lost, *repair;
} rows[] = {
	{ "mount:open_tree", "open_tree", probe_open_tree, DOCTOR_FAIL,
	  "parts of the host tree cannot be put into the sandbox", NEWER("5.2") },
	{ "mount:setattr", "mount_setattr", probe_mount_setattr, DOCTOR_FAIL,
	  "the rest of / cannot be made read-only in one step, without a gap",
	  NEWER("5.12") },
	{ "mount:fsopen", "fsopen", probe_fsopen, DOCTOR_FAIL,
	  "layers cannot be mounted by descriptor", NEWER("5.2") },
	{ "call:pidfd", "pidfd", probe_pidfd, DOCTOR_FAIL,
	  "a process cannot be waited for and signalled without a race", NEWER("5.3") },
	{ "call:close_range", "close_range", probe_close_range, DOCTOR_FAIL,
	  "open files of the caller could reach the inside", NEWER("5.9") },
	{ "call:openat2", "openat2", probe_openat2, DOCTOR_FAIL,
	  "paths that the command controls cannot be followed safely", NEWER("5.6") },
	{ "seccomp", "seccomp filters", probe_seccomp, DOCTOR_FAIL,
	  "calls that reach around the sandbox (keyrings, terminals of others, io_uring) "
	  "cannot be closed",
	  NEWER("4.14, with CONFIG_SECCOMP_FILTER=y,") },
	{ "seccomp:notify", "seccomp user notification", probe_notify, DOCTOR_FAIL,
	  "commands cannot be judged; directories of the host tree cannot be renamed "
	  "inside (git mv, npm)",
	  NEWER("5.5") },
	{ "ptrace", "looking at programs", probe_trace, DOCTOR_FAIL,
	  "what runs cannot be compared with what was judged: nothing runs, unless with "
	  "--no-policy",
	  "allow ptrace of one's own children: sysctl kernel.yama.ptrace_scope=1" },
	{ "seccomp:killable", "killable notifications", probe_notify_killable,
	  DOCTOR_WARN,
	  "a signal at the wrong moment can make a supervised call happen twice",
	  NEWER("5.19") },
	{ "seccomp:addfd", "descriptors through notifications", probe_notify_addfd,
	  DOCTOR_WARN, "connections cannot be made for the command by a supervisor",
	  NEWER("5.9") },
	{ "seccomp:wake", "fast notifications", probe_notify_sync_wake, DOCTOR_INFO,
	  "supervised calls take a little longer when processors are shared",
	  NEWER("6.6") },
};

static const char busy_repair[] =
	"start stet outside the program that supervises this one (a container with a "
	"seccomp agent, or another stet)";

static void add_landlock(struct doctor_report *r)
{
	enum { WITH_SCOPES = 6 };
	AUTO_BUF struct buf found = BUF_INIT;
	int abi = probe_landlock();

	if (abi >= 0)
		buf_addf(&found, "ABI %d%s", abi, abi < WITH_SCOPES ? ", no scopes" : "");
	else if (abi == -EOPNOTSUPP)
		buf_adds(&found, "in the kernel, but not switched on");
	else
		buf_addf(&found, "not available: %s", strerror(-abi));
	doctor_add(r, "landlock", "Landlock", abi < WITH_SCOPES ? DOCTOR_WARN : DOCTOR_OK,
		   buf_str(&found),
		   "abstract Unix sockets of the host can be reached from the inside",
		   abi == -EOPNOTSUPP  ? landlock_repair
		   : abi < WITH_SCOPES ? NEWER("6.12, with CONFIG_SECURITY_LANDLOCK=y,")
				       : "");
}

/* Where no namespace can be made the mount calls were never reached. */
static const char *repair_of(const struct doctor_report *r, size_t row, int err)
{
	const struct doctor_check *ns = doctor_report_find(r, "ns:mount");

	if (!err)
		return "";
	if (err == -EBUSY)
		return busy_repair;
	if (err != -ENOSYS && !strncmp(rows[row].id, "mount:", 6) && ns &&
	    ns->status == DOCTOR_FAIL)
		return ns->repair;
	return rows[row].repair;
}

void doctor_filters(struct doctor_report *r)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_BUF struct buf found = BUF_INIT;
		int err = rows[i].probe();

		if (err == -EBUSY)
			buf_adds(&found, "another program already supervises this one");
		else if (err)
			buf_addf(&found, "not available: %s", strerror(-err));
		else
			buf_adds(&found, "works");
		doctor_add(r, rows[i].id, rows[i].title, err ? rows[i].grave : DOCTOR_OK,
			   buf_str(&found), rows[i].lost, repair_of(r, i, err));
	}
	add_landlock(r);
}
