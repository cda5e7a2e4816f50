/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/fold.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	KEYS = 4096,	    /* commands that are told apart; a power of two */
	SAMPLE_MAX = 16384, /* of one that is told */
	PIDS = 1 << 22,	    /* the kernel gives no higher numbers */
};

struct known {
	uint64_t hash; /* 0: free */
	uint64_t seen, count;
	char *sample; /* fields of the record, but for the number; NULL: none */
	size_t len;
};

struct fold {
	pid_t owner; /* a child of ours has none of it to tell */
	int64_t room, filled_s, tell_s;
	struct known v[KEYS];
	size_t n, told;
	struct fold_sum rest;
	unsigned char *pids; /* a bit for each whose exec was counted */
};

struct fold *fold_new(void)
{
	struct fold *f = xcalloc(1, sizeof(*f));

	f->owner = getpid();
	f->room = FOLD_ROOM;
	f->filled_s = (clock_ms(CLOCK_MONOTONIC_COARSE) / 1000);
	f->tell_s = f->filled_s + FOLD_EVERY_S;
	return f;
}

static void forget(struct fold *f)
{
	for (size_t i = 0; i < KEYS; i++)
		free(f->v[i].sample);
	memset(f->v, 0, sizeof(f->v));
	f->n = f->told = 0;
	f->rest = (struct fold_sum){ 0 };
}

void fold_free(struct fold *f)
{
	if (!f)
		return;
	forget(f);
	free(f->pids);
	free(f);
}

static uint64_t add_text(uint64_t hash, const char *s)
{
	return s ? XXH64(s, strlen(s) + 1, hash) : hash + 1;
}

static uint64_t hash_of(const struct audit_exec *x)
{
	uint64_t h = XXH64(&x->txn, sizeof(x->txn), x->argc_all);

	h = add_text(add_text(h, x->verdict), x->rule);
	h = add_text(add_text(h, x->outcome), x->exe);
	for (size_t i = 0; i < x->argc; i++)
		h = add_text(h, x->argv[i]);
	return h | 1;
}

/* Finds the entry of a command; NULL: too many different commands. */
static struct known *find(struct fold *f, uint64_t hash)
{
	size_t i = hash >> 8 & (KEYS - 1);

	while (f->v[i].hash && f->v[i].hash != hash)
		i = (i + 1) & (KEYS - 1);
	if (f->v[i].hash)
		return &f->v[i];
	if (f->n >= KEYS * 3 / 4)
		return NULL;
	f->n++;
	f->v[i].hash = hash;
	return &f->v[i];
}

static bool has_room(struct fold *f)
{
	int64_t now = (clock_ms(CLOCK_MONOTONIC_COARSE) / 1000);

	f->room += (now - f->filled_s) * FOLD_MORE;
	f->filled_s = now;
	if (f->room > FOLD_ROOM)
		f->room = FOLD_ROOM;
	return f->room > 0;
}

static void mark(struct fold *f, pid_t pid, bool counted)
{
	if (pid < 0 || pid >= PIDS || (!counted && !f->pids))
		return;
	if (!f->pids)
		f->pids = xcalloc(PIDS / 8, 1);
	if (counted)
		f->pids[pid / 8] |= (unsigned char)(1 << pid % 8);
	else
		f->pids[pid / 8] &= (unsigned char)~(1 << pid % 8);
}

static bool is_marked(const struct fold *f, pid_t pid)
{
	return f->pids && pid >= 0 && pid < PIDS && f->pids[pid / 8] & 1 << pid % 8;
}

static void keep_sample(struct known *k, const struct audit_exec *x)
{
	AUTO_BUF struct buf b = BUF_INIT;

	if (k->sample)
		return;
	record_command(x, &b);
	if (b.len > SAMPLE_MAX)
		return;
	k->len = b.len;
	k->sample = buf_take(&b);
}

static bool has_counted(const struct fold *f)
{
	if (f->rest.execs || f->rest.exits)
		return true;
	for (size_t i = 0; i < KEYS; i++)
		if (f->v[i].count)
			return true;
	return false;
}

static void begin_anew(struct fold *f)
{
	forget(f);
	f->tell_s = (clock_ms(CLOCK_MONOTONIC_COARSE) / 1000) + FOLD_EVERY_S;
}

bool fold_exec(struct fold *f, const struct audit_exec *x)
{
	uint64_t hash = hash_of(x);
	struct known *k = find(f, hash);
	bool counted;

	if (!k && (clock_ms(CLOCK_MONOTONIC_COARSE) / 1000) >= f->tell_s &&
	    !has_counted(f)) {
		begin_anew(f);
		k = find(f, hash);
	}
	counted = !has_room(f) || (k && k->seen >= FOLD_AFTER);

	if (k)
		k->seen++;
	mark(f, x->pid, counted);
	if (!counted)
		return false;
	f->rest.txn = x->txn;
	/* Of a command that is seen for the first time only the number is kept. */
	if (k && k->seen > 1) {
		k->count++;
		keep_sample(k, x);
	} else {
		f->rest.execs++;
		f->rest.denied += strcmp(x->outcome ? x->outcome : "", "ran") != 0;
	}
	return true;
}

bool fold_exit(struct fold *f, int64_t txn, pid_t pid, int status)
{
	if (!is_marked(f, pid) && has_room(f))
		return false;
	mark(f, pid, false);
	f->rest.txn = txn;
	f->rest.exits++;
	f->rest.failed += status != 0;
	return true;
}

void fold_written(struct fold *f, size_t len)
{
	f->room -= (int64_t)len;
}

bool fold_due(const struct fold *f, bool now)
{
	return f && f->owner == getpid() &&
	       (now || (clock_ms(CLOCK_MONOTONIC_COARSE) / 1000) >= f->tell_s) &&
	       (f->told || has_counted(f));
}

static struct known *most(struct fold *f)
{
	struct known *best = NULL;

	for (size_t i = 0; i < KEYS; i++)
		if (f->v[i].count && f->v[i].sample &&
		    (!best || f->v[i].count > best->count))
			best = &f->v[i];
	return best;
}

bool fold_tell(struct fold *f, struct buf *out)
{
	struct known *k = f->told < FOLD_TOLD ? most(f) : NULL;

	if (k) {
		record_folded(f->rest.txn, k->count, k->sample, k->len, out);
		k->count = 0;
		f->told++;
		return true;
	}
	for (size_t i = 0; i < KEYS; i++) {
		f->rest.execs += f->v[i].count;
		f->v[i].count = 0;
	}
	if (f->rest.execs || f->rest.exits) {
		record_rest(&f->rest, out);
		f->rest = (struct fold_sum){ .txn = f->rest.txn };
		return true;
	}
	begin_anew(f);
	return false;
}
