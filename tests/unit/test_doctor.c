/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "doctor/doctor.h"
#include "doctor/parts.h"
#include "doctor/probe.h"
#include "doctor/probe_fs.h"
#include "doctor/userns.h"

static char *scratch;

static int make_scratch(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	scratch = xasprintf("%s/stet-doctor-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(scratch))
		return -1;
	/* The user that one test becomes must be able to use it. */
	chmod(scratch, 0777);
	setenv("STET_STATE_DIR", scratch, 1);
	return chdir(scratch);
}

static int remove_scratch(void **state)
{
	int r;

	(void)state;
	if (chdir("/") < 0)
		return -1;
	r = rmdir(scratch); /* fails if a probe left anything in it */
	free(scratch);
	return r;
}

/* Runs @fn in a child, since what it does to the process cannot be undone. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		int r = fn();

		_exit(r);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* A number for each way a report can be wrong; 0 if it is right. */
static int faults(const struct doctor_report *r)
{
	size_t i, j;

	if (r->n < 30)
		return 10;
	for (i = 0; i < r->n; i++) {
		const struct doctor_check *c = &r->checks[i];

		if (!*c->id || !*c->title || !*c->found || !*c->lost)
			return 11;
		if (c->status >= DOCTOR_WARN && !*c->repair)
			return 12;
		for (j = 0; j < i; j++)
			if (!strcmp(r->checks[j].id, c->id))
				return 13;
	}
	return 0;
}

static void every_check_is_complete(void **state)
{
	struct doctor_report r;
	struct err e;

	(void)state;
	assert_int_equal(op_doctor(&r, &e), 0);
	assert_int_equal(faults(&r), 0);
	doctor_report_free(&r);
	assert_int_equal(r.n, 0);
}

static void this_machine_can_run_it(void **state)
{
	static const char *const needed[] = {
		"kernel",	"userns",	  "userns:nested", "ns:mount",
		"ns:pid",	"proc",		  "mount:setattr", "mount:open_tree",
		"mount:fsopen", "seccomp:notify", "ptrace",	   "overlay"
	};
	const struct doctor_check *c;
	struct doctor_report r;
	struct err e;
	size_t i;

	(void)state;
	assert_int_equal(op_doctor(&r, &e), 0);
	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		c = doctor_report_find(&r, needed[i]);
		assert_non_null(c);
		if (c->status != DOCTOR_OK)
			print_error("%s: %s\n", c->id, c->found);
		assert_int_equal(c->status, DOCTOR_OK);
	}
	c = doctor_report_find(&r, "overlay:state");
	assert_non_null(c);
	assert_int_equal(c->status, DOCTOR_OK);
	assert_null(doctor_report_find(&r, "no such check"));
	doctor_report_free(&r);
}

static void nothing_is_left_behind(void **state)
{
	struct stat before, after;
	struct doctor_report r;
	struct err e;

	(void)state;
	setenv("HOME", scratch, 1);
	assert_int_equal(stat(scratch, &before), 0);
	assert_int_equal(op_doctor(&r, &e), 0);
	doctor_report_free(&r);
	assert_int_equal(stat(scratch, &after), 0);
	assert_int_equal(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	/* No child either: all of them were waited for. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static int write_text(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* In a namespace of our own the limit is ours to set; it holds for what is made in it. */
static int doctor_without_userns(void)
{
	const struct doctor_check *c, *nested, *mountns;
	struct doctor_report r;
	struct err e;
	int bad;

	if (probe_enter(CLONE_NEWUSER) < 0 ||
	    write_text("/proc/sys/user/max_user_namespaces", "0") < 0)
		return 1;
	if (op_doctor(&r, &e) < 0)
		return 2;
	bad = faults(&r);
	if (bad)
		return bad;
	c = doctor_report_find(&r, "userns");
	if (!c || c->status != DOCTOR_FAIL)
		return 3;
	if (!strstr(c->found, "user.max_user_namespaces is 0") ||
	    !strstr(c->repair, "sysctl -w user.max_user_namespaces="))
		return 4;
	c = doctor_report_find(&r, "switch:max");
	if (!c || c->status != DOCTOR_FAIL)
		return 5;
	nested = doctor_report_find(&r, "userns:nested");
	if (!nested || nested->status != DOCTOR_FAIL)
		return 6;
	/* What depends on it points to the same repair. */
	mountns = doctor_report_find(&r, "ns:mount");
	if (!mountns)
		return 7;
	if (mountns->status == DOCTOR_FAIL &&
	    !strstr(mountns->repair, "max_user_namespaces"))
		return 8;
	if (doctor_report_worst(&r) != DOCTOR_FAIL)
		return 9;
	doctor_report_free(&r);
	return 0;
}

static void a_forbidden_namespace_is_a_failure(void **state)
{
	(void)state;
	assert_int_equal(in_child(doctor_without_userns), 0);
}

/* A procfs partly covered, as containers have it, must be noticed. */
static int doctor_with_masked_proc(void)
{
	int r;

	if (probe_enter(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
		return 1;
	if (mount("none", "/proc/sys", "tmpfs", MS_RDONLY, "size=4k") < 0)
		return 2;
	/* A second user namespace locks the cover, as for a container's payload. */
	if (probe_enter(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 3;
	r = probe_proc();
	return r == -EPERM ? 0 : 4;
}

static void a_masked_proc_is_noticed(void **state)
{
	(void)state;
	assert_int_equal(in_child(doctor_with_masked_proc), 0);
}

static int doctor_as_nobody(void)
{
	struct doctor_report r;
	struct err e;
	int bad;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	/* exec would do this; without it /proc/self belongs to root. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return 2;
	if (op_doctor(&r, &e) < 0)
		return 3;
	bad = faults(&r);
	if (bad)
		return bad;
	if (doctor_report_find(&r, "userns")->status != DOCTOR_OK ||
	    doctor_report_find(&r, "overlay:state")->status != DOCTOR_OK)
		return 4;
	doctor_report_free(&r);
	return 0;
}

static void it_runs_as_an_ordinary_user(void **state)
{
	(void)state;
	if (geteuid() != 0) /* then every other test here has shown it */
		return;
	assert_int_equal(in_child(doctor_as_nobody), 0);
}

/* An overlay as upper: the root of a container. Must be refused with the way out. */
static int doctor_on_overlay(void)
{
	const struct doctor_check *c;
	struct doctor_report r;
	struct probe_fs fs;
	struct err e;
	int r1;

	if (probe_enter(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 1;
	if (mount("none", "/tmp", "tmpfs", 0, "size=1m") < 0 || chdir("/tmp") < 0)
		return 2;
	if (mkdir("lo", 0755) || mkdir("up", 0755) || mkdir("wk", 0755) ||
	    mkdir("mnt", 0755))
		return 3;
	if (mount("none", "mnt", "overlay", 0,
		  "lowerdir=lo,upperdir=up,workdir=wk,userxattr") < 0)
		return 4;
	r1 = probe_fs("/tmp/mnt", &fs);
	if (r1 < 0 || strcmp(fs.type, "overlay") || fs.write || !fs.overlay)
		return 5;
	setenv("STET_STATE_DIR", "/tmp/mnt/not/there/yet", 1);
	if (op_doctor(&r, &e) < 0)
		return 6;
	c = doctor_report_find(&r, "overlay:state");
	if (!c || c->status != DOCTOR_FAIL || !strstr(c->repair, "STET_STATE_DIR="))
		return 7;
	if (access("/tmp/mnt/not", F_OK) == 0)
		return 8;
	doctor_report_free(&r);
	return 0;
}

static void an_overlay_cannot_hold_layers(void **state)
{
	(void)state;
	assert_int_equal(in_child(doctor_on_overlay), 0);
}

/* Every way in which namespaces are forbidden, and the words that the answer must have. */
static void every_switch_has_its_repair(void **state)
{
	/* clang-format off */
	static const struct {
		struct userns_facts f;
		const char *found, *repair;
	} rows[] = {
		{ { -ENOSPC, 0, -1, -1, false, NULL, "/x" },
		  "max_user_namespaces is 0",      "sysctl -w user.max_user_namespaces=" },
		{ { -EPERM, 100, 0, -1, false, NULL, "/x" },
		  "unprivileged_userns_clone is 0","sysctl -w kernel.unprivileged_userns_clone=1" },
		{ { -EPERM, 100, 1, 1, false, NULL, "/opt/st et/stet" },
		  "AppArmor",                      "profile stet \"/opt/st et/stet\" flags=(unconfined)" },
		{ { -EACCES, 100, -1, 1, false, NULL, "/x" },
		  "AppArmor",                      "apparmor_parser" },
		{ { -EPERM, 100, -1, -1, true, "docker", "/x" },
		  "docker forbids",                "--security-opt seccomp=unconfined" },
		{ { -EPERM, 100, -1, -1, true, NULL, "/x" },
		  "seccomp filter forbids",        "RestrictNamespaces=no" },
		{ { -EPERM, 100, -1, 0, false, NULL, "/x" },
		  "chroot",                        "dmesg" },
		{ { -ENOSPC, 100, -1, -1, false, NULL, "/x" },
		  "limit 100",                     "sysctl -w user.max_user_namespaces=65536" },
		{ { -EINVAL, -1, -1, -1, false, NULL, "/x" },
		  "the kernel has none",           "CONFIG_USER_NS=y" },
	};
	/* clang-format on */
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_BUF struct buf found = BUF_INIT;
		AUTO_BUF struct buf repair = BUF_INIT;

		doctor_userns_explain(&rows[i].f, &found, &repair);
		if (!strstr(buf_str(&found), rows[i].found) ||
		    !strstr(buf_str(&repair), rows[i].repair))
			fail_msg("row %zu: %s / %s", i, buf_str(&found),
				 buf_str(&repair));
		/* Never the blunt way: the switch protects everybody else. */
		assert_null(strstr(buf_str(&repair), "apparmor_restrict"));
	}
}

static void a_profile_names_one_program_only(void **state)
{
	AUTO_BUF struct buf out = BUF_INIT;

	(void)state;
	doctor_apparmor_profile("/home/*/s{a,b}\"et", &out);
	assert_non_null(strstr(buf_str(&out), "\"/home/\\*/s\\{a,b\\}\\\"et\""));
	assert_non_null(strstr(buf_str(&out), "  userns,\n"));
}

static int hang(void *arg)
{
	(void)arg;
	pause();
	return 0;
}

static int busy(void *arg)
{
	(void)arg;
	return -EBUSY;
}

static int die(void *arg)
{
	(void)arg;
	raise(SIGKILL);
	return 0;
}

static void a_child_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(probe_in_child(busy, NULL), -EBUSY);
	assert_int_equal(probe_in_child(die, NULL), -EINTR);
	assert_int_equal(probe_in_child(hang, NULL), -ETIMEDOUT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_check_is_complete),
		cmocka_unit_test(this_machine_can_run_it),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(a_forbidden_namespace_is_a_failure),
		cmocka_unit_test(a_masked_proc_is_noticed),
		cmocka_unit_test(it_runs_as_an_ordinary_user),
		cmocka_unit_test(an_overlay_cannot_hold_layers),
		cmocka_unit_test(every_switch_has_its_repair),
		cmocka_unit_test(a_profile_names_one_program_only),
		cmocka_unit_test(a_child_is_bounded),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
