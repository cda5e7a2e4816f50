/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_UNMOUNT_H
#define STET_RUNNER_UNMOUNT_H

/*
 * With the last mount of an overlay the kernel forgets every name and inode that was looked up
 * through it, one by one: a fifth of the time that it took to look at them. Nobody needs to wait
 * for that: a process of its own has the last descriptor of the mount and closes it.
 */

/*
 * Takes over @mount, a descriptor of the mount of the layer in directory @dir, of which no
 * process and no namespace has another. It is gone when we return, or later, or if no process
 * can be made for it when we return at the latest. Until then unmount_await() waits.
 */
void unmount_later(int mount, const char *dir);

/* Returns when no former mount of the layer in @dir is left: two at once are not to be. */
void unmount_await(const char *dir);

#endif
