/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "commit/operate.h"
#include "plan/parts.h"
#include "plan/stage.h"
#include "sys/fs.h"
#include "sys/rmtree.h"

/* Two filesystems, each with a tree and the upper of the other. */
static char here[] = "/var/tmp/stet-disks.XXXXXX", there[] = "/dev/shm/stet-disks.XXXXXX";
static char host[sizeof(there) + 8], upper[sizeof(here) + 8];
static char host2[sizeof(here) + 8], upper2[sizeof(there) + 8];
static const struct change_layer layers[] = { { .host = host, .upper = upper },
					      { .host = host2, .upper = upper2 } };

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(here) || !mkdtemp(there))
		return -1;
	snprintf(host, sizeof(host), "%s/host", there);
	snprintf(upper, sizeof(upper), "%s/up", here);
	snprintf(host2, sizeof(host2), "%s/host", here);
	snprintf(upper2, sizeof(upper2), "%s/up", there);
	return mkdir(host, 0700) < 0 || mkdir(upper, 0700) < 0 ||
			       mkdir(host2, 0700) < 0 || mkdir(upper2, 0700) < 0
		       ? -1
		       : 0;
}

static int drop(const char *dir, const char *path)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = rmtree_at(fd, strrchr(path, '/') + 1, NULL);

	close(fd);
	return r;
}

static int teardown(void **state)
{
	(void)state;
	return drop("/var/tmp", here) | drop("/dev/shm", there);
}

static dev_t dev_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_dev;
}

static bool is_noted(const struct apply *a, const char *path)
{
	for (size_t i = 0; i < a->ndisks; i++)
		if (a->disks[i].dev == dev_of(path))
			return true;
	return false;
}

static void meet(struct apply *a, uint32_t layer, const char *rel)
{
	struct ident on_host, staged;
	struct err e;

	assert_int_equal(apply_look(a, layer, rel, &on_host, &staged, &e), 0);
}

/* Where upper and host are on two filesystems, a commit writes to both. */
static void test_both_sides(void **state)
{
	struct apply *a;
	struct err e;

	(void)state;
	assert_int_not_equal(dev_of(here), dev_of(there));
	assert_int_equal(apply_open(layers, 2, &a, &e), 0);
	assert_int_equal(a->ndisks, 0);
	meet(a, 0, "file");
	assert_true(is_noted(a, host));
	assert_true(is_noted(a, upper));
	meet(a, 1, "file");
	meet(a, 0, "other");
	assert_int_equal(a->ndisks, 2);
	assert_false(a->every_disk);
	assert_int_equal(apply_syncfs(a, &e), 0);
	apply_close(a);
}

/* What no step is in is none of our business. */
static void test_no_other(void **state)
{
	const struct change_layer one = { .host = host2, .upper = upper };
	const struct change_layer two[] = { one, layers[0] };
	struct apply *a;
	struct err e;

	(void)state;
	assert_int_equal(apply_open(two, 2, &a, &e), 0);
	meet(a, 0, "file");
	assert_true(is_noted(a, here));
	assert_false(is_noted(a, there));
	apply_close(a);
}

/* A directory that may be searched and not read: by the top of its layer. */
static void test_unreadable(void **state)
{
	char dir[sizeof(host) + 4];
	struct apply *a;
	struct err e;
	int fd;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/d", host);
	assert_int_equal(mkdir(dir, 0100), 0);
	assert_int_equal(apply_open(layers, 1, &a, &e), 0);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	apply_note_disk(a, fd);
	close(fd);
	assert_int_equal(a->ndisks, 1);
	assert_int_equal(apply_syncfs(a, &e), 0);
	/* One that is of no layer: everything, then. */
	fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	apply_note_disk(a, fd);
	close(fd);
	assert_true(a->every_disk);
	apply_close(a);
	assert_int_equal(rmdir(dir), 0);
}

/* In place of the C library's: how often were they called? */
static int syncs;

int fsync(int fd)
{
	(void)fd;
	syncs++;
	return 0;
}

int syncfs(int fd)
{
	(void)fd;
	syncs++;
	return 0;
}

/* Stages @name, a new file, and makes it durable. */
static int syncs_for(const char *name, bool settled)
{
	struct operation o = { .layers = NULL, .settled = settled };
	struct plan_rec r = { .kind = PLAN_CREATE, .rel = name };
	struct plan_writer *w;
	uint64_t n;
	struct err e;

	o.dir = open(here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(apply_open(layers, 1, &o.apply, &e), 0);
	assert_int_equal(apply_look(o.apply, 0, name, &r.before, &r.after, &e), 0);
	assert_int_equal(plan_create(o.dir, "plan", &w, &e), 0);
	assert_int_equal(plan_add(w, &r, &e), 0);
	assert_int_equal(plan_finish(w, &n, &e), 0);
	assert_int_equal(plan_open(o.dir, "plan", &o.plan, &e), 0);
	assert_int_equal(unlinkat(o.dir, "plan", 0), 0);
	syncs = 0;
	assert_int_equal(apply_stage(o.apply, &r, &o.objects, &e), 0);
	assert_int_equal(operate_sync_staged(&o, &e), 0);
	operate_close(&o);
	return syncs;
}

/* What is on the disk is not written again, unless staging has changed it. */
static void test_settled(void **state)
{
	char name[sizeof(upper) + 8];
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "%s/file", upper);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(syncs_for("file", false) > 0);
	assert_int_equal(syncs_for("file", true), 0);
	assert_int_equal(fsetxattr(fd, "user.overlay.origin", "x", 1, 0), 0);
	assert_true(syncs_for("file", true) > 0);
	assert_int_equal(syncs_for("file", true), 0);
	close(fd);
}

static void test_unwritten(void **state)
{
	(void)state;
	assert_true(fs_unwritten() < UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides), cmocka_unit_test(test_no_other),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_settled),
		cmocka_unit_test(test_unwritten),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
