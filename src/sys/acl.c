/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/acl.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { USER = 0x02, GROUP_OBJ = 0x04, GROUP = 0x08, MASK = 0x10, OTHER = 0x20 };

struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

#define HEAD sizeof(uint32_t)

static struct entry get(const char *acl, size_t at)
{
	struct entry e;

	memcpy(&e, acl + at, sizeof(e));
	return (struct entry){ le16toh(e.tag), le16toh(e.perm), le32toh(e.id) };
}

static bool stranger(const struct entry *e)
{
	return (e->tag == USER || e->tag == GROUP) && e->id == UINT32_MAX;
}

/* What those get whom no entry names, and what somebody can get by a group at most. */
struct rest {
	unsigned mask, other, groups;
};

static struct rest rest_of(const char *acl, size_t len)
{
	struct rest r = { .mask = 7 };

	for (size_t at = HEAD; at < len; at += sizeof(struct entry)) {
		struct entry e = get(acl, at);

		if (e.tag == MASK)
			r.mask = e.perm;
		else if (e.tag == OTHER)
			r.other = e.perm;
		else if (e.tag == GROUP_OBJ || (e.tag == GROUP && !stranger(&e)))
			r.groups |= e.perm;
	}
	r.groups &= r.mask;
	return r;
}

ssize_t acl_without_strangers(void *acl, size_t len)
{
	struct rest rest;
	size_t end = HEAD;
	char *p = acl;

	errno = EXDEV;
	if (len < HEAD || (len - HEAD) % sizeof(struct entry))
		return -1;
	rest = rest_of(p, len);
	for (size_t at = HEAD; at < len; at += sizeof(struct entry)) {
		struct entry e = get(p, at);
		unsigned then = e.tag == USER ? rest.other | rest.groups : rest.other;

		if (stranger(&e) && then & ~(e.perm & rest.mask))
			return -1;
		if (stranger(&e))
			continue;
		memmove(p + end, p + at, sizeof(e));
		end += sizeof(e);
	}
	return (ssize_t)end;
}
