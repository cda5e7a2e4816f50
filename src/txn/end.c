/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "txn/check.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/home.h"
#include "txn/move.h"
#include "txn/parts.h"
#include "txn/prune.h"

/* Takes a flock on a transaction directory. fd, or -errno. */
static int lock_dir(const char *dir, int how)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (FAULT_AT("txn.lock") || flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

bool lock_is_held(const char *dir)
{
	AUTO_CLOSE int fd = lock_dir(dir, LOCK_SH | LOCK_NB);

	return fd == -EWOULDBLOCK;
}

/*
 * How often a process that only looks (lock_is_held()) may be in the way; a look takes
 * microseconds.
 */
enum { LOOKS = 1000 };

int lock_take(const char *dir, bool wait)
{
	int fd = lock_dir(dir, wait ? LOCK_EX : LOCK_EX | LOCK_NB);

	for (int i = 0; fd == -EWOULDBLOCK && i < LOOKS && !lock_is_held(dir); i++) {
		sched_yield();
		fd = lock_dir(dir, LOCK_EX | LOCK_NB);
	}
	return fd;
}

int txn_own(struct txn *t, struct err *e)
{
	int fd;

	if (t->lock >= 0)
		return 0;
	/* After the command has ended only housekeeping holds the lock, and not for long. */
	fd = lock_take(t->rec.dir, t->rec.state != TXN_ACTIVE);
	if (fd == -EWOULDBLOCK) {
		err_set(e, ERR_STATE, "t%lld is running", (long long)t->rec.id);
		return err_hint(e, "end its command first, then try again");
	}
	if (fd < 0 && fd != -ENOENT)
		return err_sys(e, fd, "cannot lock t%lld", (long long)t->rec.id);
	t->lock = fd < 0 ? -1 : fd;
	return 0;
}

void txn_close(struct txn *t)
{
	cleanup_close(&t->lock);
	t->lock = -1;
	if (t->guard > 0)
		close(t->guard);
	t->guard = -1;
	txn_record_free(&t->rec);
	t->rec = (struct txn_record){ 0 };
}

static int finish(struct home *h, struct txn *t, enum txn_state to, int exit_status,
		  const char *reason, struct err *e)
{
	/* The end of the command itself, not of a later explore. */
	int64_t end = t->rec.end_ns ? t->rec.end_ns : clock_ns(CLOCK_REALTIME);

	const struct txn_outcome outcome = { exit_status, reason, end };
	const struct txn_step step = { to, JOURNAL_LAZY, &outcome };

	if (txn_move(h, t, &step, e) < 0)
		return -1;
	audit_op(home_books(h),
		 &(struct audit_op){ .event = to == TXN_PRUNED ? "drop" : "end",
				     .txn = t->rec.id,
				     .has_exit = true,
				     .exit_status = exit_status,
				     .reason = reason });
	return 0;
}

int txn_end(struct home *h, struct txn *t, int exit_status, const char *reason,
	    struct err *e)
{
	return finish(h, t, TXN_FROZEN, exit_status, reason, e);
}

int txn_discard(struct home *h, struct txn *t, int exit_status, const char *reason,
		struct err *e)
{
	if (txn_own(t, e) < 0)
		return -1;
	if (finish(h, t, TXN_PRUNED, exit_status, reason, e) < 0)
		return -1;
	/*
	 * No verb asks for the transaction any more, and the next one may take its directory
	 * over at once.
	 */
	cleanup_close(&t->lock);
	t->lock = -1;
	data_retire(&t->rec);
	return 0;
}

int txn_rollback(struct home *h, struct txn *t, struct err *e)
{
	struct op_record op = { .txn = t->rec.id,
				.kind = OP_ROLLBACK,
				.state = OP_DONE,
				.before = t->rec.state,
				.after = TXN_ROLLED_BACK,
				.begun_ns = clock_ns(CLOCK_REALTIME) };
	TXN_CHECKED(h, t);

	if (t->rec.state != TXN_FROZEN && t->rec.state != TXN_ACTIVE) {
		err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			txn_look_name(txn_look(&t->rec)));
		if (t->rec.state == TXN_COMMITTED)
			err_hint(e, "stet undo t%lld takes that back",
				 (long long)t->rec.id);
		return -1;
	}
	if (txn_own(t, e) < 0)
		return -1;
	op.done_ns = op.begun_ns;
	if (txn_move(h, t, &(struct txn_step){ TXN_ROLLED_BACK, JOURNAL_LAZY, .op = &op },
		     e) < 0)
		return -1;
	txn_note(h, "rollback", t->rec.id, op.id);
	return 0;
}
