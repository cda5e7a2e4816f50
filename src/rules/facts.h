/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RULES_FACTS_H
#define STET_RULES_FACTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The things that are judged. The caller finds the facts; judging does not look at the
 * filesystem, the environment or the clock. The strings are read during the call only.
 */

/* Properties of a program file besides its name. */
enum exe_flags {
	EXE_MEMFD = 1 << 0,	 /* an anonymous file in memory */
	EXE_DELETED = 1 << 1,	 /* the file has no name any more */
	EXE_LOADER = 1 << 2,	 /* the dynamic loader as the main program */
	EXE_BUILT_HERE = 1 << 3, /* the file was written in this transaction */
	EXE_UNKNOWN = 1 << 4,	 /* the file could not be read */
	EXE_FOREIGN = 1 << 5,	 /* another ABI than the native one */
	EXE_TRACED = 1 << 6, /* a debugger inside may change the program as it likes */
	EXE_CALL = 1 << 7,   /* the agent itself has started the program */
};

/* A program that is to run or has just been started. */
struct exec_facts {
	const char *exe; /* resolved path in the view of the caller; NULL if unknown */
	/* A well-known program of which exe is a copy under another name; or NULL. */
	const char *known_as;
	unsigned flags;
	const char *const *argv;
	size_t argc;
	const char *cwd; /* absolute; NULL if unknown */
	/* If not NULL: finds cwd, and is called only if the verdict depends on it. */
	const char *(*find_cwd)(void *ctx);
	/*
	 * If not NULL: follows the links in @path, which is as the caller would give it to
	 * the kernel; in the last component only if @last. NULL if the target cannot be
	 * told. The result is valid until the next call.
	 */
	const char *(*find_path)(void *ctx, const char *path, bool last);
	void *ctx;
	const char *workspace; /* absolute; NULL if there is none */
	const char *home;      /* absolute; NULL if unknown */
	bool ahead;	       /* the command is not yet executed */
};

/* The place in which shell text is to run. */
struct text_facts {
	const char *cwd, *workspace, *home; /* as above */
};

/* Properties of a change. */
enum change_facts_what {
	CHANGED_WRITTEN = 1 << 0, /* created, or with other content */
	CHANGED_DELETED = 1 << 1,
	CHANGED_SETUID = 1 << 2,     /* gained a set-user-id or set-group-id bit */
	CHANGED_LINK_OUT = 1 << 3,   /* a symbolic link that leads out of the workspace */
	CHANGED_EXECUTABLE = 1 << 4, /* became executable */
	CHANGED_REPLACED =
		1 << 5,		  /* a file that was there has other content or is gone */
	CHANGED_RIGHTS = 1 << 6,  /* mode, owner, ACL or attributes of an existing file */
	CHANGED_SHADOWS = 1 << 7, /* would run instead of a program of the same name */
};

/* A change of a transaction, at commit. */
struct change_facts {
	const char *path; /* absolute */
	unsigned what;
	const char *workspace, *home;
	const char *git; /* the directory of the workspace's repository; NULL: none */
	bool unseen;	 /* nobody has looked at the change before the commit */
};

#endif
