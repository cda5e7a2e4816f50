/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/txn_rows.h"
#include "journal_fixture.h"

#include <signal.h>
#include <sys/syscall.h>

/* SQLite is linked statically and finds these first: they count what it syncs. */
static int syncs;
int fsync(int fd)
{
	syncs++;
	return (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd)
{
	syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	char name[] = "na'me\n\xff", workspace[] = "/w/\xc3\x28\n\"", dir[] = "/s/1";
	char a0[] = "printf", a1[] = "", a2[] = "\xfe\x01\n;--",
	     options[] = "{\"a\":\"é\"}";
	char reason[] = "exit", host[] = "/h\xff", ldir[] = "/s/l\n",
	     kind[] = "write-through";
	char *argv[] = { a0, a1, a2, NULL };
	struct layer_record layers[] = { { LAYER_OVERLAY, host, ldir, true },
					 { LAYER_SCRATCH, ldir, host, false } };
	struct effect_record effects[] = { { kind, host }, { kind, ldir } };
	struct txn_record r = { .name = name,
				.state = TXN_FROZEN,
				.workspace = workspace,
				.dir = dir,
				.argv = argv,
				.options = options,
				.begin_ns = INT64_MAX,
				.end_ns = 7,
				.exit_status = 130,
				.reason = reason,
				.layers = layers,
				.nlayers = 2,
				.effects = effects,
				.neffects = 2 };
	struct txn_record got;
	struct err e = { 0 };

	assert_int_equal(journal_txn_add(j, &r, JOURNAL_SYNC, &e), 0);
	assert_int_equal(r.id, 1);
	journal_close(j);
	j = must_open(f->dir);
	assert_int_equal(journal_txn_get(j, 1, &got, &e), 0);
	assert_int_equal(got.id, 1);
	assert_string_equal(got.name, name);
	assert_int_equal(got.state, TXN_FROZEN);
	assert_string_equal(got.workspace, workspace);
	assert_string_equal(got.dir, dir);
	assert_string_equal(got.argv[0], a0);
	assert_string_equal(got.argv[1], a1);
	assert_string_equal(got.argv[2], a2);
	assert_null(got.argv[3]);
	assert_string_equal(got.options, options);
	assert_true(got.begin_ns == INT64_MAX && got.end_ns == 7);
	assert_int_equal(got.exit_status, 130);
	assert_string_equal(got.reason, reason);
	assert_int_equal(got.nlayers, 2);
	assert_int_equal(got.layers[0].kind, LAYER_OVERLAY);
	assert_string_equal(got.layers[0].host, host);
	assert_string_equal(got.layers[0].dir, ldir);
	assert_true(got.layers[0].lax_owner);
	assert_int_equal(got.layers[1].kind, LAYER_SCRATCH);
	assert_string_equal(got.layers[1].host, ldir);
	assert_false(got.layers[1].lax_owner);
	assert_int_equal(got.neffects, 2);
	assert_string_equal(got.effects[1].kind, kind);
	assert_string_equal(got.effects[1].what, ldir);
	txn_record_free(&got);
	journal_close(j);
}

static void test_nothing_optional(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	char workspace[] = "/";
	char *argv[] = { NULL };
	struct txn_record r = { .workspace = workspace, .argv = argv, .exit_status = -1 };
	struct txn_record got;
	struct err e = { 0 };

	assert_int_equal(journal_txn_add(j, &r, JOURNAL_LAZY, &e), 0);
	assert_int_equal(journal_txn_get(j, r.id, &got, &e), 0);
	assert_null(got.name);
	assert_null(got.dir);
	assert_null(got.options);
	assert_null(got.reason);
	assert_null(got.argv[0]);
	assert_int_equal(got.exit_status, -1);
	assert_int_equal(got.nlayers + got.neffects, 0);
	txn_record_free(&got);
	assert_int_equal(journal_txn_get(j, 2, &got, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	journal_close(j);
}

static void test_set_layers(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	char host[] = "/h", dir[] = "/s/9";
	struct layer_record layer = { LAYER_SCRATCH, host, dir, true };
	struct txn_record r = {
		.id = must_add(j, NULL), .dir = dir, .layers = &layer, .nlayers = 1
	};
	struct txn_record got;
	struct err e = { 0 };

	assert_int_equal(journal_txn_set_layers(j, &r, JOURNAL_LAZY, &e), 0);
	assert_int_equal(journal_txn_get(j, r.id, &got, &e), 0);
	assert_string_equal(got.dir, dir);
	assert_int_equal(got.nlayers, 1);
	assert_int_equal(got.layers[0].kind, LAYER_SCRATCH);
	assert_int_equal(got.neffects, 1);
	txn_record_free(&got);
	r.id = 77;
	assert_int_equal(journal_txn_set_layers(j, &r, JOURNAL_LAZY, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	journal_close(j);
}

static int end(struct journal *j, int64_t id, enum txn_state from,
	       const struct txn_outcome *o, struct err *e)
{
	const struct txn_move m = { id, from, false };

	return journal_txn_end(j, &m, TXN_FROZEN, o, JOURNAL_LAZY, e);
}

static void test_states(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir), *other = must_open(f->dir);
	int64_t id = must_add(j, NULL);
	struct txn_record got;
	struct err e = { 0 };

	assert_int_equal(
		journal_txn_move(j, id, TXN_ACTIVE, TXN_UNDOING, JOURNAL_LAZY, &e), 0);
	assert_int_equal(
		journal_txn_move(other, id, TXN_ACTIVE, TXN_FROZEN, JOURNAL_LAZY, &e),
		-1);
	assert_int_equal(e.kind, ERR_STATE);
	assert_non_null(strstr(e.msg, "undoing"));
	assert_int_equal(
		end(j, id, TXN_UNDOING, &(struct txn_outcome){ 137, "signal", 99 }, &e),
		0);
	assert_int_equal(journal_txn_get(other, id, &got, &e), 0);
	assert_int_equal(got.state, TXN_FROZEN);
	assert_int_equal(end(j, id, TXN_UNDOING, &(struct txn_outcome){ 1 }, &e), -1);
	assert_int_equal(e.kind, ERR_STATE);
	assert_int_equal(got.exit_status, 137);
	assert_string_equal(got.reason, "signal");
	assert_int_equal(got.end_ns, 99);
	txn_record_free(&got);
	assert_int_equal(
		journal_txn_move(j, 5, TXN_ACTIVE, TXN_UNDOING, JOURNAL_LAZY, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_int_equal(end(j, 5, TXN_ACTIVE, &(struct txn_outcome){ 0 }, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	journal_close(other);
	journal_close(j);
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	int64_t id = must_add(j, "fix");
	struct txn_record got;
	struct err e = { 0 };

	assert_int_equal(add(j, "fix", JOURNAL_LAZY, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_non_null(strstr(e.msg, "fix"));
	must_add(j, NULL);
	must_add(j, NULL);
	assert_int_equal(journal_txn_by_name(j, "fix", &got, &e), 0);
	assert_int_equal(got.id, id);
	txn_record_free(&got);
	assert_int_equal(
		journal_txn_move(j, id, TXN_ACTIVE, TXN_PRUNED, JOURNAL_LAZY, &e), 0);
	assert_int_equal(journal_txn_by_name(j, "fix", &got, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_true(must_add(j, "fix") > id);
	journal_close(j);
}

/* A write by another process, then one by us, from within the loop. */
static int look_and_write(void *arg, struct txn_record *r, struct err *e)
{
	struct seen *s = arg;
	struct err e2 = { 0 };

	s->n++;
	if (journal_txn_move(s->other, r->id, TXN_ACTIVE, TXN_UNDOING, JOURNAL_LAZY, &e2))
		return err_set(e, ERR_STATE, "other: %s", e2.msg);
	return journal_txn_move(s->j, r->id, TXN_UNDOING, TXN_FROZEN, JOURNAL_LAZY, e);
}

/* All that a glance shows, and no more. */
static int glance(void *arg, struct txn_record *r, struct err *e)
{
	struct seen *s = arg;

	if (!r->workspace || r->nlayers || r->argv)
		return err_set(e, ERR_STATE, "not what a glance shows");
	s->n += r->state == TXN_FROZEN;
	s->last = r->id;
	return s->n == s->stop_at ? s->result : 0;
}

static void test_each(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir), *other = must_open(f->dir);
	struct seen all = { 0 }, some = { .stop_at = 3, .result = 1 },
		    bad = { .stop_at = 70, .result = -1 }, writing = { j, other },
		    kept = { 0 }, glanced = { 0 },
		    stopped = { .stop_at = 3, .result = 1 };
	struct err e = { 0 };
	int i;

	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), 0);
	assert_int_equal(all.n, 0);
	for (i = 0; i < 200; i++)
		must_add(j, NULL);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), 0);
	assert_int_equal(all.n, 200);
	assert_int_equal(all.last, 1);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &some, &e), 0);
	assert_int_equal(some.n, 3);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &bad, &e), -1);
	assert_int_equal(bad.n, 70);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look_and_write, &writing, &e),
			 0);
	assert_int_equal(writing.n, 200);
	assert_int_equal(journal_txn_glance(j, glance, &glanced, &e), 0);
	assert_int_equal(glanced.n, 200);
	assert_int_equal(glanced.last, 1);
	assert_int_equal(journal_txn_glance(j, glance, &stopped, &e), 0);
	assert_int_equal(stopped.last, 198);
	/* Several batches of pruned ones before the two that are left. */
	for (i = 3; i <= 200; i++) {
		assert_int_equal(journal_txn_move(j, i, TXN_FROZEN, TXN_ROLLED_BACK,
						  JOURNAL_LAZY, &e),
				 0);
		assert_int_equal(journal_txn_move(j, i, TXN_ROLLED_BACK, TXN_PRUNED,
						  JOURNAL_LAZY, &e),
				 0);
	}
	assert_int_equal(journal_txn_each(j, JOURNAL_KEPT, look, &kept, &e), 0);
	assert_int_equal(kept.n, 2);
	assert_int_equal(kept.last, 1);
	glanced = (struct seen){ 0 };
	assert_int_equal(journal_txn_glance(j, glance, &glanced, &e), 0);
	assert_int_equal(glanced.n, 2);
	journal_close(other);
	journal_close(j);
}

static void test_syncs(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	struct err e = { 0 };
	int64_t id;
	int i;

	/* a new journal, one opened again, one just tidied: a lazy write waits for none */
	for (i = 0; i < 3; i++) {
		syncs = 0;
		id = must_add(j, NULL);
		assert_int_equal(journal_txn_move(j, id, TXN_ACTIVE, TXN_UNDOING,
						  JOURNAL_LAZY, &e),
				 0);
		assert_int_equal(end(j, id, TXN_UNDOING,
				     &(struct txn_outcome){ 0, "exit", 1 }, &e),
				 0);
		if (i == 0) {
			journal_close(j);
			j = must_open(f->dir);
		}
		assert_int_equal(syncs, 0);
		if (i == 1)
			assert_int_equal(journal_checkpoint(j, &e), 0);
	}
	syncs = 0;
	assert_int_equal(
		journal_txn_move(j, id, TXN_FROZEN, TXN_ROLLED_BACK, JOURNAL_SYNC, &e),
		0);
	assert_true(syncs > 0);
	syncs = 0;
	must_add(j, NULL);
	assert_int_equal(syncs, 0);
	journal_close(j);
	/* Its names are synced once, by whoever asks first; a write then syncs the log alone. */
	j = must_open(f->dir);
	assert_int_equal(journal_settle(j, &e), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(journal_settle(j, &e), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(
		journal_txn_move(j, id, TXN_ROLLED_BACK, TXN_FROZEN, JOURNAL_SYNC, &e),
		0);
	assert_int_equal(syncs, 2);
	journal_close(j);
}

/* Many at the price of one; who is not what he was thought to be stays. */
static void test_move_all(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	struct txn_move v[20] = { 0 };
	struct txn_record got;
	struct err e = { 0 };
	int one;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = (struct txn_move){ must_add(j, NULL), TXN_ACTIVE, false };
	v[7].from = TXN_FROZEN;
	v[9].id = 99;
	syncs = 0;
	assert_int_equal(
		journal_txn_move(j, v[0].id, TXN_ACTIVE, TXN_UNDOING, JOURNAL_SYNC, &e),
		0);
	one = syncs;
	v[0].from = TXN_UNDOING;
	syncs = 0;
	assert_int_equal(
		journal_txn_move_all(j, v, ARRAY_SIZE(v), TXN_PRUNED, JOURNAL_SYNC, &e),
		0);
	assert_true(one > 0 && syncs > 0 && syncs <= one);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(v[i].moved, i != 7 && i != 9);
		if (i == 9)
			continue;
		assert_int_equal(journal_txn_get(j, v[i].id, &got, &e), 0);
		assert_int_equal(got.state, i == 7 ? TXN_ACTIVE : TXN_PRUNED);
		txn_record_free(&got);
	}
	journal_close(j);
}

static off_t size_of(const struct fixture *f, const char *suffix)
{
	AUTO_FREE char *path = xasprintf("%s%s", f->db, suffix);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void test_log_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct journal *j = must_open(f->dir);
	struct err e = { 0 };
	int i;

	assert_false(journal_checkpoint_due(j));
	for (i = 0; i < 30; i++)
		must_add(j, NULL);
	assert_true(journal_checkpoint_due(j));
	assert_int_equal(journal_checkpoint(j, &e), 0);
	assert_false(journal_checkpoint_due(j));
	for (i = 0; i < 2500; i++)
		must_add(j, NULL);
	assert_true(size_of(f, "-wal") < 8 << 20);
	assert_true(size_of(f, "") > 100 << 10);
	journal_close(j);
}

static void test_modes(void **state)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	struct fixture *f = *state;
	mode_t old = umask(0);
	struct journal *j = must_open(f->dir);
	struct stat st;
	size_t i;

	umask(old);
	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		AUTO_FREE char *path = xasprintf("%s%s", f->db, suffixes[i]);

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
	}
	journal_close(j);
}

struct crowd {
	const char *dir;
	int gate;
};

static int crowd_member(void *arg)
{
	const struct crowd *c = arg;
	struct journal *j = NULL;
	struct err e = { 0 };
	char byte;
	int i;

	if (read(c->gate, &byte, 1) != 0)
		return 3;
	if (journal_open(c->dir, &j, &e)) {
		fprintf(stderr, "open: %s\n", e.msg);
		return 1;
	}
	for (i = 0; i < 20; i++) {
		int64_t id = add(j, NULL, JOURNAL_LAZY, &e);

		if (id < 0 ||
		    journal_txn_move(j, id, TXN_ACTIVE, TXN_UNDOING, JOURNAL_LAZY, &e)) {
			fprintf(stderr, "add: %s\n", e.msg);
			return 2;
		}
	}
	journal_close(j);
	return 0;
}

/* All begin with no journal there: making it is part of the race. */
static void test_crowd(void **state)
{
	struct fixture *f = *state;
	struct crowd c = { .dir = f->dir };
	struct seen all = { 0 };
	struct err e = { 0 };
	struct journal *j;
	pid_t pids[50];
	int gate[2];
	size_t i;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	c.gate = gate[0];
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			close(gate[1]);
			_exit(crowd_member(&c));
		}
	}
	close(gate[1]);
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(status_of(pids[i]), 0);
	close(gate[0]);
	j = must_open(f->dir);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), 0);
	assert_int_equal(all.n, 1000);
	assert_int_equal(all.last, 1);
	journal_close(j);
}

static int endless_writer(void *arg)
{
	const struct crowd *c = arg;
	struct journal *j = NULL;
	struct err e = { 0 };
	int64_t id;

	if (journal_open(c->dir, &j, &e))
		return 1;
	for (;;) {
		id = add(j, NULL, JOURNAL_LAZY, &e);
		if (id < 0 || write(c->gate, &id, sizeof(id)) != sizeof(id))
			return 2;
		if (journal_checkpoint_due(j) && journal_checkpoint(j, &e))
			return 3;
	}
}

static void test_killed_writer(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	int round;

	for (round = 1; round <= 12; round++) {
		struct seen all = { 0 };
		struct crowd c = { .dir = f->dir };
		struct journal *j;
		int64_t id = 0;
		int pipefd[2], i;
		pid_t pid;

		assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
		c.gate = pipefd[1];
		pid = spawn(endless_writer, &c);
		close(pipefd[1]);
		for (i = 0; i < round * 5; i++)
			assert_int_equal(read(pipefd[0], &id, sizeof(id)), sizeof(id));
		kill(pid, SIGKILL);
		assert_int_equal(status_of(pid), 128 + SIGKILL);
		while (read(pipefd[0], &i, sizeof(i)) > 0)
			;
		close(pipefd[0]);
		j = must_open(f->dir);
		assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), 0);
		assert_true(all.n >= id);
		assert_int_equal(all.last, 1);
		must_add(j, NULL);
		journal_close(j);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),	  TEST(test_nothing_optional),
		TEST(test_set_layers),	  TEST(test_states),
		TEST(test_names),	  TEST(test_each),
		TEST(test_syncs),	  TEST(test_log_is_bounded),
		TEST(test_modes),	  TEST(test_crowd),
		TEST(test_killed_writer), TEST(test_move_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
