/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_SCENE_H
#define STET_POLICY_SCENE_H

#include <stddef.h>

#include "policy/parts.h"
#include "policy/tri.h"
#include "shell/context.h"

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
	struct context ctx; /* shared with the walk through shell text */
	const struct policy *p;
	struct verdict *v;
	const struct exec_facts *facts; /* or NULL */
	const char *workspace, *git;
	bool text;	/* defer what is not known; otherwise that has no effect */
	unsigned depth; /* how many commands, each inside of another, are being judged */
	bool loosens;	/* the condition that is looked at belongs to an exception */
	/* The last word that was made an absolute path, the directory, and the path. */
	const char *cleaned, *cleaned_in, *clean;
	struct lead leads[2]; /* for the workspace and for the home */
};

/* The scene that the context is a part of. */
static inline struct scene *scene_of(struct context *ctx)
{
	return (struct scene *)((char *)ctx - offsetof(struct scene, ctx));
}

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
