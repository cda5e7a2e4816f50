/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/chosen.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "sys/mountinfo.h"

#define SPECIAL "*?["

char *chosen_literal(const char *path)
{
	struct buf b = BUF_INIT;

	if (!strpbrk(path, SPECIAL))
		return xstrdup(path);
	for (; *path; path++) {
		if (strchr(SPECIAL "\\", *path))
			buf_addc(&b, '\\');
		buf_addc(&b, *path);
	}
	return buf_take(&b);
}

bool chosen_is_pattern(const char *entry)
{
	if (!strpbrk(entry, SPECIAL))
		return false;
	for (; *entry; entry++) {
		if (*entry == '\\' && entry[1])
			entry++;
		else if (strchr(SPECIAL, *entry))
			return true;
	}
	return false;
}

static bool matches(const char *entry, const char *path, int flags)
{
	return fnmatch(entry, path, FNM_PATHNAME | flags) == 0;
}

bool chosen_has(const char *const *list, const char *path)
{
	for (; list && *list; list++)
		if (strpbrk(*list, SPECIAL) ? matches(*list, path, FNM_LEADING_DIR)
					    : path_within(path, *list))
			return true;
	return false;
}

enum { NO = 0, PATTERN = 1, EXACT = INT_MAX };

/* How strongly the list names @path: NO, PATTERN, the length of a directory above it, EXACT. */
static int strength(const char *const *list, const char *path)
{
	int best = NO, n;

	for (; list && *list; list++) {
		const char *one[] = { *list, NULL };

		if (!chosen_has(one, path))
			continue;
		if (chosen_is_pattern(*list))
			n = PATTERN;
		else if (strpbrk(*list, SPECIAL) ? matches(*list, path, 0)
						 : strcmp(*list, path) == 0)
			n = EXACT;
		else
			n = PATTERN + (int)strlen(*list);
		best = n > best ? n : best;
	}
	return best;
}

enum chosen_side chosen_side(const char *const *ours, const char *const *theirs,
			     const char *path)
{
	int a = strength(ours, path), b = strength(theirs, path);

	if (!a || !b)
		return a ? CHOSEN_OURS : b ? CHOSEN_THEIRS : CHOSEN_NEITHER;
	/*
	 * A pattern may be meant as an exception to the directory, or the directory to the
	 * pattern.
	 */
	if (a == b || (a != EXACT && b != EXACT && (a == PATTERN || b == PATTERN)))
		return CHOSEN_BOTH;
	return a > b ? CHOSEN_OURS : CHOSEN_THEIRS;
}

int chosen_twice(const char *path, struct err *e)
{
	err_set(e, ERR_USAGE, "%s is named by --ours and by --theirs alike", path);
	return err_hint(e, "name it, and no pattern, in the one that is meant");
}
