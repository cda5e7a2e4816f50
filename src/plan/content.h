/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_CONTENT_H
#define STET_PLAN_CONTENT_H

#include "plan/apply.h"

/*
 * Computes a digest of the content and attributes of the host's object, of a directory of its
 * attributes only; false if it cannot be read. With @text, also returns the content of a file
 * if that is text of at most @max bytes (else *text is empty).
 */
bool apply_digest(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest,
		  struct buf *text, size_t max);

/* apply_digest() of a directory that has these packed attributes (layer/meta.h). */
uint64_t apply_digest_dir(const char *packed, size_t n);

/* apply_digest() of the upper's object, which is no directory. */
bool apply_digest_up(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest);

/*
 * For merging: reads the text of a file, the host's or the staged one; false if it is not text
 * of moderate size.
 */
bool apply_text(struct apply *a, uint32_t layer, const char *rel, bool host,
		struct buf *out);

#endif
