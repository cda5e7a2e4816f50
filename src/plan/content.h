/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_CONTENT_H
#define STET_PLAN_CONTENT_H

#include "plan/apply.h"

/* Digest of the content and attributes of what the host has there, of a directory of its attributes
 * alone; false if it cannot be read. With @text, also the content of a file if that is text of
 * at most @max bytes (else *text is empty). */
bool apply_digest(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest,
		  struct buf *text, size_t max);

/* The same of what the upper has there, which is no directory. */
bool apply_digest_up(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest);

/* For merging: the text of a file, host's or staged; false if it is not a text of moderate
 * size. */
bool apply_text(struct apply *a, uint32_t layer, const char *rel, bool host,
		struct buf *out);

#endif
