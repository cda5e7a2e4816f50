/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_PROCMEM_H
#define STET_SYS_PROCMEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The memory of another process. It may change while we read: nothing here is a proof. */

/* At most @len bytes of another's memory, fewer where it ends: how many, or -errno. */
ssize_t procmem_bytes(pid_t pid, uint64_t addr, void *out, size_t len);

/*
 * A string at @addr in the memory of @pid, with its NUL, into @out of @max bytes. Returns its
 * length, -ENAMETOOLONG if it does not fit, -EFAULT if it is not there, another -errno.
 */
ssize_t procmem_string(pid_t pid, uint64_t addr, char *out, size_t max);

/* What one look at a caller of execve got. */
enum { SEEN_MAX = 64 };
struct procmem_exec {
	uint64_t from; /* where @path is in its memory; @len bytes are known */
	size_t len, have;
	uint64_t argv[SEEN_MAX]; /* the first @have words of its argument vector */
	char path[4096];
};

/* The path, as procmem_string() does, and with luck the arguments. */
ssize_t procmem_exec(pid_t pid, uint64_t path, uint64_t argv, struct procmem_exec *out);

/*
 * The argument vector at @addr in the memory of @pid as the kernel would copy it: each
 * string with its NUL, one after the other. @seen: what is known of it already, or NULL. *len
 * gets their length, *count their number. The result is to be freed. NULL with errno: E2BIG
 * beyond what any exec may have.
 */
char *procmem_args(pid_t pid, uint64_t addr, const struct procmem_exec *seen, size_t *len,
		   size_t *count);

/* No exec has more than that, arguments and environment together. */
enum { PROCMEM_ARGS_MAX = 6 << 20, PROCMEM_ARG_MAX = 32 * 4096 };

#endif
