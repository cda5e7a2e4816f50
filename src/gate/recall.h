/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_RECALL_H
#define STET_GATE_RECALL_H

#include "gate/image.h"

/*
 * Where a path led the last time that somebody executed it. It may lead elsewhere by now, or for
 * another caller: so this is a guess, good for letting a call go on whose outcome is looked at
 * before its first instruction, and for nothing else. In particular not for refusing one.
 */
struct recall *recall_new(void);
void recall_free(struct recall *r);

/* Sets exe, st, flags, known_as and recalled of @out, if @path is known. */
bool recall_get(const struct recall *r, const char *path, struct image *out);
void recall_put(struct recall *r, const char *path, const struct image *i);

/* It led elsewhere this time. @recalled: image.recalled; 0 does nothing. */
void recall_drop(struct recall *r, unsigned recalled);

#endif
