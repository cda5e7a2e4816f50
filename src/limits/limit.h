/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LIMITS_LIMIT_H
#define STET_LIMITS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What a run may use, all of its processes together; 0 means any amount. Enforced without
 * privilege: by a cgroup where we may make one, by rlimits that hold in the sandbox's own
 * user namespace, and by a process of ours outside of it that looks several times a second.
 */
struct run_limits {
	int64_t wall_ms, cpu_ms;
	uint64_t memory; /* bytes in use at one moment */
	uint64_t disk;	 /* bytes that the transaction's layers and checkpoints hold */
	uint64_t
		files; /* names that they hold, of whatever kind, and open files without one */
	uint64_t file;	 /* size of one file */
	uint64_t output; /* bytes written to standard output and error */
	int64_t pids;	 /* processes and threads at one moment */
};

enum run_limit {
	LIMIT_NONE,
	LIMIT_CPU,
	LIMIT_MEMORY,
	LIMIT_PIDS,
	LIMIT_DISK,
	LIMIT_FILES,
	LIMIT_FILE,
	LIMIT_OUTPUT,
};
/* "cpu", "memory", …: also the names of the options. */
const char *run_limit_name(enum run_limit l);

/* A limit that was passed. Time is in milliseconds. */
struct limit_hit {
	enum run_limit what;
	uint64_t used, allowed;
};

/*
 * A cgroup for one run; made only where nothing has to be changed that is not ours. Never
 * required: whatever it cannot do is done by looking.
 */
struct cgroup {
	char *path; /* NULL: there is none */
	int dir;
	bool memory, pids; /* it limits these; CPU time it always counts */
};

/* Makes one for @l if that is possible and of use; else leaves g->path NULL. */
void cgroup_make(const struct run_limits *l, struct cgroup *g);
/* Which of its limits was passed: true with *hit filled in. */
bool cgroup_hit(const struct cgroup *g, const struct run_limits *l,
		struct limit_hit *hit);
/* CPU time of all that ran in it, in milliseconds; -1 if it cannot be read. */
int64_t cgroup_cpu_ms(const struct cgroup *g);
/* When nothing runs in it any more. */
void cgroup_remove(struct cgroup *g);

/* Where one would be made, for people; false if there is no such place. */
struct buf;
bool cgroup_place(struct buf *path, bool *memory, bool *pids);

/* In the command, after its user namespace was made, before it is executed. */
void limits_apply(const struct run_limits *l, bool root);

/*
 * The process that looks. It is our child, outside of the sandbox: nothing in there can
 * signal it. Started late, since most commands end before there is anything to see.
 */
struct watch;

/* @cgroup may be without path. Both, and the directories, must outlive it. NULL if nothing of
 * @l needs to be looked at. */
struct watch_dirs {
	char **v; /* what counts as disk; what is not there holds nothing */
	size_t n;
	size_t ncopies; /* the last ones: copies of ours, not files of the command */
};
struct watch *watch_new(const struct run_limits *l, const struct cgroup *g,
			const struct watch_dirs *dirs);

/* Whom it kills when a limit is passed: PID 1 of the sandbox. The descriptor stays the caller's. */
void watch_victim(struct watch *w, int pidfd);

/* Must it be there from the first moment? As root nothing else stops a fork bomb. */
bool watch_urgent(const struct watch *w);

/*
 * The sandbox, of which @root is the root directory, is up, and nothing runs in it yet: what it
 * is to look at there is opened now. Once all processes are gone its mounts are, too, and what
 * they covered can be the host's. 0 or -errno.
 */
int watch_sandbox(struct watch *w, int root);

/* Starts it. 0 or -errno. */
int watch_start(struct watch *w);

/* To be polled for reading; -1 if it does not run. */
int watch_fd(const struct watch *w);

/* Something is there: true with *hit filled in; or, if it died, -errno in *error. */
bool watch_read(struct watch *w, struct limit_hit *hit, int *error);

/* Everything has ended: what was passed since the last look? */
bool watch_last(struct watch *w, struct limit_hit *hit);

void watch_free(struct watch *w); /* NULL is fine */

/* --- what the watcher looks at; for tests of their own --- */

/* What one object takes beside its blocks, so that empty ones are not free. */
enum { INODE_BYTES = 512 };

struct disk_use {
	uint64_t bytes; /* allocated, each file once, and INODE_BYTES for each */
	uint64_t most;	/* names: more are not counted; 0: all are */
	uint64_t mark;	/* a size to look for; 0: none */
	bool marked;	/* a file has it */
	uint64_t entries;
	bool unreadable; /* a directory could not be opened */
	bool cut;	 /* more than @max entries, or too deep */
};
/* Has it come to where there is nothing more to learn? */
bool disk_is_full(const struct disk_use *u);

/* Adds what lies below directory @path. @max: entries at most; 0: all. */
void disk_measure(const char *path, uint64_t max, struct disk_use *u);

struct proc_use {
	uint64_t pids, rss, ticks;
};
struct proc_scan;
struct proc_scan *proc_scan_new(int proc); /* takes @proc over: a procfs */
void proc_scan_free(struct proc_scan *s);
/* PID 1 is ours and does not count. CPU ticks are of all that ever ran, as far as seen. */
int proc_scan_look(struct proc_scan *s, struct proc_use *u);
/* Adds files that have no name any more and are held open, each once. */
void proc_scan_nameless(struct proc_scan *s, struct disk_use *u);
/* Bytes that are theirs alone or shared among them, each page once. */
uint64_t proc_scan_memory(struct proc_scan *s);

#endif
