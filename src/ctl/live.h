/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_LIVE_H
#define STET_CTL_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ckpt/ckpt.h"

/*
 * Talks to a running sandbox from outside (control.h answers). All processes that were stopped
 * go on at the latest when the connection is closed.
 */
#define LIVE_NAME "ctl"

/* What a descriptor sent to PID 1 is. */
enum live_fd { LIVE_NAMES, LIVE_STEPS, LIVE_LAYER, LIVE_MARK };

/* The first byte of a mark: how far are the steps? Recovery takes back LIVE_HALF only. */
#define LIVE_WHOLE 'W' /* not begun; or no client is left to take them back */
#define LIVE_HALF 'H'  /* some are done; or all, and they have to be taken back */
#define LIVE_DONE 'D'  /* all are done */

struct live;

/* Connects to the sandbox of the transaction in @dir. ERR_STATE if there is none. */
int live_open(const char *dir, struct live **out, struct err *e);
void live_close(struct live *l); /* NULL is fine */

/*
 * Stops all processes. *written: the files that they are writing to, in the form of
 * freeze_written(); *len bytes; to be freed.
 */
int live_freeze(struct live *l, char **written, size_t *len, struct err *e);
int live_thaw(struct live *l, struct err *e);
/* Ends all processes but the command itself. */
int live_kill(struct live *l, struct err *e);
/*
 * Lets PID 1 carry out the steps of ck_plan() through the mounted tree; all processes are
 * stopped. @mark is a file that says from then on how far the steps are, whichever process
 * dies. If the sandbox ended when all steps were done: 0.
 */
int live_apply(struct live *l, const struct ck_layers *layers, int steps, int mark,
	       struct err *e);

/* Waits until a sandbox whose caller has died is gone. */
void live_await_end(const char *dir);

/*
 * Has no process run since live_settled() with the same @state, so that nothing can have
 * changed? False if that cannot be told, or the sandbox is gone. A state that is read after
 * this call may be reported with live_settled().
 */
bool live_still(struct live *l, uint64_t state);
void live_settled(struct live *l, uint64_t state);

/*
 * The layers of the sandbox of @dir that hold nothing, as idle_layers_untouched(); none if
 * there is no sandbox or no answer: PID 1 serves one client at a time, so a caller that holds
 * a connection gets no answer on another.
 */
uint64_t live_untouched(const char *dir);

/* How long the processes were stopped, in all, in microseconds. */
int64_t live_paused_us(const struct live *l);

#endif
