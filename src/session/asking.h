/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_ASKING_H
#define STET_SESSION_ASKING_H

#include "call/ctx.h"
#include "gate/gate.h"

/*
 * Questions that another program answers. While one waits there is a socket `ask` in the
 * transaction's directory, where only the user gets to and nothing from the inside. Whoever
 * connects is sent the question as JSON in one packet, and may send "yes", "no" or "always".
 */
#define ASK_NAME "ask"

/*
 * Waits for an answer. CONSENT_NO also if there can be none: the time is over, we are told to
 * end, or the socket cannot be made.
 */
enum consent asking_wait(const char *dir, const struct consent_question *q,
			 const struct ask_wait *w);

/*
 * The question that waits in @dir: 0, and *sock to answer by (to be closed) and the question
 * (to be freed); 1 if there is none; -errno.
 */
int asking_look(const char *dir, int *sock, char **question);

/* Answers; ERR_STATE if nobody waits for it any more. */
int asking_answer(int sock, enum consent answer, struct err *e);

/* "no", "yes", "always" */
const char *consent_name(enum consent c);

#endif
