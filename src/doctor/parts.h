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

/* The parts of the report. */
void doctor_kernel(struct doctor_report *r);

#endif
