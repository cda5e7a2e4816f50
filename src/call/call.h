/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_CALL_H
#define STET_CALL_CALL_H

#include "call/facts.h"
#include "call/verb.h"

/*
 * One call of a verb, from its request to its result:
 *
 *	call_begin()  checks the request alone (verb.check), opens the user's state as verb.home
 *	              says, finishes what a crash left, resolves the transaction as verb.target
 *	              says, and refuses one in a state in which the verb may not act (verb.states)
 *	verb.run()    the verb itself, if call_begin() returned 0
 *	call_end()    in any case: moves the transaction to the result (VERB_TXN_FIRST)
 *
 * Lower rooms look at the state again once they hold the lock of the transaction.
 */
struct verb_call {
	/* Set by the caller. */
	const struct verb *verb;
	const void *req;
	struct op_ctx *ctx;
	/* For the verb. */
	struct home *h; /* NULL: HOME_NONE */
	struct txn t;	/* the transaction; its lock is given up after the verb */
	char **paths;	/* operands that are paths, as typed; NULL: none */
};

int call_begin(struct verb_call *c, struct err *e);

/* @result: what the verb, or call_begin(), has returned; it is returned again. */
int call_end(struct verb_call *c, void *res, int result);

/* Is the transaction in a state in which this call may act? ERR_STATE and why, if it is not. */
int call_allowed(const struct verb_call *c, const struct txn_record *rec, struct err *e);

/* For TARGET_BODY: makes the transaction that @ref names, or that is meant here, the call's. */
int call_find(struct verb_call *c, const char *ref, struct err *e);

/* call_txn_operand() for operands [TX] [PATH...]. */
int call_operands(struct verb_call *c, const char *first, char *const *rest,
		  struct err *e);

/* States of transactions that are to be decided about. */
extern const struct verb_states states_to_decide;
/* States in which checkpoints are made or gone to. */
extern const struct verb_states states_of_timeline;
/* States in which there may be checkpoints to look at. */
extern const struct verb_states states_with_checkpoints;

#endif
