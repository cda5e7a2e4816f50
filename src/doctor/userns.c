/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "doctor/host.h"
#include "doctor/parts.h"
#include "doctor/probe.h"
#include "doctor/userns.h"

#define SYS_MAX "/proc/sys/user/max_user_namespaces"
#define SYS_DEBIAN "/proc/sys/kernel/unprivileged_userns_clone"
#define SYS_APPARMOR "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

static const char userns_lost[] =
	"without user namespaces there is no sandbox: `stet run` "
	"refuses to start";

static const char container_repair[] =
	"start the container with these options (docker and podman):\n"
	"--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
	"--security-opt systempaths=unconfined";

void doctor_sysctl_repair(const char *name, const char *value, struct buf *out)
{
	buf_addf(out, "echo '%s = %s' | sudo tee /etc/sysctl.d/60-stet-%s.conf\n", name,
		 value, strrchr(name, '.') + 1);
	buf_addf(out, "sudo sysctl -w %s=%s", name, value);
}

void doctor_apparmor_profile(const char *exe, struct buf *out)
{
	const char *p;

	buf_adds(out, "sudo tee /etc/apparmor.d/stet >/dev/null <<'EOF'\n"
		      "abi <abi/4.0>,\n"
		      "include <tunables/global>\n\n"
		      "profile stet \"");
	/* A path in a profile is a pattern: what would match more is escaped. */
	for (p = exe; *p; p++) {
		if (strchr("\\\"*?[]{}^@", *p))
			buf_addc(out, '\\');
		buf_addc(out, *p);
	}
	buf_adds(out, "\" flags=(unconfined) {\n"
		      "  userns,\n"
		      "  include if exists <local/stet>\n"
		      "}\n"
		      "EOF\n"
		      "sudo apparmor_parser -r -W /etc/apparmor.d/stet");
}

static bool has_controls(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static bool is_filtered(void)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	int mode;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			return mode != 0;
	return false;
}

void doctor_userns_facts(struct userns_facts *f, struct buf *container, struct buf *exe)
{
	char path[PATH_MAX];
	ssize_t n;

	doctor_container(container);
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	/* A name that could break out of the profile is not put into one. */
	buf_adds(exe, n <= 0 || has_controls(path) ? "/usr/local/bin/stet" : path);
	*f = (struct userns_facts){
		.err = probe_userns(),
		.max = doctor_sysctl(SYS_MAX, -1),
		.debian = doctor_sysctl(SYS_DEBIAN, -1),
		.apparmor = doctor_sysctl(SYS_APPARMOR, -1),
		.filtered = is_filtered(),
		.container = container->len ? buf_str(container) : NULL,
		.exe = buf_str(exe),
	};
}

void doctor_userns_explain(const struct userns_facts *f, struct buf *found,
			   struct buf *repair)
{
	buf_addf(found, "cannot be made: %s", strerror(-f->err));
	if (f->max == 0) {
		buf_adds(found, "; user.max_user_namespaces is 0");
		doctor_sysctl_repair("user.max_user_namespaces", "15000", repair);
	} else if (f->debian == 0) {
		buf_adds(found, "; kernel.unprivileged_userns_clone is 0");
		doctor_sysctl_repair("kernel.unprivileged_userns_clone", "1", repair);
	} else if (f->apparmor > 0 && (f->err == -EPERM || f->err == -EACCES)) {
		buf_adds(found, "; AppArmor allows them only to programs with a profile");
		doctor_apparmor_profile(f->exe, repair);
	} else if (f->err == -ENOSPC || f->err == -EUSERS) {
		buf_addf(found, "; too many, or nested more than 32 deep (limit %ld)",
			 f->max);
		doctor_sysctl_repair("user.max_user_namespaces", "65536", repair);
	} else if (f->container || f->filtered) {
		buf_addf(found, "; %s forbids them",
			 f->container ? f->container : "a seccomp filter");
		if (f->container)
			buf_adds(repair, container_repair);
		else
			buf_adds(
				repair,
				"start it outside the program that set the filter; for a "
				"systemd service:\n"
				"sudo systemctl edit UNIT   # RestrictNamespaces=no, "
				"SystemCallFilter=");
	} else if (f->err == -EPERM) {
		buf_adds(found, "; no switch that forbids them was found: a chroot or "
				"a security module does");
		buf_adds(repair, "leave the chroot, or look for the denial:\n"
				 "sudo dmesg | grep -i -e denied -e userns");
	} else {
		buf_adds(found, "; the kernel has none");
		buf_adds(repair, "boot a kernel with CONFIG_USER_NS=y:\n"
				 "grep CONFIG_USER_NS= /boot/config-$(uname -r)");
	}
}

/* A switch that forbids is grave only if it really keeps us from working. */
static enum doctor_status switch_status(const struct userns_facts *f, bool forbids)
{
	if (!forbids)
		return DOCTOR_OK;
	return f->err ? DOCTOR_FAIL : DOCTOR_INFO;
}

static void add_switch(struct doctor_report *r, const struct userns_facts *f,
		       const char *id, const char *name, long value, bool forbids,
		       const char *repair)
{
	AUTO_BUF struct buf found = BUF_INIT;

	if (value < 0)
		buf_adds(&found, "not on this kernel");
	else
		buf_addf(&found, "%ld%s", value,
			 !forbids ? ""
			 : f->err ? ", forbids user namespaces"
				  : ", does not apply to this program");
	doctor_add(r, id, name, switch_status(f, forbids), buf_str(&found), userns_lost,
		   forbids ? repair : "");
}

static void add_switches(struct doctor_report *r, const struct userns_facts *f)
{
	AUTO_BUF struct buf max = BUF_INIT;
	AUTO_BUF struct buf debian = BUF_INIT;
	AUTO_BUF struct buf apparmor = BUF_INIT;

	doctor_sysctl_repair("user.max_user_namespaces", "15000", &max);
	doctor_sysctl_repair("kernel.unprivileged_userns_clone", "1", &debian);
	doctor_apparmor_profile(f->exe, &apparmor);
	add_switch(r, f, "switch:max", "user.max_user_namespaces", f->max, f->max == 0,
		   buf_str(&max));
	add_switch(r, f, "switch:debian", "kernel.unprivileged_userns_clone", f->debian,
		   f->debian == 0, buf_str(&debian));
	add_switch(r, f, "switch:apparmor",
		   "kernel.apparmor_restrict_unprivileged_userns", f->apparmor,
		   f->apparmor > 0, buf_str(&apparmor));
	doctor_add(
		r, "switch:seccomp", "seccomp filter on this process", DOCTOR_INFO,
		!f->filtered ? "none"
		: f->err     ? "there is one; it may forbid namespaces"
			     : "there is one; it allows namespaces",
		"a filter of a container or service manager can forbid namespaces and mounts",
		f->filtered && f->err ? container_repair : "");
}

/* The repair of everything that cannot work without a user namespace. */
static const char *or_userns(const struct userns_facts *f,
			     const struct buf *userns_repair, const char *own)
{
	return f->err ? buf_str(userns_repair) : own;
}

static void add_kind(struct doctor_report *r, const struct userns_facts *f,
		     const struct buf *userns_repair, const char *kind, int flag,
		     enum doctor_status grave, const char *lost)
{
	AUTO_BUF struct buf id = BUF_INIT;
	AUTO_BUF struct buf title = BUF_INIT;
	AUTO_BUF struct buf found = BUF_INIT;
	AUTO_BUF struct buf repair = BUF_INIT;
	int err = flag == CLONE_NEWNS ? probe_mount() : probe_namespace(flag);

	buf_addf(&id, "ns:%s", kind);
	buf_addf(&title, "%s namespace", kind);
	if (err == -ENOSPC) {
		AUTO_BUF struct buf name = BUF_INIT;

		buf_addf(&name, "user.max_%s_namespaces",
			 flag == CLONE_NEWNS ? "mnt" : kind);
		doctor_sysctl_repair(buf_str(&name), "15000", &repair);
	} else if (err) {
		buf_adds(&repair, container_repair);
	}
	if (err)
		buf_addf(&found, "cannot be made: %s", strerror(-err));
	else
		buf_adds(&found, "works");
	doctor_add(r, buf_str(&id), buf_str(&title), err ? grave : DOCTOR_OK,
		   buf_str(&found), lost,
		   err ? or_userns(f, userns_repair, buf_str(&repair)) : "");
}

static void add_proc(struct doctor_report *r, const struct userns_facts *f,
		     const struct buf *userns_repair)
{
	AUTO_BUF struct buf found = BUF_INIT;
	int err = probe_proc();

	if (!err)
		buf_adds(&found, "can be mounted");
	else if (err == -EPERM && !f->err)
		buf_adds(&found,
			 "refused: parts of /proc are covered by other mounts, as "
			 "containers do");
	else
		buf_addf(&found, "cannot be mounted: %s", strerror(-err));
	doctor_add(
		r, "proc", "new /proc", err ? DOCTOR_FAIL : DOCTOR_OK, buf_str(&found),
		"the sandbox has its own processes and must show them, not the host's",
		err ? or_userns(f, userns_repair,
				"docker run --security-opt systempaths=unconfined …   # "
				"podman: --security-opt unmask=ALL")
		    : "");
}

void doctor_namespaces(struct doctor_report *r)
{
	AUTO_BUF struct buf container = BUF_INIT;
	AUTO_BUF struct buf exe = BUF_INIT;
	AUTO_BUF struct buf found = BUF_INIT;
	AUTO_BUF struct buf repair = BUF_INIT;
	struct userns_facts f;
	int err;

	doctor_userns_facts(&f, &container, &exe);
	if (f.err)
		doctor_userns_explain(&f, &found, &repair);
	else
		buf_adds(&found, "can be made");
	doctor_add(r, "userns", "user namespace", f.err ? DOCTOR_FAIL : DOCTOR_OK,
		   buf_str(&found), userns_lost, buf_str(&repair));
	err = probe_userns_nested();
	buf_reset(&found);
	if (err)
		buf_addf(&found, "cannot be made: %s", strerror(-err));
	else
		buf_adds(&found, "can be made");
	if (err && !f.err) {
		/* The outer one works, so what is in the way is the second: the number, or the
		 * right to mount that AppArmor takes away with the first. */
		f.err = err;
		doctor_userns_explain(&f, &found, &repair);
		f.err = 0;
	}
	doctor_add(
		r, "userns:nested", "user namespace in a user namespace",
		err ? DOCTOR_FAIL : DOCTOR_OK, buf_str(&found),
		"the command lives in the second one, from which no mount can be undone",
		err ? buf_str(&repair) : "");
	add_switches(r, &f);
	add_kind(r, &f, &repair, "mount", CLONE_NEWNS, DOCTOR_FAIL,
		 "without mounts of its own the command would write to the host");
	add_kind(r, &f, &repair, "pid", CLONE_NEWPID, DOCTOR_FAIL,
		 "background processes could outlive the sandbox and signal the host's");
	add_kind(r, &f, &repair, "ipc", CLONE_NEWIPC, DOCTOR_FAIL,
		 "shared memory and queues of the host could be changed");
	add_kind(r, &f, &repair, "uts", CLONE_NEWUTS, DOCTOR_FAIL,
		 "the host name could be changed by root inside");
	add_kind(r, &f, &repair, "cgroup", CLONE_NEWCGROUP, DOCTOR_WARN,
		 "the command could see, and as root leave, its resource limits");
	add_kind(r, &f, &repair, "net", CLONE_NEWNET, DOCTOR_WARN,
		 "the network cannot be shut off or filtered; nothing else is lost");
	add_proc(r, &f, &repair);
}
