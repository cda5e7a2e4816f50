/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RULES_DIGEST_H
#define STET_RULES_DIGEST_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* SHA-256 as hexadecimal digits. */
enum { DIGEST_HEX = 2 * SHA256_DIGEST_SIZE + 1 };

struct digest {
	struct sha256_ctx ctx;
};

static inline void digest_begin(struct digest *d)
{
	sha256_init(&d->ctx);
}

static inline void digest_add(struct digest *d, const void *data, size_t len)
{
	sha256_update(&d->ctx, len, data);
}

static inline void digest_end(struct digest *d, char hex[DIGEST_HEX])
{
	uint8_t raw[SHA256_DIGEST_SIZE];
	size_t i;

	sha256_digest(&d->ctx, sizeof(raw), raw);
	for (i = 0; i < sizeof(raw); i++)
		snprintf(hex + 2 * i, 3, "%02x", raw[i]);
}

#endif
