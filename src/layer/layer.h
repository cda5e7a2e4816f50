/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_LAYER_H
#define STET_LAYER_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One overlaid tree. Paths are absolute and clean. */
struct change_layer {
	const char *host;  /* the tree as the host has it: "/home/u" */
	const char *upper; /* the upper directory that lies over it */
	const char *base;  /* a directory to be read instead of @host; NULL: none */
	/*
	 * Ids that the sandbox could not keep (one-uid map): an object whose owner in
	 * the upper is @uid, or whose group is @gid, while the host's has another is not
	 * CHANGE_OWNER. The owner's mode bits of a directory that belongs to somebody else
	 * on the host are not compared either: the sandbox shows what the user may do there.
	 */
	bool lax_owner;
	uid_t uid;
	gid_t gid;
	/*
	 * What was put into the upper before the command ran has an older ctime than this
	 * (nanoseconds): as long as it has, it is nobody's doing, whatever the host did since.
	 * 0: there was nothing.
	 */
	int64_t copied_ns;
	/* Report objects of the upper that do not differ, too (what == 0). */
	bool every;
	/*
	 * Of a file whose content differs nobody wants to know what else does: CHANGE_XATTR is
	 * left out then, and the host's attributes are not read.
	 */
	bool brief;
	/*
	 * A large file whose mtime differs counts as changed in its content without being
	 * read: for whoever must not wait for that and may list one too many.
	 */
	bool rough;
	/* Stores of our own: nothing at or below these paths is a change. NULL-ended or NULL. */
	const char *const *never;
	/*
	 * Its upper is not there: the filesystem that holds it is not mounted any more; or may
	 * not be there at any moment. If it is known that nothing was changed in it, a walk goes
	 * past it.
	 */
	bool away, untouched;
	bool unmounted; /* what the host has there is not what it is a layer of */
	/* Paths inside (absolute) that were hidden from the sandbox; NULL-ended or NULL. */
	const char *const *hidden;
	/* Paths that it saw, but could not change; the same form. */
	const char *const *closed;
};

#endif
