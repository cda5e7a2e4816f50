/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LIMITS_LIMIT_H
#define STET_LIMITS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The limits of a run, for all of its processes together; 0 means no limit. They need no
 * privilege: a cgroup where we may make one, rlimits that hold in the sandbox's own user
 * namespace, and a process of ours outside that looks several times a second.
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

/* The place where a cgroup would be made, for people; false if there is none. */
struct buf;

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

/* --- what the watcher looks at; for tests of their own --- */

/* Bytes that an object counts beside its blocks, so that empty ones are not free. */
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

struct proc_use {
	uint64_t pids, rss, ticks;
};
struct proc_scan;

#endif
