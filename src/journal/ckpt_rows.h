/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_CKPT_ROWS_H
#define STET_JOURNAL_CKPT_ROWS_H

#include "journal/journal.h"

int journal_ckpt_add(struct journal *j, int64_t txn, const struct ckpt_record *r,
		     enum journal_sync s, struct err *e);

/* The same, and journal_changing_end(), in one. */
int journal_ckpt_conclude(struct journal *j, int64_t txn, const struct ckpt_record *r,
			  struct err *e);

/* Replaces the row of a checkpoint. */
int journal_ckpt_replace(struct journal *j, int64_t txn, const struct ckpt_record *r,
			 struct err *e);

/* Drops one, and replaces the row of the next, whose numbers are others now. */
int journal_ckpt_thin(struct journal *j, int64_t txn, int64_t seq,
		      const struct ckpt_record *next, struct err *e);
int journal_ckpt_all(struct journal *j, int64_t txn, struct ckpt_records *out,
		     struct err *e);

/*
 * A transaction's layers are being changed to another state. If whoever does it dies, they
 * go back to checkpoint @back_to.
 */
int journal_changing_set(struct journal *j, int64_t txn, int64_t back_to, struct err *e);
int journal_changing_end(struct journal *j, int64_t txn, struct err *e);

/* The first after transaction @after; *txn is 0 if there is none. */
int journal_changing_next(struct journal *j, int64_t after, int64_t *txn,
			  int64_t *back_to, struct err *e);

#endif
