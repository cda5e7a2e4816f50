/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_BASE_RUNNING_H
#define STET_HOST_BASE_RUNNING_H

#include "journal/journal.h"

/*
 * What the host had where the command first changed something, noted while it runs: whoever
 * touches such a file afterwards, without changing it, is in nobody's way then. The base (base.c)
 * knows that only of what is still untouched when the command ends.
 *
 * Only what bears no change since the transaction began is noted: that is what the command saw,
 * at whatever time we look. What comes too late, or is too much, is not known, and a commit is
 * stricter there.
 */

/*
 * Notes until @stop is readable or its other end is closed; then what is noted is kept in the
 * transaction's directory, and @done is closed. Touches no journal. For a process of its own,
 * since it reads files at its leisure.
 */
void base_note_running(const struct txn_record *r, int stop, int done);

#endif
