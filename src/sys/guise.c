/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/guise.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

static int set_caps(cap_flag_value_t value)
{
	cap_value_t caps[] = { CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
			       CAP_CHOWN, CAP_FSETID };
	cap_t c = cap_get_proc();
	int r;

	if (!c)
		return -errno;
	r = cap_set_flag(c, CAP_EFFECTIVE, ARRAY_SIZE(caps), caps, value);
	if (r == 0)
		r = cap_set_proc(c);
	r = r < 0 ? -errno : 0;
	cap_free(c);
	return r;
}

/* Our own groups could open to the other what is closed to him. */
static int set_groups(const char *list)
{
	AUTO_FREE gid_t *v = xmalloc((strlen(list) / 2 + 1) * sizeof(*v));
	size_t n = 0;
	char *end;

	for (;; list = end) {
		unsigned long id = strtoul(list, &end, 10);

		if (end == list)
			break;
		v[n++] = (gid_t)id;
	}
	return setgroups(n, v) < 0 ? -errno : 0;
}

int guise_take(struct guise *g, pid_t pid)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/status", (int)pid), *line = NULL;
	AUTO_FREE char *groups = NULL;
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	unsigned uid = UINT_MAX, gid = UINT_MAX;
	size_t room = 0;
	int r;

	while (f && getline(&line, &room, f) >= 0) {
		sscanf(line, "Uid: %*u %*u %*u %u", &uid);
		sscanf(line, "Gid: %*u %*u %*u %u", &gid);
		if (!groups && strncmp(line, "Groups:", 7) == 0)
			groups = xstrdup(line + 7);
	}
	if (uid == UINT_MAX || gid == UINT_MAX || !groups)
		return -ESRCH;
	*g = (struct guise){ .uid = uid, .gid = gid, .own = geteuid() == 0 && uid == 0 };
	/* An ordinary user's groups are his everywhere, and not to be set. */
	r = geteuid() == 0 && !g->own ? set_groups(groups) : 0;
	return r < 0 ? r : guise_on(g);
}

int guise_on(const struct guise *g)
{
	if (g->own)
		return 0;
	setfsgid(g->gid);
	setfsuid(g->uid);
	return set_caps(CAP_CLEAR);
}

int guise_off(const struct guise *g)
{
	if (g->own)
		return 0;
	setfsgid(getegid());
	setfsuid(geteuid());
	return set_caps(CAP_SET);
}
