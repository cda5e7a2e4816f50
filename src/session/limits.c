/* SPDX-License-Identifier: Apache-2.0 */
#include "session/limits.h"

#include "base/buf.h"
#include "base/text.h"
#include "limits/limits.h"

/* The bytes per file that ext4 assumes by default. */
enum { DISK_PER_FILE = 16384, FILES_LEAST = 100000 };

struct run_limits limits_of(const struct limit_opts *o, const struct policy *p)
{
	static const struct policy_limits none;
	const struct policy_limits *d = p ? policy_limits(p) : &none;

	struct run_limits l = { .wall_ms = o->timeout ? o->timeout : d->wall_ms,
				.cpu_ms = o->cpu ? o->cpu : d->cpu_ms,
				.memory = o->memory ? o->memory : d->memory,
				.disk = o->disk ? o->disk : d->disk,
				.files = (uint64_t)(o->files ? o->files : d->files),
				.file = o->file ? o->file : d->file,
				.output = o->output ? o->output : d->output,
				.pids = o->pids ? o->pids : d->pids };

	/* Empty files take no blocks, but the filesystem has only so many. */
	if (l.disk && !l.files)
		l.files = l.disk / DISK_PER_FILE > FILES_LEAST ? l.disk / DISK_PER_FILE
							       : FILES_LEAST;
	return l;
}

/* UINT64_MAX stands for what could not be counted. */
static const char *what(const void *at)
{
	return run_limit_name(((const struct limit_hit *)at)->what);
}

static json_t *used(const void *at)
{
	const struct limit_hit *hit = at;

	return hit->used == UINT64_MAX ? json_null()
				       : json_integer((json_int_t)hit->used);
}

const struct field limit_fields[] = {
	{ "what", FIELD_STRING, 0, "memory, disk, cpu, …", .word = what },
	{ "allowed", FIELD_UINT64, offsetof(struct limit_hit, allowed), "the limit" },
	{ "used", FIELD_UINT64, 0, "null: it was not measured", FIELD_CAN_NULL,
	  .make = used },
	{ NULL },
};

static void amount(const struct limit_hit *hit, uint64_t n, struct buf *out)
{
	if (hit->what == LIMIT_CPU)
		buf_addf(out, "%llu.%01llu s", (unsigned long long)n / 1000,
			 (unsigned long long)n / 100 % 10);
	else if (hit->what == LIMIT_PIDS || hit->what == LIMIT_FILES)
		buf_addf(out, "%llu", (unsigned long long)n);
	else
		text_size(out, n);
}

void limit_describe(const struct limit_hit *hit, struct buf *out)
{
	static const char *const what[] = {
		[LIMIT_CPU] = "CPU time",
		[LIMIT_MEMORY] = "memory",
		[LIMIT_PIDS] = "number of processes",
		[LIMIT_DISK] = "disk space",
		[LIMIT_FILES] = "number of files",
		[LIMIT_FILE] = "file size",
		[LIMIT_OUTPUT] = "output",
	};

	buf_addf(out, "%s limit of ", what[hit->what]);
	amount(hit, hit->allowed, out);
	buf_adds(out, " passed");
	if (hit->what == LIMIT_FILES)
		buf_adds(out, " (--files N allows more)");
}
