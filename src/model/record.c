/* SPDX-License-Identifier: Apache-2.0 */
#include "model/record.h"

#include <stdlib.h>
#include <string.h>

const char *const txn_state_names[TXN_STATES] = {
	[TXN_ACTIVE] = "active",	   [TXN_FROZEN] = "frozen",
	[TXN_ROLLED_BACK] = "rolled-back", [TXN_PRUNED] = "pruned",
	[TXN_COMMITTING] = "committing",   [TXN_COMMITTED] = "committed",
	[TXN_UNDOING] = "undoing",
};

const char *const layer_kind_names[LAYER_KINDS] = {
	[LAYER_OVERLAY] = "overlay",
	[LAYER_SCRATCH] = "scratch",
};

const char *txn_state_name(enum txn_state s)
{
	return s < TXN_STATES ? txn_state_names[s] : "unknown";
}

const char *layer_kind_name(enum layer_kind k)
{
	return k < LAYER_KINDS ? layer_kind_names[k] : "unknown";
}

void txn_record_free(struct txn_record *r)
{
	size_t i;

	free(r->name);
	free(r->workspace);
	free(r->dir);
	for (i = 0; r->argv && r->argv[i]; i++)
		free(r->argv[i]);
	free(r->argv);
	for (i = 0; r->hidden && r->hidden[i]; i++)
		free(r->hidden[i]);
	free(r->hidden);
	free(r->options);
	free(r->reason);
	free(r->policy);
	for (i = 0; i < r->nlayers; i++) {
		free(r->layers[i].host);
		free(r->layers[i].dir);
	}
	free(r->layers);
	for (i = 0; i < r->neffects; i++) {
		free(r->effects[i].kind);
		free(r->effects[i].what);
	}
	free(r->effects);
	memset(r, 0, sizeof(*r));
}

const char *const op_kind_names[OP_KINDS] = {
	[OP_COMMIT] = "commit",
	[OP_ROLLBACK] = "rollback",
	[OP_UNDO] = "undo",
	[OP_REDO] = "redo",
};

const char *const op_state_names[OP_STATES] = {
	[OP_APPLYING] = "applying",
	[OP_REVERSING] = "reversing",
	[OP_DONE] = "done",
	[OP_REVERSED] = "reversed",
};

const char *op_kind_name(enum op_kind k)
{
	return k < OP_KINDS ? op_kind_names[k] : "unknown";
}

const char *op_state_name(enum op_state s)
{
	return s < OP_STATES ? op_state_names[s] : "unknown";
}

void op_record_free(struct op_record *r)
{
	free(r->plan);
	free(r->message);
	*r = (struct op_record){ 0 };
}

void ckpt_record_free(struct ckpt_record *r)
{
	free(r->cause);
	free(r->command);
	free(r->note);
	*r = (struct ckpt_record){ 0 };
}

void ckpt_records_free(struct ckpt_records *r)
{
	for (size_t i = 0; i < r->n; i++)
		ckpt_record_free(&r->v[i]);
	free(r->v);
	*r = (struct ckpt_records){ 0 };
}
