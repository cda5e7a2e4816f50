/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_HOME_H
#define STET_TXN_HOME_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * flock on the store in the state directory, held until it is closed: shared by those who make data
 * that no row knows yet, exclusive for who deletes such data. fd or -errno.
 */
int home_guard(const struct home *h, int how);

/*
 * A moment that file times can be told from: what was changed before bears an earlier one, what is
 * changed afterwards does not. @dir is a directory of ours, 0700. 0 where the kernel has
 * nothing of that kind (before Linux 6.13): there, one waits for the coarse clock to move on.
 */
int64_t exact_time(int dir);

/* Puts it on the books; @op may be 0. */
void txn_note(struct home *h, const char *event, int64_t txn, int64_t op);

/* Creates the directory (0700) and the journal where they are missing. */
int home_open(struct home *h, struct err *e);

/* The same in two steps: the directory, then (if that is not done yet) the journal. */
int home_find(struct home *h, struct err *e);
int home_connect(struct home *h, struct err *e);
void home_close(struct home *h);

/* The books, for whoever has something to note; NULL if they cannot be kept: nothing that is
 * done to transactions waits for that. */
struct audit *home_books(struct home *h);

#endif
