/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_IMAGE_CACHE_H
#define STET_GATE_IMAGE_CACHE_H

#include "gate/image.h"

/*
 * Remembers where a path led the last time that it was executed. It may lead elsewhere by now,
 * or for another caller. So this is a guess, good for letting a call go on whose outcome is
 * checked before its first instruction, and never for refusing one.
 */
struct image_cache *image_cache_new(void);
void image_cache_free(struct image_cache *r);

/* Sets exe, st, flags, known_as and recalled of @out, if @path is known. */
bool image_cache_get(const struct image_cache *r, const char *path, struct image *out);
void image_cache_put(struct image_cache *r, const char *path, const struct image *i);

/* Forgets an entry that led elsewhere this time. @recalled: image.recalled; 0 does nothing. */
void image_cache_drop(struct image_cache *r, unsigned recalled);

#endif
