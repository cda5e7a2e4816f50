/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_PARTS_H
#define STET_DOCTOR_PARTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "doctor/doctor.h"

/* Between the files of the doctor only. */

/* Adds a check; all texts are copied, NULL counts as "". */
void doctor_add(struct doctor_report *r, const char *id, const char *title,
		enum doctor_status s, const char *found, const char *lost,
		const char *repair);

/* One number in a file of /proc/sys; @absent if it cannot be read. */
long doctor_sysctl(const char *path, long absent);

/* What bears on whether user namespaces can be made; -1 where a switch does not exist. */
struct userns_facts {
	int err;	       /* what making one said: 0 or -errno */
	long max;	       /* user.max_user_namespaces */
	long debian;	       /* kernel.unprivileged_userns_clone */
	long apparmor;	       /* kernel.apparmor_restrict_unprivileged_userns */
	bool filtered;	       /* a seccomp filter is already on this process */
	const char *container; /* kind of container, or NULL */
	const char *exe;       /* path of this program */
};

void doctor_userns_facts(struct userns_facts *f, struct buf *container, struct buf *exe);

/* Pure: what stands in the way and what to type. Only for f->err != 0. */
void doctor_userns_explain(const struct userns_facts *f, struct buf *found,
			   struct buf *repair);

/* Pure: an AppArmor profile that lets the program at @exe make user namespaces, and the
 * commands that install it. */
void doctor_apparmor_profile(const char *exe, struct buf *out);

/* The commands that set a sysctl now and for good. */
void doctor_sysctl_repair(const char *name, const char *value, struct buf *out);

/* "docker", "podman", "lxc", …, "a container"; empty if there is none. */
void doctor_container(struct buf *out);

/* The parts of the report. */
void doctor_kernel(struct doctor_report *r);
void doctor_namespaces(struct doctor_report *r);
void doctor_filters(struct doctor_report *r);
int doctor_filesystems(struct doctor_report *r, struct err *e);
void doctor_host(struct doctor_report *r);

#endif
