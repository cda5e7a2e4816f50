/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_APPLY_H
#define STET_CKPT_APPLY_H

#include "ckpt/ckpt.h"

/*
 * Through a mounted overlay: makes what is seen there what it was in another state. Steps
 * are written by one process and carried out by another, inside. Files are written in
 * place, so that open descriptors follow.
 */
int ck_plan(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, const char *const *paths, int fd,
	    uint64_t *steps, struct err *e);
int ck_carry_out(const struct ck_layers *layers, int fd, struct err *e);

#endif
