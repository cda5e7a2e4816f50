/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_WATCH_H
#define STET_CKPT_WATCH_H

#include "ckpt/ckpt.h"
#include "ckpt/walk.h"

/*
 * Tells what changes in mounted layers, from the scan on that it is given to. It does not see
 * stores into mapped memory, nor splice(2) and asynchronous writes to a file that is still
 * open for writing. NULL: not possible here.
 */
struct ck_watch *ck_watch_new(void);

void ck_watch_free(struct ck_watch *w); /* NULL is fine */

/* Adds the paths that have changed. False: events were lost, so any path can have changed. */
bool ck_watch_read(struct ck_watch *w, struct ck_paths *changed);

/* Begins to watch a directory. Failures show in ck_watch_read(). */
void ck_watch_dir(struct ck_watch *w, int fd, uint32_t layer, const char *rel);

/* Adds a path that ck_watch_read() is to report. */
void ck_watch_note(struct ck_watch *w, uint32_t layer, const char *rel);

#endif
