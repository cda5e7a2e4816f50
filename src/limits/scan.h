/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LIMITS_SCAN_H
#define STET_LIMITS_SCAN_H

#include "limits/limit.h"

/* Has it come to where there is nothing more to learn? */
bool disk_is_full(const struct disk_use *u);

/* Adds what lies below directory @path. @max: entries at most; 0: all. */
void disk_measure(const char *path, uint64_t max, struct disk_use *u);

struct proc_scan *proc_scan_new(int proc); /* takes @proc over: a procfs */
void proc_scan_free(struct proc_scan *s);

/* PID 1 is ours and does not count. CPU ticks are of all that ever ran, as far as seen. */
int proc_scan_look(struct proc_scan *s, struct proc_use *u);

/* Adds files that have no name any more and are held open, each once. */
void proc_scan_nameless(struct proc_scan *s, struct disk_use *u);

/*
 * Bytes that are theirs alone or shared among them, each page once. @files: what is held in files
 * in memory; pages of those that are mapped are among the shared ones, and do not count again.
 */
uint64_t proc_scan_memory(struct proc_scan *s, uint64_t files);

#endif
