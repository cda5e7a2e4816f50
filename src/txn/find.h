/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_FIND_H
#define STET_TXN_FIND_H

#include "txn/parts.h"
#include "txn/txn.h"

/* Is the directory @upper missing, because the filesystem that holds it is not mounted? */
bool layer_away(const char *upper);

/* Sets ERR_CORRUPT for a missing upper; @host: the tree that it is a layer of. Returns -1. */
int layer_lost(const struct txn_record *r, const char *host, const char *upper,
	       struct err *e);

const char *txn_look_name(enum txn_look l); /* "running", "interrupted", … */

/*
 * Is @cwd in a directory that a commit of the transaction has moved into the store? A shell
 * that stood in the directory is still there.
 */
bool txn_has_taken(const struct txn_record *r, const char *cwd);

/*
 * Finds a transaction: @ref is a number ("3", "t3") or a name; NULL means the newest unpruned
 * transaction whose workspace holds @cwd, pending and running ones first. ERR_USAGE if there
 * is none. Takes no lock.
 */
int txn_find(struct home *h, const char *ref, const char *cwd, struct txn *t,
	     struct err *e);

/*
 * The overlay layers, as the rooms below want them; a layer whose upper is not there has
 * `away` set. The caller frees the array with one free(); it points into @r.
 */
struct change_layer *txn_layers(const struct txn_record *r, size_t *n);

#endif
