/* SPDX-License-Identifier: Apache-2.0 */
#include "session/housekeep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/after_commit.h"
#include "host/base.h"
#include "journal/txn_rows.h"
#include "runner/detach.h"
#include "txn/budget.h"
#include "txn/end.h"
#include "txn/home.h"
#include "txn/marks.h"
#include "txn/prune.h"

/*
 * Bytes of a file of no content, for locks: who tidies up, who will do so next, and, one for
 * each transaction, who looks after it.
 */
enum { NOW, NEXT, CARE = 16 };

static bool set_lock(int fd, int which, short type, bool wait)
{
	struct flock l = { .l_type = type, .l_start = which, .l_len = 1 };
	int r;

	do
		r = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	while (r < 0 && errno == EINTR);
	return r == 0;
}

static bool claim(int fd, int which)
{
	return set_lock(fd, which, F_WRLCK, false);
}

static int open_claims(const char *dir, int flags)
{
	AUTO_FREE char *path = xasprintf("%s/tidying", dir);

	return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

/* One housekeeper at a time, and one that waits. Later ones leave their work to that one. */
static bool my_turn(int fd)
{
	if (claim(fd, NOW))
		return true;
	return claim(fd, NEXT) && set_lock(fd, NOW, F_WRLCK, true) &&
	       set_lock(fd, NEXT, F_UNLCK, false);
}

static bool is_being_done(const char *dir)
{
	AUTO_CLOSE int fd = open_claims(dir, 0);

	return fd >= 0 && !claim(fd, NOW);
}

/* In the background; @t may be NULL. What there is to be noted of it: see look_after(). */
static void send_off(const struct home *h, const struct txn *t, int64_t what)
{
	char name[] = "stet", option[] = HOUSEKEEP_OPTION, id[24], lock[16], note[24],
	     since[24];
	char *argv[] = { name, option, h->dir, id, lock, note, since, NULL };
	struct timespec now;

	snprintf(id, sizeof(id), "%lld", t ? (long long)t->rec.id : 0);
	snprintf(lock, sizeof(lock), "%d", t ? t->lock : -1);
	snprintf(note, sizeof(note), "%lld", (long long)what);
	/* By the clock that files are stamped with: we are going to say that it has ended. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	snprintf(since, sizeof(since), "%lld",
		 (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	detach_exec(argv, t ? t->lock : -1);
}

enum { NOTE_NOTHING = -1, NOTE_BASE = 0 }; /* else the number of a commit */

void housekeep(struct home *h, struct txn *t, uint64_t changes)
{
	/* Directories around them, and copies that do not differ, are noted, too. */
	const struct base_wish few = { .max = 4 * HOUSEKEEP_FEW };
	struct err e;

	if (!t && (!journal_checkpoint_due(h->journal) || is_being_done(h->dir)))
		return;
	if (t && changes <= HOUSEKEEP_FEW && txn_note_base(t, &few, &e) == 0) {
		send_off(h, t, NOTE_NOTHING);
		return;
	}
	if (t)
		txn_keep_idle(&t->rec);
	send_off(h, t, NOTE_BASE);
}

void housekeep_commit(struct home *h, struct txn *t, const struct commit_result *done)
{
	struct err e;

	if (!done->op)
		return;
	if (done->changes > HOUSEKEEP_FEW || done->bytes > HOUSEKEEP_SMALL)
		send_off(h, t, done->op);
	else
		after_commit_note(h, t, done->op, &e);
}

/* Not a lock of the open file, as the others are: this kind tells whose it is. */
static struct flock care_of(int64_t id, short type)
{
	return (struct flock){ .l_type = type, .l_start = CARE + id, .l_len = 1 };
}

void housekeep_stop(struct home *h, int64_t id)
{
	AUTO_CLOSE int fd = open_claims(h->dir, 0), pidfd = -1;
	struct flock l = care_of(id, F_WRLCK), again = l;

	if (fd < 0 || fcntl(fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK || l.l_pid <= 0)
		return;
	pidfd = pidfd_open(l.l_pid, 0);
	/* If it is still the same one, the descriptor is its own. */
	if (pidfd >= 0 && fcntl(fd, F_GETLK, &again) == 0 && again.l_type != F_UNLCK &&
	    again.l_pid == l.l_pid)
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void housekeep_again(struct home *h, struct txn *t)
{
	if (t->lock >= 0 && t->rec.state == TXN_FROZEN)
		housekeep(h, t, 0);
}

/* A process that waits for the transaction need not wait for the disk. */
static void look_after(struct home *h, int claims, int64_t id, int64_t what,
		       int64_t since, int lock)
{
	const struct base_wish w = { .since = since };
	struct flock care = care_of(id, F_WRLCK), done = care_of(id, F_UNLCK);
	struct txn t = { .lock = lock };
	AUTO_CLOSE int ticket = -1;
	struct err e;

	fcntl(claims, F_SETLK, &care);
	if (journal_txn_get(h->journal, id, &t.rec, &e) == 0) {
		if (what == NOTE_BASE)
			txn_note_base(&t, &w, &e);
		if (what > NOTE_BASE) /* a commit has synced what it needed */
			after_commit_note(h, &t, what, &e);
		else
			ticket = txn_to_disk_begin(&t.rec);
	}
	fcntl(claims, F_SETLK, &done);
	cleanup_close(&t.lock);
	t.lock = -1;
	if (ticket >= 0)
		txn_to_disk(&t.rec, ticket);
	txn_close(&t);
}

int housekeep_main(int argc, char **argv)
{
	AUTO_CLOSE int claims = -1;
	struct home h;
	struct err e;
	int lock;

	if (argc != 7)
		return ERR_USAGE;
	setenv("STET_STATE_DIR", argv[2], 1);
	if (home_open(&h, &e) < 0)
		return e.kind;
	claims = open_claims(h.dir, O_CREAT);
	lock = atoi(argv[4]);
	if (lock <= STDERR_FILENO)
		lock = -1;
	if (atoll(argv[3]) > 0)
		look_after(&h, claims, atoll(argv[3]), atoll(argv[5]), atoll(argv[6]),
			   lock);
	if (my_turn(claims)) {
		txn_clear(&h);
		txn_trim(&h, &e);
		journal_checkpoint(h.journal, &e);
	}
	home_close(&h);
	return 0;
}
