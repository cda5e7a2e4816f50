/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_EARLY_H
#define STET_HOST_EARLY_H

#include "diff/change.h"
#include "journal/journal.h"

/*
 * Of much that a command has changed the base is noted in the background. What the host has there
 * when the command is reported to have ended is listed before, by names alone: whatever is in that
 * list and is gone when the base is noted was deleted in between, and was not new.
 */
struct early;

struct early *early_begin(const struct txn_record *r);

/* Adds one difference of a walk with change_layer.every. */
void early_note(struct early *w, const struct change *c);

/* For a walk that is taken for nothing else: has it taken long enough, from the first question
 * on? */
bool early_is_late(struct early *w);

/* Keeps the list if it is @complete and of more than a few; else there is none. Frees @w. */
void early_end(struct early *w, bool complete);

/* Private to the room: the list's name in the transaction's directory. */
#define EARLY "early"

#endif
