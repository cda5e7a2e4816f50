/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PARTS_H
#define STET_CKPT_PARTS_H

#include <sys/stat.h>

#include "base/buf.h"
#include "ckpt/ckpt.h"

/* Private to the room. */

/*
 * Objects are contents of files, each under a number. Small ones share a file, the pack of the
 * scan that found them.
 */
#define CK_OBJECT_NAME 17
/*
 * Contents up to CK_SMALL are packed; from CK_REFLINK_MIN on sharing blocks is faster than
 * copying.
 */
enum { CK_SMALL = 64 * 1024, CK_REFLINK_MIN = 128 * 1024 };

struct ck_packer {
	int fd; /* -1: none yet */
	uint64_t number;
	uint32_t blocks;
	char *data; /* of the last ones, not written yet */
	size_t n;
};

/* The pack that was read last; the caller closes it. */
struct ck_opened {
	int fd;
	uint64_t number;
};

#endif
