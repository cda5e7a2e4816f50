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
#include <unistd.h>

#include "sys/rmtree.h"
#include "txn/marks.h"
#include "txn/parts.h"

static char top[] = "/tmp/stet-disk.XXXXXX";
static char layer[sizeof(top) + 8];
static struct layer_record layers[1] = { { .kind = LAYER_OVERLAY, .dir = layer } };
static const struct txn_record rec = { .dir = top, .layers = layers, .nlayers = 1 };

static int setup(void **state)
{
	char up[sizeof(layer) + 8];

	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(layer, sizeof(layer), "%s/l0", top);
	snprintf(up, sizeof(up), "%s/up", layer);
	return mkdir(layer, 0700) < 0 || mkdir(up, 0700) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = rmtree_at(fd, strrchr(top, '/') + 1, NULL);

	(void)state;
	close(fd);
	return r;
}

static void test_noted(void **state)
{
	int ticket = txn_to_disk_begin(&rec);

	(void)state;
	assert_true(ticket >= 0);
	assert_false(txn_on_disk(&rec));
	txn_to_disk(&rec, ticket);
	assert_true(txn_on_disk(&rec));
	close(ticket);
	txn_not_on_disk(&rec);
	assert_false(txn_on_disk(&rec));
}

/* Who changes the layers while they are written has the last word. */
static void test_changed_meanwhile(void **state)
{
	int ticket = txn_to_disk_begin(&rec), next;

	(void)state;
	txn_not_on_disk(&rec);
	txn_to_disk(&rec, ticket);
	assert_false(txn_on_disk(&rec));
	/* Nor does it count for what was written down after the change. */
	next = txn_to_disk_begin(&rec);
	txn_to_disk(&rec, ticket);
	assert_false(txn_on_disk(&rec));
	txn_to_disk(&rec, next);
	assert_true(txn_on_disk(&rec));
	close(ticket);
	close(next);
}

/* A commit that was killed may have changed the layers: they are to be written again. */
static void test_unsettled(void **state)
{
	int ticket = txn_to_disk_begin(&rec);

	(void)state;
	assert_false(disk_settled(&rec));
	txn_to_disk(&rec, ticket);
	close(ticket);
	assert_true(disk_settled(&rec));
	assert_int_equal(disk_unsettle(&rec), 0);
	assert_false(disk_settled(&rec));
	assert_int_equal(disk_unsettle(&rec), 0);
	assert_true(txn_on_disk(&rec));
	/* One that began while they were written is not forgotten when that is done. */
	ticket = txn_to_disk_begin(&rec);
	assert_int_equal(disk_unsettle(&rec), 0);
	txn_to_disk(&rec, ticket);
	close(ticket);
	assert_false(disk_settled(&rec));
	ticket = txn_to_disk_begin(&rec);
	txn_to_disk(&rec, ticket);
	close(ticket);
	assert_true(disk_settled(&rec));
	txn_not_on_disk(&rec);
	assert_false(disk_settled(&rec));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_noted),
		cmocka_unit_test(test_changed_meanwhile),
		cmocka_unit_test(test_unsettled),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
