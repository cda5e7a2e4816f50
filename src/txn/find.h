/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_FIND_H
#define STET_TXN_FIND_H

#include "txn/parts.h"
#include "txn/txn.h"

/* Is it not there, because what it was on is not mounted? */
bool layer_away(const char *upper);

/* Says so; @host: what it is a layer of. */
int layer_lost(const struct txn_record *r, const char *host, const char *upper,
	       struct err *e);

const char *txn_look_name(enum txn_look l); /* "running", "interrupted", … */

/* Is @cwd a directory that the transaction has taken away? Somebody stands in it, and a commit has
 * moved it out of its place: his shell has not noticed. */
bool txn_has_taken(const struct txn_record *r, const char *cwd);

/*
 * Finds a transaction: @ref is its number ("3", "t3"), its name, or NULL: then the newest
 * unpruned one whose workspace holds @cwd, pending and running ones first.
 * ERR_USAGE if there is none. Takes no lock.
 */
int txn_find(struct home *h, const char *ref, const char *cwd, struct txn *t,
	     struct err *e);

/* Layers in the form the change room wants, those that are away marked as such; free the
 * array (not what it points to). */
struct change_layer *txn_layers(const struct txn_record *r, size_t *n);

#endif
