/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_LANDLOCK_H
#define STET_SYS_LANDLOCK_H

/*
 * From here on this process and its children reach no abstract Unix socket and signal no
 * process outside of themselves, whatever namespaces they share. Needs no_new_privs.
 * Kernels before 6.12 do not know how: -EOPNOTSUPP.
 */
int landlock_scope(void);

#endif
