/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_CHECKPOINT_H
#define STET_REVIEW_CHECKPOINT_H

#include "call/facts.h"
#include "call/verb.h"
#include "timeline/timeline.h"

/* What the verbs about checkpoints share. */

/* "3" -> 3. ERR_USAGE for anything else; @option is named in the message. */
int point_parse(const char *text, const char *option, int64_t *seq, struct err *e);

/*
 * Is it "3", "3..5" or "3..", and thus no path and no transaction? Sets *a to -1 for the first,
 * *b to TIMELINE_NOW for the last.
 */
bool point_range(const char *text, int64_t *a, int64_t *b);

/* Rows of a result, about a struct ckpt_record. */
extern const struct field point_fields[];

struct checkpoint_req {
	struct verb_common common;
	const char *txn, *message;
};
struct checkpoint_res {
	struct txn_facts txn;
	bool none;  /* nothing has changed since @last */
	bool noted; /* and that one has got the note */
	int64_t last;
	struct ckpt_record point;
	int64_t paused_us; /* for so long its processes were stopped */
	int64_t took_us; /* from the question to the answer, the program's start apart */
};

/* An interval of the run that ctx->only is has passed: a checkpoint, if anything changed. */
int point_interval(struct op_ctx *ctx, struct err *e);

struct restore_req {
	struct verb_common common;
	const char *txn, *from;
	char **paths;
};
struct restore_res {
	struct txn_facts txn;
	int64_t from;
	struct timeline_gone done;
};

#endif
