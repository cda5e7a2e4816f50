/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_UNDO_PARTS_H
#define STET_COMMIT_UNDO_PARTS_H

#include "commit/history.h"
#include "commit/operate.h"
#include "host/after_commit.h"

/* For undo.c and undo_list.c alone. */

/* The operation that is undone or redone. */
struct deed {
	bool redo;
	struct history ops;
	const struct op_record *target; /* the commit or rollback */
	const struct op_record *undo;	/* that is taken back by a redo */
	struct standing *standing; /* undo of a commit: which of its steps there are */
	struct after_commit *left; /* what the host is to have */
};

#endif
