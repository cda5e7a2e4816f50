/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_FSUID_H
#define STET_SYS_FSUID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Rights on files that this process takes on for a while: those of another process. Its own
 * are, for root, root's; for an ordinary user in a user namespace of his, those of an owner
 * who need not obey his own permission bits, over what belongs to ids that are mapped there.
 * All other capabilities are given up for good.
 */
struct fsuid {
	uid_t uid;
	gid_t gid;
	uint32_t caps; /* the capabilities over files that the other has */
};

/*
 * Learns @pid's ids, and puts them on. Supplementary groups are set for good. @privileged: its
 * capabilities are good for the same files as ours; else it counts as having none. -errno.
 */
int fsuid_take(struct fsuid *g, pid_t pid, bool privileged);

/* On: what the other may do, and no more. Off: our own rights. -errno. */
int fsuid_on(const struct fsuid *g);
int fsuid_off(void);

/* Need the other not be the owner of a file? */
bool fsuid_owns_all(const struct fsuid *g);

#endif
