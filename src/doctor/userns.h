/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_USERNS_H
#define STET_DOCTOR_USERNS_H

#include "doctor/parts.h"

/* Private to the room. */

void doctor_userns_facts(struct userns_facts *f, struct buf *container, struct buf *exe);

/* Pure: what stands in the way and what to type. Only for f->err != 0. */
void doctor_userns_explain(const struct userns_facts *f, struct buf *found,
			   struct buf *repair);

/* Pure: an AppArmor profile that lets the program at @exe make user namespaces, and the
 * commands that install it. */
void doctor_apparmor_profile(const char *exe, struct buf *out);

/* The commands that set a sysctl now and for good. */
void doctor_sysctl_repair(const char *name, const char *value, struct buf *out);

void doctor_namespaces(struct doctor_report *r);

#endif
