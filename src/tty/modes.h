/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_MODES_H
#define STET_TTY_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which modes a program switched on in the user's terminal, learnt from the output that
 * passes. A full-screen program that is killed leaves them on: mouse reports, hidden
 * cursor, alternate screen. Start with all bytes zero.
 */
struct modes {
	uint32_t set; /* bit n: row n of the table is not at its default */
	uint16_t params[8];
	uint8_t nparams;
	uint8_t state;
	char mark;	 /* '?', '>', '<', '=' after CSI, or 0 */
	uint8_t kitty;	 /* keyboard flags pushed */
	bool kitty_set;	 /* keyboard flags set without a push */
	bool other_keys; /* modifyOtherKeys */
};

#define MODES_RESET_MAX 256

void modes_feed(struct modes *m, const char *s, size_t len);

/* The bytes that undo the modes; returns their length, 0 if all modes are at their defaults. */
size_t modes_reset(const struct modes *m, char out[MODES_RESET_MAX]);

#endif
