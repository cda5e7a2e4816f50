/* SPDX-License-Identifier: Apache-2.0 */
/* Where a store is made, by what the table of mounts says and by what is there. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "snap/store.h"
#include "sys/mountinfo.h"
#include "sys/rmtree.h"

static char top[] = "store-XXXXXX";
static char *tree, *state, *corner;

static int remove_in(const char *dir, const char *name)
{
	AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return rmtree_at(fd, name, NULL);
}

static int make(void **unused)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);

	(void)unused;
	if (!mkdtemp(top))
		return -1;
	tree = xasprintf("%s/%s/tree", cwd, top);
	state = xasprintf("%s/%s/state", cwd, top);
	corner = xasprintf("%s/.stet-%u", tree, (unsigned)geteuid());
	return mkdir(tree, 0755) || mkdir(state, 0700);
}

static int drop(void **unused)
{
	(void)unused;
	free(tree);
	free(state);
	free(corner);
	return remove_in(".", top);
}

/* A table that has a mount at the tree, of that number. */
static char *store_by(uint64_t id)
{
	char *text = xasprintf("1 0 8:1 / / rw - ext4 /dev/x rw\n"
			       "%llu 1 8:2 / %s rw - ext4 /dev/y rw\n",
			       (unsigned long long)id, tree);
	struct mountinfo mi;
	char *out = NULL;
	struct err e = { 0 };

	assert_int_equal(mountinfo_parse(text, &mi), 0);
	assert_int_equal(store_for(&mi, state, tree, &out, &e), 0);
	mountinfo_free(&mi);
	return out;
}

static void test_in_its_mount(void **unused)
{
	AUTO_FREE char *out = NULL;
	struct statx sx;
	struct stat st;

	(void)unused;
	assert_int_equal(statx(AT_FDCWD, tree, 0, STATX_MNT_ID, &sx), 0);
	out = store_by(sx.stx_mnt_id);
	assert_int_equal(strncmp(out, corner, strlen(corner)), 0);
	assert_int_equal(lstat(out, &st), 0);
	assert_int_equal(remove_in(tree, strrchr(corner, '/') + 1), 0);
}

/* Unmounted since the table was read: what it had covered is none of ours. */
static void test_not_below_it(void **unused)
{
	AUTO_FREE char *out = store_by(0x7ffffff0), *own = xasprintf("%s/tx", state);

	(void)unused;
	assert_string_equal(out, own);
	assert_int_equal(access(corner, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_its_mount),
		cmocka_unit_test(test_not_below_it),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
