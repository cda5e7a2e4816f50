/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_HOME_H
#define STET_TXN_HOME_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * Takes a flock on the store in the state directory; the caller closes the descriptor. Shared
 * (@how) for a process that makes data which no row knows yet, exclusive for a process that
 * deletes such data. fd or -errno.
 */
int home_guard(const struct home *h, int how);

/*
 * A moment that file times can be compared with: a change before this call has an earlier
 * ctime, a change after it has not. @dir is a directory of ours with mode 0700. 0 before Linux
 * 6.13, which has no such times: the caller waits for the coarse clock to move on instead.
 */
int64_t exact_time(int dir);

/* Adds a record to the audit; @op may be 0. */
void txn_note(struct home *h, const char *event, int64_t txn, int64_t op);

/* Creates the state directory (0700) and the journal where they are missing. */
int home_open(struct home *h, struct err *e);

/* home_open() in two steps: the directory, then the journal, if it is not open yet. */
int home_find(struct home *h, struct err *e);
int home_connect(struct home *h, struct err *e);
void home_close(struct home *h);

/*
 * The audit, opened at the first call. NULL if it cannot be kept: no change of a transaction
 * depends on the audit.
 */
struct audit *home_books(struct home *h);

#endif
