/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_LIVE_H
#define STET_CTL_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ckpt/ckpt.h"

/*
 * Talking to a sandbox that runs, from outside: what control.h answers to. Whatever was
 * stopped goes on at the latest when the connection is closed.
 */
#define LIVE_NAME "ctl"

/* What a descriptor sent to PID 1 is. */
enum live_fd { LIVE_NAMES, LIVE_STEPS, LIVE_LAYER, LIVE_MARK };

/* What is written at the beginning of a mark: how far are the steps? Only half is not to stay. */
#define LIVE_WHOLE 'W' /* not begun; or nobody is left who could take them back */
#define LIVE_HALF 'H'  /* some are done; or all, and they are to be taken back */
#define LIVE_DONE 'D'  /* all are done */

struct live;

/* @dir: the transaction's directory. ERR_STATE if nobody is there. */
int live_open(const char *dir, struct live **out, struct err *e);
void live_close(struct live *l); /* NULL is fine */

/*
 * Stops all processes. *written: the files that they are writing to, as freeze_written() has
 * them; *len bytes; to be freed.
 */
int live_freeze(struct live *l, char **written, size_t *len, struct err *e);
int live_thaw(struct live *l, struct err *e);
/* Ends all processes but the command itself. */
int live_kill(struct live *l, struct err *e);
/*
 * Lets PID 1 carry out ck_plan()'s steps through the mounted tree. All are stopped. @mark is a
 * file that says from then on how far that is, whoever dies; it does not say that they are done
 * yet. A sandbox that ended when all was done has done it: 0.
 */
int live_apply(struct live *l, const struct ck_layers *layers, int steps, int mark,
	       struct err *e);

/* Waits until nothing of a sandbox is left whose caller has died. */
void live_await_end(const char *dir);

/*
 * Has no process run since live_settled() with the same @state, so that nothing can have
 * changed? False if that cannot be told, or the sandbox is gone. What is seen after this
 * is called may be reported with live_settled().
 */
bool live_still(struct live *l, uint64_t state);
void live_settled(struct live *l, uint64_t state);

/* Which layers of the sandbox of @dir hold nothing, as idle_layers_untouched(); none if
 * nobody is there, or answers: one client is served at a time, and for who holds a connection
 * there is no other. */
uint64_t live_untouched(const char *dir);

/* How long the processes were stopped, in all, in microseconds. */
int64_t live_paused_us(const struct live *l);

#endif
