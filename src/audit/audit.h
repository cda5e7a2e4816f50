/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_AUDIT_H
#define STET_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The books: what was executed, and what was done with transactions. One file per journal,
 * `audit.jsonl` in the state directory, which the sandbox does not see; lines of JSON, only
 * ever appended:
 *
 *	{"seq":7,"prev":"<hash of line 6>","time":…,"event":…,…,"hash":"<hash>"}
 *
 * The hash is SHA-256 over the bytes of its line before `,"hash"`; through prev it covers all
 * lines before. `audit.head` beside it says how far the books go, so that a missing end shows,
 * too. Whoever can write both can write books of his own: the chain tells of accidents and
 * of edits, it is no seal.
 *
 * They are bounded: a volume that is full is put aside (volumes.h), the oldest go, and the
 * chain can still be followed from there on.
 *
 * Any number of processes write at once; each record is in the file when the call returns,
 * though not on the disk. A crash may leave a part of a line: the next writer closes it
 * and says so.
 */
struct audit;

#define AUDIT_LOG "audit.jsonl"
#define AUDIT_HEAD "audit.head"

/* Opens the books in @dir, making them if need be. -errno. */
int audit_open(const char *dir, struct audit **out);
void audit_close(struct audit *a); /* NULL is fine */

/* Fields of an exec record. Strings are bytes; secrets in argv are covered up. */
struct audit_exec {
	int64_t txn;
	pid_t pid, ppid; /* as the sandbox numbers them */
	const char *exe; /* NULL: unknown */
	const char *cwd;
	const char *const *argv;
	size_t argc;		    /* of what @argv holds */
	size_t argc_all;	    /* that there were */
	const char *verdict, *rule; /* rule may be NULL */
	const char *outcome;
};

/* An operation on a transaction; fields that are 0 or NULL are left out. */
struct audit_op {
	const char *event; /* "begin", "end", "commit", … */
	int64_t txn, op;
	const char *workspace;
	const char *const *argv; /* NULL-ended */
	bool has_exit;
	int exit_status;
	const char *reason;
	uint64_t changes;
	const char *policy; /* hash of the policy that holds */
};

/*
 * 0 or -errno. A record that could not be written is lost; the next one that can says how many
 * were. @a NULL: nothing is written.
 */
int audit_exec(struct audit *a, const struct audit_exec *x);
int audit_op(struct audit *a, const struct audit_op *o);

/* The end of a process that had executed something; @status as waitpid(2) has it. */
int audit_exit(struct audit *a, int64_t txn, pid_t pid, int status);

/*
 * Between begin and end records gather, and are written together at the end. No other process
 * can write meanwhile: for a short time only, in which nothing is waited for.
 */
void audit_gather(struct audit *a, bool begin);

/* For tests: a volume is full at this size. */
void audit_volume(struct audit *a, uint64_t size);

/* --- reading --- */

struct audit_line {
	const char *text; /* one line without its end; NUL-terminated */
	size_t len;
	uint64_t number;   /* from 1, through all volumes */
	bool sound;	   /* it is a record, and hash and chain are right */
	const char *wrong; /* what is not, or NULL */
	uint64_t seq;	   /* 0 if it is no record */
};

struct audit_reader;

/*
 * Called for every fault, from the first line to the head: @what continues "line N …", or, if
 * @line is 0, is the whole sentence.
 */
typedef void audit_complain(void *arg, uint64_t line, const char *what);

/* --- secrets --- */

struct buf;
/*
 * Replaces known secrets by "***": values of options and variables whose names say so,
 * passwords in URLs, credentials in headers, keys of well-known shapes; also within a longer
 * text such as a script. Words are handed over one after the other: an option may announce
 * that the next word is a secret.
 */
struct redact {
	/* What the next word is: a secret, one after a colon, or one that may hold one. */
	enum { REDACT_NOTHING, REDACT_WORD, REDACT_COLON, REDACT_PASSWORD } next;
	char program[32]; /* whose short options these are */
	bool login;	  /* it is told to log in: docker login, and the like */
};

#endif
