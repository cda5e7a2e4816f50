/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_POLICY_H
#define STET_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Pure verdicts. A policy is made of YAML texts, is immutable once loaded, and answers
 * questions about commands, shell texts and changes. Nothing here looks at the filesystem,
 * the environment or the clock: what is judged comes in as facts, so that the same
 * question always has the same answer.
 *
 * Of all rules that match, the strictest wins, in whatever order and layer they stand.
 */
enum verdict_kind {
	VERDICT_ALLOW,	    /* run as it is */
	VERDICT_DEFER,	    /* text only: cannot be known from it, the exec decides */
	VERDICT_CHECKPOINT, /* run, with a checkpoint before */
	VERDICT_ASK,	    /* a person decides; where there is none, it is a deny */
	VERDICT_DENY,	    /* the call fails */
	VERDICT_KILL,	    /* the transaction ends and is rolled back */
};

/* "allow", "defer", … */
const char *verdict_name(enum verdict_kind kind);

struct verdict {
	enum verdict_kind kind;
	/* They belong to the policy and live as long; NULL if no rule matched, a rule
	 * without a hint has hint NULL. */
	const char *rule, *why, *hint;
	size_t from, to; /* text only: the bytes [from, to) that were matched */
};

/* What is known of an image besides its name. */
enum exe_flags {
	EXE_MEMFD = 1 << 0,	 /* an anonymous file in memory */
	EXE_DELETED = 1 << 1,	 /* its file has no name any more */
	EXE_LOADER = 1 << 2,	 /* the dynamic loader as the main program */
	EXE_BUILT_HERE = 1 << 3, /* its file was written in this transaction */
	EXE_UNKNOWN = 1 << 4,	 /* it could not be looked at */
	EXE_FOREIGN = 1 << 5,	 /* another ABI than the native one */
	EXE_TRACED = 1 << 6,	 /* a debugger inside may change it as it likes */
	EXE_CALL = 1 << 7,	 /* started by the agent itself: a call of its */
};

struct exec_facts {
	const char *exe; /* resolved path in the view of the caller; NULL if unknown */
	/* A well-known program of which exe is a copy under another name; or NULL. */
	const char *known_as;
	unsigned flags;
	const char *const *argv;
	size_t argc;
	const char *cwd; /* absolute; NULL if unknown */
	/* Or, if not NULL: finds it, when the verdict turns out to depend on it. */
	const char *(*find_cwd)(void *ctx);
	/*
	 * If not NULL: where @path, as the caller would give it to the kernel, leads when its
	 * links are followed, the last component's too if @last. NULL if that cannot be
	 * told. Valid until the next call.
	 */
	const char *(*find_path)(void *ctx, const char *path, bool last);
	void *ctx;
	const char *workspace; /* absolute; NULL if there is none */
	const char *home;      /* absolute; NULL if unknown */
	bool ahead;	       /* it is asked about a command that is not yet executed */
};

struct text_facts {
	const char *cwd, *workspace, *home; /* as above */
};

enum policy_origin { POLICY_BUILTIN, POLICY_SYSTEM, POLICY_USER, POLICY_PROJECT };

/* "built-in", "system", "user", "project" */
const char *policy_origin_name(enum policy_origin origin);

/* One layer. The built-in one is always there and is not among them. */
struct policy_source {
	enum policy_origin origin;
	const char *name; /* of the file, for messages */
	const char *text;
	size_t len;
};

struct policy;

/*
 * The effective policy of the built-in layer and @n others. *out is to be released with
 * policy_free(). The texts may go afterwards.
 *
 * Fails as a whole (ERR_USAGE, the message begins with "FILE:LINE: ") if one of them is not
 * a policy: a key or value that is not known, aliases, too large, a rule whose tests do
 * not come out as they say, a rule that denies its own hint, a project's layer that would
 * loosen something. Nothing may run under a policy that did not load.
 */
int policy_load(const struct policy_source *sources, size_t n, struct policy **out,
		struct err *e);
void policy_free(struct policy *p); /* NULL is fine */

/* The built-in policy alone; static, never to be freed, costs nothing. */
const struct policy *policy_builtin(void);

/* SHA-256 of everything that has an effect on verdicts, as 64 hexadecimal digits. */
const char *policy_hash(const struct policy *p);

/* SHA-256 of a text, as above. */
void policy_text_hash(const char *text, size_t len, char hex[65]);

/*
 * Judges one program that is to run or has just been started. Wrappers (sudo, env,
 * timeout, find -exec, sh -c with its text …) are looked into; the strictest of what they
 * would run counts. VERDICT_DEFER only if it is asked ahead. Strings of @f are read during
 * the call only.
 */
void policy_judge_exec(const struct policy *p, const struct exec_facts *f,
		       struct verdict *v);

/* How the program of that name runs others, as the tables have it; 0 if it is in none. */
enum policy_runs {
	RUNS_COMMAND = 1 << 0, /* its operands, as timeout, npx */
	RUNS_SCRIPT = 1 << 1,  /* the file that is its first operand, as python */
	RUNS_TEXT = 1 << 2,    /* shell text: it is a shell */
};
unsigned policy_runs(const struct policy *p, const char *name);

/*
 * Judges shell text before it runs. What is not certain from the text is VERDICT_DEFER,
 * unless something certain in it is stricter. Text that is not well-formed is deferred. The
 * only failure is a text over POLICY_TEXT_MAX (ERR_USAGE).
 */
enum { POLICY_TEXT_MAX = 1 << 20 };
int policy_judge_text(const struct policy *p, const char *text, size_t len,
		      const struct text_facts *f, struct verdict *v, struct err *e);

/* One change of a transaction, judged at commit. */
enum change_facts_what {
	CHANGED_WRITTEN = 1 << 0, /* created or its content changed */
	CHANGED_DELETED = 1 << 1,
	CHANGED_SETUID = 1 << 2,   /* has a set-user-id or set-group-id bit it had not */
	CHANGED_LINK_OUT = 1 << 3, /* a symbolic link that leads out of the workspace */
	CHANGED_EXECUTABLE = 1 << 4, /* became executable */
	CHANGED_REPLACED = 1 << 5,   /* what was there has other content, or gave way */
	CHANGED_SHADOWS = 1 << 7,    /* would run instead of a program of the same name */
	CHANGED_RIGHTS = 1 << 6, /* mode, owner, ACL or attributes of what was there */
};

struct change_facts {
	const char *path; /* absolute */
	unsigned what;
	const char *workspace, *home;
	const char *git; /* the directory of the workspace's repository; NULL: none */
	bool unseen;	 /* it is committed without that anybody has looked at it */
};

void policy_judge_change(const struct policy *p, const struct change_facts *f,
			 struct verdict *v);

/* 0 means no limit of that kind. */
struct policy_limits {
	int64_t wall_ms, cpu_ms;
	uint64_t memory, disk, file, output; /* bytes */
	int64_t pids, files;
};

/* The strictest of all layers; belongs to the policy. */
const struct policy_limits *policy_limits(const struct policy *p);

/* What there is to say about one rule; the strings belong to the policy. */
struct policy_rule {
	const char *id, *group, *why, *hint;
	enum verdict_kind verdict;
	enum policy_origin origin;
	bool diff; /* judges changes, not commands */
	bool off;  /* switched off by another layer */
};

/* Rule number @i, from 0 on; false behind the last. */
bool policy_rule_at(const struct policy *p, size_t i, struct policy_rule *out);

/* The rule as it would stand in a file, to be freed; NULL if there is none of that name. */
char *policy_rule_text(const struct policy *p, const char *id);

/* The strictest default of all layers. */
enum verdict_kind policy_default(const struct policy *p);

/*
 * Runs the tests that stand in rules of @origin and those after it, and asks for the
 * hints. @fn is told of each; @got says what came out. Returns the number of those that
 * came out differently.
 */
struct policy_test {
	const char *rule, *text;
	enum verdict_kind want; /* of a hint: VERDICT_ALLOW */
	bool is_hint;		/* anything up to checkpoint will do */
	bool passed;
	struct verdict got;
	size_t layer, index; /* of the document and of the rule in it */
};
typedef void policy_test_fn(void *arg, const struct policy_test *t);
size_t policy_run_tests(const struct policy *p, enum policy_origin origin,
			policy_test_fn *fn, void *arg);

/* The place in which tests are run: $WORKSPACE and the current directory, and $HOME. */
extern const struct text_facts policy_test_facts;

/* May a variable of the environment be seen inside? Without a list every one may. */
bool policy_env_allows(const struct policy *p, const char *name);

#endif
