/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_UNMOUNT_H
#define STET_RUNNER_UNMOUNT_H

/*
 * With the last mount of an overlay the kernel drops every name and inode that was looked up
 * through it, one by one, which takes a fifth of the time of the lookups. No caller needs to
 * wait for that: a process of its own has the last descriptor of the mount and closes it.
 */

/*
 * Takes over @mount, the only descriptor of the mount of the layer in directory @dir. The
 * mount is gone when we return, or later; if no process can be made for it, when we return at
 * the latest. Until then unmount_await() waits.
 */
void unmount_later(int mount, const char *dir);

/*
 * Returns when no former mount of the layer in @dir is left: a layer must not be mounted
 * twice.
 */
void unmount_await(const char *dir);

#endif
