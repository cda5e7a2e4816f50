/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_ERR_H
#define STET_BASE_ERR_H

/*
 * Errors above sys/ are values: flat, owned by the caller, passed last. They need no
 * malloc and no pointer, so a child of clone(2) can write one into a pipe as it is.
 *
 * Convention: a fallible function returns 0, or -1 with *e filled in. sys/ and base/
 * return -errno instead and know nothing of struct err.
 */
enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE = 1,	     /* the command line is wrong */
	ERR_DENIED = 2,	     /* a rule or a person said no */
	ERR_CONFLICT = 3,    /* the host changed meanwhile */
	ERR_STATE = 4,	     /* not possible in the transaction's present state */
	ERR_UNSUPPORTED = 5, /* the kernel, filesystem or configuration cannot do it */
	ERR_SYSTEM = 6,	     /* a system call failed */
	ERR_CORRUPT = 7,     /* what we stored is not what we wrote */
};

struct err {
	enum err_kind kind;
	int sys; /* errno, or 0 */
	char msg[768];
	char hint[384]; /* what to type next; empty if there is nothing to say */
};

/* All return -1, so that `return err_set(e, …)` is the idiom. e may not be NULL. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Kind ERR_SYSTEM; @err is an errno of either sign; ": strerror" is appended. */
int err_sys(struct err *e, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message already there; kind, sys and hint stay. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the hint (replacing an older one). */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "usage", "denied", … : the word used in JSON. */
const char *err_kind_name(enum err_kind kind);

#endif
