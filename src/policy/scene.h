/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_SCENE_H
#define STET_POLICY_SCENE_H

#include "base/arena.h"
#include "policy/parts.h"
#include "policy/tri.h"

/* How a path lies to a directory. */
enum relation { REL_NONE, REL_SAME, REL_BELOW, REL_ABOVE };

/* The last path that was compared with the workspace or the home, and the result. */
struct lead {
	const char *path, *left; /* left: the part behind the directory */
	bool glob;
	enum relation how;
	enum tri sure;
};

/* The state of one question to the policy, from its beginning to its verdict. */
struct scene {
	const struct policy *p;
	struct arena *arena;
	struct verdict *v;
	const char *cwd;		/* NULL: not known; scene_cwd() says what it is */
	const struct exec_facts *facts; /* or NULL */
	const char *workspace, *home, *git;
	bool text;	 /* what is unknown is deferred; otherwise it does not count */
	unsigned depth;	 /* of commands in commands */
	unsigned nested; /* of texts in texts; the place is the outermost one */
	size_t from, to; /* that place */
	bool loosens;	 /* what is looked for is an exception */
	unsigned steps;	 /* left before it is too much */
	size_t made;	 /* letters and words that came out of expansions so far */
	/* The word that was cleaned last, where, and what it is: path.c. */
	const char *cleaned, *cleaned_in, *clean;
	struct lead leads[2]; /* for the workspace and for the home */
};

enum { DEPTH_MAX = 24, STEPS_MAX = 20000, MADE_MAX = 8 << 20 };

/*
 * Something cannot be known from the text: the verdict becomes VERDICT_DEFER, unless a stricter
 * one has been given. Without effect at an exec, where the program itself is asked about.
 */
void judge_defer(struct scene *s);

/*
 * A rule matches, surely or perhaps. Its verdict counts if no verdict so far is as strict; a
 * rule that only perhaps matches defers.
 */
void judge_apply(struct scene *s, enum verdict_kind kind, enum tri sure, const char *rule,
		 const char *why, const char *hint);

#endif
