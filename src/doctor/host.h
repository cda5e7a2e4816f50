/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_HOST_H
#define STET_DOCTOR_HOST_H

#include "doctor/parts.h"

/* Private to the room. */

/* "docker", "podman", "lxc", …, "a container"; empty if there is none. */
void doctor_container(struct buf *out);

void doctor_host(struct doctor_report *r);

#endif
