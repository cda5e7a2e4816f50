/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_SHOW_H
#define STET_REVIEW_SHOW_H

#include "review/diff.h"

struct show_res {
	struct diff_res diff;
	const struct ckpt_record *point; /* the diff's own; NULL: the beginning */
};

#endif
