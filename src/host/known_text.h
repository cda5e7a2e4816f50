/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_KNOWN_TEXT_H
#define STET_HOST_KNOWN_TEXT_H

#include "host/known.h"

/* The base's content of a small text file, for merging; false if it was not kept. */
bool known_content(struct known *k, uint32_t layer, const char *rel, struct buf *out);

#endif
