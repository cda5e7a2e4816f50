/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PAIR_H
#define STET_CKPT_PAIR_H

#include "ckpt/ckpt.h"

/*
 * Fills two empty directories, @before and @after, so that they differ as two states of layer
 * @layer do and hold nothing else: @after as an upper over @before (diff/change.h).
 */
int ck_pair(const struct ck_layers *layers, const struct ck_state *a,
	    const struct ck_state *b, uint32_t layer, int before, int after,
	    struct err *e);

int ck_count(const struct ck_layers *layers, const struct ck_state *a,
	     const struct ck_state *b, struct change_totals *t, struct err *e);

#endif
