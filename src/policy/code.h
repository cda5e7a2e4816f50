/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_CODE_H
#define STET_POLICY_CODE_H

#include "policy/scene.h"
#include "shell/cmd.h"

/* The word as code, with CODE_GAP in each place that is not known. */
const char *word_code(const struct word *w);

/* Judges code of another language by what it runs and, for awk and sed, by what it writes. */
void judge_code(struct scene *s, const struct doc_inner *in, const char *code);

/* Judges the calls in code that run programs, as far as their arguments are constant. */
void judge_calls(struct scene *s, const struct doc_inner *in, const char *code);

/* Judges text of a language in which some lines are a shell's, and runs its calls. */
void judge_lines(struct scene *s, const struct doc_inner *in, const struct cmd *c,
		 const char *text);

#endif
