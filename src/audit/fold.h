/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_FOLD_H
#define STET_AUDIT_FOLD_H

#include "audit/parts.h"

/*
 * What a run may write of its execs one by one. A command that is executed the same way again and
 * again, with the same verdict, is written FOLD_AFTER times in a while, and counted after that.
 * Once a run has filled a volume, everything is counted but for what little may be added over time:
 * no run can push more out than that, whatever it executes. What was counted is told by records of
 * its own: for the commands that there were most of, and in one sum for all the others.
 */
enum {
	FOLD_AFTER = 100,
	FOLD_ROOM = 32 << 20, /* bytes that a run may write one by one … */
	FOLD_MORE = 512,      /* … and what is added to that in a second */
	FOLD_EVERY_S = 60,    /* what was counted is told this often */
	FOLD_TOLD = 16,	      /* commands that are told one by one */
};

struct fold;
struct fold *fold_new(void);
void fold_free(struct fold *f);

/*
 * Is this exec only counted? If not, call fold_written() with the length of its record. The
 * exit of a process is counted if its exec was.
 */
bool fold_exec(struct fold *f, const struct audit_exec *x);
bool fold_exit(struct fold *f, int64_t txn, pid_t pid, int status);
void fold_written(struct fold *f, size_t len);

/* Is a record about counted execs due, or, with @now, is there anything to tell? */
bool fold_due(const struct fold *f, bool now);

/*
 * Appends the fields of the next such record; false: everything was told, and counting begins
 * anew.
 */
bool fold_tell(struct fold *f, struct buf *out);

#endif
