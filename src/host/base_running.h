/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_BASE_RUNNING_H
#define STET_HOST_BASE_RUNNING_H

#include "journal/journal.h"

/*
 * Notes, while the command runs, what the host had where the command first changed something.
 * A user who touches such a file afterwards, without changing it, then causes no conflict. The
 * base (base.c) knows that only of files that are untouched when the command ends.
 *
 * Only objects without a change since the transaction began are noted: that is what the
 * command saw, whenever we look. Objects that come too late, or are too many, are not known,
 * and a commit is stricter there.
 */

/*
 * Notes until @stop is readable or its other end is closed; then what is noted is kept in the
 * transaction's directory, and @done is closed. Touches no journal. For a process of its own,
 * since it reads files at its leisure.
 */
void base_note_running(const struct txn_record *r, int stop, int done);

#endif
