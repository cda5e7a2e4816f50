/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_DESCRIPTORS_H
#define STET_RUNNER_DESCRIPTORS_H

#include <stddef.h>

#include "emulate/viewmounts.h"

/* A descriptor that PID 1 keeps while the command runs. */
enum hold {
	HOLD_PLAIN,  /* no directory */
	HOLD_INSIDE, /* a directory in the view */
	HOLD_APART,  /* the root of a mount that is attached nowhere */
};
struct held {
	int fd; /* -1: there is none */
	enum hold how;
};

/*
 * Closes all descriptors but those of @v and the standard streams, and makes sure that neither
 * they nor the working directory lead out of the view. Of the streams only stderr is kept, if
 * it is a pipe or a terminal, or for --debug. @v is sorted. 0 or -errno; -EXDEV: one of them
 * leads out.
 */
int descriptors_keep_only(const struct viewmounts *m, struct held *v, size_t n);

#endif
