/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_LIMITS_H
#define STET_SESSION_LIMITS_H

#include "call/verb.h"
#include "policy/policy.h"
#include "runner/runner.h"

/* Limits as options of a verb; 0: not given. Part of the requests that take them. */
struct limit_opts {
	int64_t timeout, cpu; /* ms */
	uint64_t memory, disk, file, output;
	int64_t pids, files;
};

/* Their rows in a table of options; @at: where the struct lies in the request. */
#define LIMIT_AT(at, field) ((at) + offsetof(struct limit_opts, field))
/* clang-format off */
#define LIMIT_ROWS(at) \
	{ "timeout",      't', OPT_DURATION, "TIME", "end the command after TIME (90s, 5m, 2h)", \
	  LIMIT_AT(at, timeout) }, \
	{ "cpu",          0,   OPT_DURATION, "TIME", "most CPU time of all its processes together", \
	  LIMIT_AT(at, cpu) }, \
	{ "memory",       0,   OPT_SIZE,     "SIZE", "most memory of all its processes together (500M, 4G)", \
	  LIMIT_AT(at, memory) }, \
	{ "pids",         0,   OPT_COUNT,    "N",    "most processes and threads at one time", \
	  LIMIT_AT(at, pids) }, \
	{ "disk",         0,   OPT_SIZE,     "SIZE", "most disk space that it may hold, checkpoints included", \
	  LIMIT_AT(at, disk) }, \
	{ "files",        0,   OPT_COUNT,    "N",    "most files, of every kind, that it may hold", \
	  LIMIT_AT(at, files) }, \
	{ "file-size",    0,   OPT_SIZE,     "SIZE", "largest size of a file that it writes", \
	  LIMIT_AT(at, file) }, \
	{ "output-limit", 0,   OPT_SIZE,     "SIZE", "most bytes that it may write to standard output and error", \
	  LIMIT_AT(at, output) }
/* clang-format on */

/* The paragraph about them, for a verb's description. */
#define LIMIT_TEXT                                                                     \
	"A command that passes --cpu, --memory, --pids, --disk, --files, --file-size " \
	"or --output-limit is killed, with all that it started; the exit status is "   \
	"137, and the reason says which limit it was. The limits hold for all "        \
	"processes together and need no privilege; stet doctor says how they are "     \
	"enforced here. Limits that are not given are those of the policy.\n"          \
	"\n"                                                                           \
	"With --disk each file counts for half a kilobyte beside what it holds, and "  \
	"where --files is not given there may be one for every 16 kilobytes of it, "   \
	"100,000 at least. Every name counts as a file: directories, links, sockets; " \
	"and so does a file without one that is held open."

/* The limits in force: the options and, where they say nothing, the policy (or NULL). */
struct run_limits limits_of(const struct limit_opts *o, const struct policy *p);

/* Rows of a result, about a struct limit_hit: a limit that was passed. */
extern const struct field limit_fields[];

/* limit_hit in words for people. */
void limit_describe(const struct limit_hit *hit, struct buf *out);

#endif
