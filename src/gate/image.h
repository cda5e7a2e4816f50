/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_IMAGE_H
#define STET_GATE_IMAGE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "policy/policy.h"
#include "sys/unotify.h"

/* The program of an exec, before or after the commit. Owned; image_free() leaves it empty. */
struct image {
	char *exe, *cwd;      /* NULL if unknown */
	bool placed;	      /* cwd has been looked for: image_cwd() */
	const char *known_as; /* lives as long as the process */
	unsigned flags;	      /* EXE_* */
	struct stat st;	      /* of exe, if that is known */
	char *args;	      /* NUL after each */
	size_t args_len, argc;
	unsigned recalled; /* not 0: exe and its file are a guess, see image_cache.h */
};

struct image_cache;
struct image_place {
	struct timespec since;
	bool root;
	int fds; /* our own directory of descriptors in /proc */
	struct image_cache *recall;
};

void image_free(struct image *i);

/*
 * Finds what the caller of a held execve or execveat asks for. Returns 0, or the -errno with
 * which the call is certain to fail. If the path could not be resolved as the kernel will do
 * it, exe is NULL and EXE_UNKNOWN is set. image_cwd() fills in the directory.
 */
int image_asked(const struct image_place *p, const struct seccomp_notif *req,
		struct image *out);

/* image_asked() once more without guesses; @i as image_asked() made it. */
int image_again(const struct image_place *p, const struct seccomp_notif *req,
		struct image *i);

/*
 * Reads the committed image of a task that is stopped at the end of its exec with its stack at
 * @sp (0: not known); @asked: what it had asked for. 0 or -errno.
 */
int image_committed(const struct image_place *p, pid_t pid, uint64_t sp,
		    const struct image *asked, struct image *out);

/* Is the file, as we see it under that name, a program that this kernel executes as it is? */
bool image_is_program(const struct image *i);

/* Would a verdict on @asked be one on @now? */
bool image_same(const struct image *asked, const struct image *now);

/*
 * The working directory, looked up at the first call: most verdicts do not need it. @pid is
 * held or stopped.
 */
const char *image_cwd(struct image *i, pid_t pid);

/* Facts for a judge; *argv is to be freed and must outlive them. */
void image_facts(const struct image *i, struct exec_facts *f, const char ***argv);

/* The tracer of @tid; 0 if there is none or @tid is gone. */
pid_t image_tracer(pid_t tid);

pid_t image_parent(pid_t pid);

#endif
