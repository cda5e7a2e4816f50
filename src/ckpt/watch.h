/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_WATCH_H
#define STET_CKPT_WATCH_H

#include "ckpt/ckpt.h"
#include "ckpt/walk.h"

/*
 * Tells what changes in layers that are mounted, from the scan on that it is given to. What
 * it does not see: stores into memory, and writing by splice(2) or asynchronously to a file that
 * is still open for writing. NULL: not possible here.
 */
struct ck_watch *ck_watch_new(void);

void ck_watch_free(struct ck_watch *w); /* NULL is fine */

/* Adds what has changed. False: something was missed, so anything can have. */
bool ck_watch_read(struct ck_watch *w, struct ck_paths *changed);

/* Watching. Failures show in ck_watch_read(). */
void ck_watch_dir(struct ck_watch *w, int fd, uint32_t layer, const char *rel);

/* It has changed: to be told with the rest. */
void ck_watch_note(struct ck_watch *w, uint32_t layer, const char *rel);

#endif
