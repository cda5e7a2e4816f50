/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/gitindex.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

/*
 * Lengths and offsets of git's Documentation/gitformat-index: versions 2 to 4, of repositories
 * with either hash.
 */
enum {
	HEADER = 12,
	STAT = 40,	/* times, device, inode, mode, owner, group, size */
	STAT_MODE = 24, /* of these the only one that is the user's */
	EXTENDED = 0x40,
};

/* Extensions that git can compute again from the rest. */
static const char derived[][5] = { "TREE", "UNTR", "FSMN", "EOIE", "IEOT" };

struct reading {
	const char *data;
	size_t at, end;
	gitindex_fn *fn;
	void *arg;
};

bool gitindex_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, "index") == 0;
}

/* The next @len bytes, or NULL if there are not so many. */
static const char *take(struct reading *r, size_t len)
{
	const char *p = r->data + r->at;

	if (len > r->end - r->at)
		return NULL;
	r->at += len;
	return p;
}

static uint32_t number(const char *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return be32toh(n);
}

/*
 * In version 4 a name begins with a number: how many bytes of the name before it are dropped.
 */
static bool skip_number(struct reading *r)
{
	const char *c;

	do
		c = take(r, 1);
	while (c && *c & 0x80);
	return c;
}

/*
 * Skips a name. It ends in a NUL; before version 4 in as many as make the length of the entry
 * a multiple of eight.
 */
static bool take_name(struct reading *r, size_t start, uint32_t version)
{
	const char *from = r->data + r->at, *nul;

	if (version == 4 && !skip_number(r))
		return false;
	nul = memchr(r->data + r->at, '\0', r->end - r->at);
	if (!nul)
		return false;
	r->at = (size_t)(nul + 1 - r->data);
	r->fn(r->arg, from, (size_t)(nul + 1 - from));
	return version == 4 || take(r, (8 - (r->at - start) % 8) % 8);
}

static bool take_entry(struct reading *r, size_t hash, uint32_t version)
{
	size_t start = r->at;
	const char *st = take(r, STAT), *id = st ? take(r, hash + 2) : NULL;

	if (!id)
		return false;
	r->fn(r->arg, st + STAT_MODE, sizeof(uint32_t));
	r->fn(r->arg, id, hash + 2);
	if (id[hash] & EXTENDED) {
		const char *more = version >= 3 ? take(r, 2) : NULL;

		if (!more)
			return false;
		r->fn(r->arg, more, 2);
	}
	return take_name(r, start, version);
}

static bool take_extension(struct reading *r)
{
	const char *head = take(r, 8), *body = head ? take(r, number(head + 4)) : NULL;

	if (!body)
		return false;
	for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++)
		if (memcmp(head, derived[i], 4) == 0)
			return true;
	r->fn(r->arg, head, 8);
	r->fn(r->arg, body, number(head + 4));
	return true;
}

static void tell_nobody(void *arg, const void *part, size_t len)
{
	(void)arg, (void)part, (void)len;
}

static bool parts(const char *data, size_t len, size_t hash, gitindex_fn *fn, void *arg)
{
	struct reading r = { .data = data, .fn = fn, .arg = arg };
	uint32_t version, n;
	const char *head;

	if (len < HEADER + hash)
		return false;
	r.end = len - hash;
	head = take(&r, HEADER);
	version = number(head + 4);
	n = number(head + 8);
	if (memcmp(head, "DIRC", 4) != 0 || version < 2 || version > 4)
		return false;
	fn(arg, head, HEADER);
	for (uint32_t i = 0; i < n; i++)
		if (!take_entry(&r, hash, version))
			return false;
	while (r.at < r.end)
		if (!take_extension(&r))
			return false;
	return true;
}

bool gitindex_parts(const char *data, size_t len, gitindex_fn *fn, void *arg)
{
	static const size_t hashes[] = { 20, 32 };

	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		if (parts(data, len, hashes[i], tell_nobody, NULL))
			return parts(data, len, hashes[i], fn, arg);
	return false;
}
