/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_ACL_H
#define STET_SYS_ACL_H

#include <sys/types.h>

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/*
 * An ACL as getxattr(2) gave it, of @len bytes, becomes one that setxattr(2) takes: entries of
 * ids that are not mapped in our user namespace go. Returns its new length; or -1 with errno
 * EXDEV if somebody could do more than before without his entry, or it is no ACL.
 */
ssize_t acl_without_strangers(void *acl, size_t len);

#endif
