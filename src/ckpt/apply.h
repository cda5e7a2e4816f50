/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_APPLY_H
#define STET_CKPT_APPLY_H

#include "ckpt/ckpt.h"

/* A step is written as one byte, its kind, and an entry, which ck_decode() reads. */
enum ck_step {
	STEP_REMOVE = 1, /* the path and everything beneath it */
	STEP_MAKE,	 /* the entry's object; of a directory only its existence */
	STEP_LINK,	 /* another name of the object at the entry's `link` */
	STEP_DRESS,	 /* attributes only */
	STEP_HOST,	 /* the host's object, with everything beneath it */
	STEP_HOST_DIR,	 /* the host's directory without its contents */
	STEP_HOST_DRESS, /* attributes of the host's directory */
};

/*
 * Changes what is seen through a mounted overlay to another state. One process writes the
 * steps (ck_plan()), another one, inside, carries them out (ck_carry_out()). Files are written
 * in place, so that open descriptors see the new content.
 */
int ck_plan(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, const char *const *paths, int fd,
	    uint64_t *steps, struct err *e);
int ck_carry_out(const struct ck_layers *layers, int fd, struct err *e);

#endif
