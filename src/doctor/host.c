/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <git2/version.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "diff/git2.h"
#include "diff/patch.h"
#include "doctor/host.h"
#include "doctor/parts.h"
#include "doctor/probe.h"
#include "limits/cgroup.h"
#include "limits/limit.h"

#define CGROUP_DIR "/sys/fs/cgroup"

static const char *env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool cgroup_says(const char *word)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/cgroup", "re");
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, word))
			return true;
	return false;
}

void doctor_container(struct buf *out)
{
	static const struct {
		const char *file, *name;
	} marks[] = {
		{ "/.dockerenv", "docker" },
		{ "/run/.containerenv", "podman" },
		{ "/run/systemd/container", "a container" },
	};
	size_t i;

	if (env("container")) {
		text_escape(out, env("container"), strnlen(env("container"), 64));
		return;
	}
	if (env("KUBERNETES_SERVICE_HOST")) {
		buf_adds(out, "kubernetes");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(marks); i++) {
		if (exists(marks[i].file)) {
			buf_adds(out, marks[i].name);
			return;
		}
	}
	if (cgroup_says("/docker/") || cgroup_says("/kubepods"))
		buf_adds(out, "a container");
}

static bool is_cgroup2(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* The directory of our own group in the version 2 tree mounted at @top; false if none. */
static bool own_cgroup(const char *top, struct buf *out)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3)) {
			buf_addf(out, "%s%s", top, line + 3);
			return true;
		}
	}
	return false;
}

static bool is_delegated(const char *top)
{
	AUTO_BUF struct buf dir = BUF_INIT;
	size_t len;

	if (!own_cgroup(top, &dir))
		return false;
	len = dir.len;
	buf_adds(&dir, "/cgroup.procs");
	if (access(buf_str(&dir), W_OK) < 0)
		return false;
	buf_truncate(&dir, len);
	return access(buf_str(&dir), W_OK) == 0;
}

static void add_cgroups(struct doctor_report *r)
{
	static const char lost[] =
		"limits of memory and processes are kept by looking several times a "
		"second, not by the kernel";
	enum doctor_status s = DOCTOR_OK;
	const char *found, *repair = "";

	if (is_cgroup2(CGROUP_DIR)) {
		if (is_delegated(CGROUP_DIR)) {
			found = "version 2, our group is delegated to us";
		} else {
			found = "version 2, not delegated to this user";
			repair =
				"systemd-run --user --scope -p Delegate=yes stet run -- COMMAND";
			s = DOCTOR_WARN;
		}
	} else if (exists(CGROUP_DIR "/memory") || exists(CGROUP_DIR "/unified")) {
		found = probe_is_root() ? "version 1, as root"
					: "version 1, not for ordinary users";
		repair =
			"add systemd.unified_cgroup_hierarchy=1 to the kernel's command line, "
			"on Debian in /etc/default/grub:\n"
			"sudo update-grub && sudo reboot";
		s = probe_is_root() ? DOCTOR_INFO : DOCTOR_WARN;
	} else {
		found = "not mounted";
		repair = "sudo mount -t cgroup2 none " CGROUP_DIR;
		s = DOCTOR_WARN;
	}
	doctor_add(r, "cgroup", "control groups", s, found, lost, repair);
}

/* What --memory, --pids and the others would be enforced by, here and now. */
static void add_limits(struct doctor_report *r)
{
	AUTO_BUF struct buf place = BUF_INIT, found = BUF_INIT;
	bool memory, pids, any = cgroup_place(&place, &memory, &pids);

	if (any && (memory || pids)) {
		buf_addf(&found, "%s%s%s by a group in ", memory ? "memory" : "",
			 memory && pids ? " and " : "", pids ? "processes" : "");
		text_escape(&found, place.data, place.len);
		buf_adds(&found, ", the rest by looking");
	} else {
		buf_addf(&found, "by looking%s",
			 probe_is_root() ? "" : ", processes by an rlimit, too");
	}
	doctor_add(r, "limits", "limits", DOCTOR_INFO, buf_str(&found),
		   "by looking, a limit can be passed for a fraction of a second", "");
}

static void add_yama(struct doctor_report *r)
{
	long scope = doctor_sysctl("/proc/sys/kernel/yama/ptrace_scope", -1);
	AUTO_BUF struct buf found = BUF_INIT;

	if (scope < 0)
		buf_adds(&found, "Yama is not in use");
	else
		buf_addf(&found, "kernel.yama.ptrace_scope = %ld", scope);
	doctor_add(r, "yama", "ptrace between processes",
		   scope >= 3 ? DOCTOR_WARN : DOCTOR_INFO, buf_str(&found),
		   "at 3 nobody may trace: debuggers fail inside as they do outside, and "
		   "processes cannot be stopped unnoticed",
		   scope >= 3 ? "sudo sysctl -w kernel.yama.ptrace_scope=2   # after a "
				"restart: 3 cannot be lowered"
			      : "");
}

static void add_io_uring(struct doctor_report *r)
{
	long off = doctor_sysctl("/proc/sys/kernel/io_uring_disabled", -1);

	doctor_add(
		r, "io_uring", "io_uring", DOCTOR_INFO,
		off < 0	   ? "the kernel has no switch for it"
		: off == 0 ? "on for all programs of the host"
			   : "restricted on the host",
		"nothing: inside a sandbox it is switched off, since it passes filters by",
		"");
}

static void add_git2(struct doctor_report *r)
{
	struct err e;
	bool bad = patch_probe(&e) < 0;

	doctor_add(r, "libgit2", "libgit2", bad ? DOCTOR_WARN : DOCTOR_OK,
		   bad ? e.msg : "compares and merges texts, in a process of its own",
		   "`stet diff` can list files, but not show lines",
		   bad ? "sudo apt-get install libgit2-" LIBGIT2_SOVERSION : "");
}

static bool in_path(const char *program, size_t len)
{
	const char *p = env("PATH"), *end;
	AUTO_BUF struct buf file = BUF_INIT;

	if (memchr(program, '/', len)) {
		buf_add(&file, program, len);
		return access(buf_str(&file), X_OK) == 0;
	}
	for (; p; p = *end ? end + 1 : NULL) {
		end = strchrnul(p, ':');
		buf_reset(&file);
		buf_add(&file, p, (size_t)(end - p));
		buf_addc(&file, '/');
		buf_add(&file, program, len);
		if (access(buf_str(&file), X_OK) == 0)
			return true;
	}
	return false;
}

static void add_pager(struct doctor_report *r)
{
	const char *pager = env("PAGER") ? env("PAGER") : "less";
	size_t len = strcspn(pager, " \t");
	AUTO_BUF struct buf found = BUF_INIT;
	bool ok = in_path(pager, len);

	text_quote(&found, pager, len);
	buf_adds(&found, ok ? "" : " is not in PATH");
	doctor_add(r, "pager", "pager", ok ? DOCTOR_OK : DOCTOR_WARN, buf_str(&found),
		   "long output runs off the screen",
		   ok		  ? ""
		   : env("PAGER") ? "export PAGER=less"
				  : "sudo apt-get install less");
}

static void add_surroundings(struct doctor_report *r)
{
	AUTO_BUF struct buf container = BUF_INIT;
	AUTO_BUF struct buf txn = BUF_INIT;
	const char *id = env("STET_TXN");

	doctor_container(&container);
	doctor_add(r, "container", "container", DOCTOR_INFO,
		   container.len ? buf_str(&container) : "none that shows",
		   "inside one, its rules come first: see the namespaces above", "");
	if (id) {
		buf_adds(&txn, "inside transaction ");
		text_quote(&txn, id, strnlen(id, 64));
	}
	doctor_add(r, "nested", "inside stet", DOCTOR_INFO, id ? buf_str(&txn) : "no",
		   "what is found here holds for the inside; the host may allow more",
		   "");
}

void doctor_host(struct doctor_report *r)
{
	add_cgroups(r);
	add_limits(r);
	add_yama(r);
	add_io_uring(r);
	add_git2(r);
	add_pager(r);
	add_surroundings(r);
}
