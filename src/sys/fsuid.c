/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/fsuid.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define BIT(cap) (1U << (cap))
#define FILES                                                                 \
	(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | \
	 BIT(CAP_CHOWN) | BIT(CAP_FSETID))
#define IDS (BIT(CAP_SETUID) | BIT(CAP_SETGID))

/* What is not in @permitted is gone for good. */
static int set_caps(uint32_t permitted, uint32_t effective)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2], was[2];

	if (syscall(SYS_capget, &h, was) < 0)
		return -errno;
	memset(d, 0, sizeof(d));
	d[0].permitted = was[0].permitted & permitted;
	d[0].effective = d[0].permitted & effective;
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

static bool are_ids(uid_t uid, gid_t gid)
{
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

static int set_ids(uid_t uid, gid_t gid)
{
	int r = set_caps(FILES | IDS, IDS);

	if (r < 0)
		return r;
	setfsgid(gid);
	setfsuid(uid);
	if (!are_ids(uid, gid))
		return -EPERM;
	/* The kernel may have made us readable for others of that user. */
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

/* To files we are @uid and @gid, with the capabilities @caps of those that are left. */
static int become(uid_t uid, gid_t gid, uint32_t caps)
{
	int r = are_ids(uid, gid) ? 0 : set_ids(uid, gid);

	return r < 0 ? r : set_caps(FILES | IDS, caps);
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

int fsuid_take(struct fsuid *g, pid_t pid, bool privileged)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/status", (int)pid), *line = NULL;
	AUTO_FREE char *groups = NULL;
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	unsigned uid = UINT_MAX, gid = UINT_MAX;
	unsigned long long caps = 0;
	size_t room = 0;
	int r;

	while (f && getline(&line, &room, f) >= 0) {
		sscanf(line, "Uid: %*u %*u %*u %u", &uid);
		sscanf(line, "Gid: %*u %*u %*u %u", &gid);
		sscanf(line, "CapEff: %llx", &caps);
		if (!groups && strncmp(line, "Groups:", 7) == 0)
			groups = xstrdup(line + 7);
	}
	if (uid == UINT_MAX || gid == UINT_MAX || !groups)
		return -ESRCH;
	*g = (struct fsuid){ uid, gid, privileged ? (uint32_t)caps & FILES : 0 };
	/* An ordinary user's groups are his everywhere, and not to be set. */
	r = geteuid() == 0 ? set_groups(groups) : 0;
	return r < 0 ? r : fsuid_on(g);
}

int fsuid_on(const struct fsuid *g)
{
	return become(g->uid, g->gid, g->caps);
}

int fsuid_off(void)
{
	return become(geteuid(), getegid(), FILES);
}

bool fsuid_owns_all(const struct fsuid *g)
{
	return g->caps & BIT(CAP_FOWNER);
}
