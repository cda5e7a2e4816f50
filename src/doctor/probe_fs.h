/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_PROBE_FS_H
#define STET_DOCTOR_PROBE_FS_H

#include "doctor/probe.h"

/*
 * Works in a temporary directory made in @dir and removed again (times of @dir are put
 * back). -errno if @dir itself cannot be examined.
 */
int probe_fs(const char *dir, struct probe_fs *fs);

#endif
