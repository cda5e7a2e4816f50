/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_VIEW_H
#define STET_SNAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "journal/journal.h"

/*
 * The view: what the sandbox sees, as data. An ordered list of steps, each one mount (or one
 * small set of them), made here from the mount table and the user's wishes, carried out by
 * runner/build.c, printed by --debug. Nothing is mounted in this room.
 */
enum step_kind {
	STEP_BIND,    /* host `source` at `target`, recursive unless `single` */
	STEP_OVERLAY, /* layer over host `source` at `target` */
	STEP_SHOW, /* host `source` at `target`, read-only, through an overlay of no layer */
	STEP_SCRATCH, /* layer's upper itself at `target`: private /tmp */
	STEP_TMPFS,   /* empty tmpfs; `mode` */
	STEP_PROC,    /* new procfs, dangerous parts read-only or masked */
	STEP_DEV,     /* new /dev */
	STEP_RUN,     /* private /run with the few things tools need from it */
	STEP_SOCKET,  /* the host's socket at `target`, for who may connect to it */
	STEP_PIN,     /* the directory at `target` over itself: a rename gives EBUSY */
	STEP_MASK,    /* nothing to be seen here: empty, unreadable */
};
const char *step_kind_name(enum step_kind k);

struct step {
	enum step_kind kind;
	char *target;	/* absolute path inside */
	char *source;	/* absolute host path, or NULL */
	uint64_t attrs; /* MOUNT_ATTR_* */
	size_t layer;	/* index into view.layers (OVERLAY, SCRATCH) */
	unsigned mode;	/* TMPFS, SCRATCH; MASK: of a directory */
	bool single;	/* BIND: not recursive */
	bool skeleton; /* OVERLAY, SHOW: a copy of the directory's own level instead (there
			 * are mounts below that the kernel will not let us leave out) */
	bool spare; /* SHOW, BIND, SOCKET: gone by now, it is left out; what the kernel cannot
			* overlay is masked */
	const char *why; /* static text for --debug */
};

struct view_layer {
	enum layer_kind kind;
	char *host;  /* where it is seen */
	char *store; /* store directory on the same filesystem (snap/store.h) */
	char *dir;   /* filled in by txn_begin: <store>/<txn>/lN */
	bool lax_owner;
};

struct view {
	bool root; /* made for uid 0: overlays built in the initial user namespace */
	char *workspace, *home, *cwd;
	char *stage; /* empty directory to build in, filled in by txn_begin */
	struct step *steps;
	size_t nsteps;
	struct view_layer *layers;
	size_t nlayers;
	char **hidden; /* absolute host paths that must not be seen; stores first */
	size_t nhidden, nstores;
	char **closed; /* what of the layers' trees is read-only, by a mount on top */
	size_t nclosed;
	char **through; /* written-through paths */
	size_t nthrough;
	char **sockets; /* the host's that can be connected to */
	size_t nsockets;
	bool in_place;	  /* see view_request */
	bool host_mounts; /* mounts of the host lie below written-through paths */
	bool offline;	  /* without the host's network */
};

struct view_request {
	const char *workspace; /* absolute, resolved directory */
	const char *cwd;       /* absolute, resolved */
	const char *home;      /* $HOME or NULL */
	const char *state_dir; /* hidden, and the store for its own filesystem */
	/* The workspace is one of @write_through, and kept by a snapshot, which may lie in it. */
	bool in_place;
	bool host_tmp; /* --tmp host: overlay /tmp instead of a private one */
	char *const *read_only, *const *write_through,
					*const *hide,
						*const *sockets; /* NULL-ended or NULL */
	/* Layers that exist already (explore): reuse these instead of new ones. */
	const struct txn_record *resume;
};

/*
 * Fails with ERR_USAGE for a workspace that cannot be one (`/`, the store, special
 * filesystems, a directory that is private inside, not readable), ERR_UNSUPPORTED where no
 * upper can be made, and never leaves out a protection silently.
 */
int view_make(const struct view_request *rq, struct view *v, struct err *e);

/*
 * Makes the view from the mount table @mi, which stays the caller's, for root or for an
 * ordinary user. Which directories there are, and which of them this process can read and write, is
 * still asked of the kernel. Fails as view_make() does.
 */
struct mountinfo;
int view_make_from(const struct mountinfo *mi, bool root, const struct view_request *rq,
		   struct view *v, struct err *e);
void view_free(struct view *v);

/* Adds the host's socket at @path (absolute, resolved) to what can be connected to. ERR_USAGE if
 * it lies in what is hidden. @spare: if it is not there it is left out. */
int view_allow_socket(struct view *v, const char *path, bool spare, struct err *e);

/*
 * A copy of the whole, strings and all, in the @size bytes at @mem: what a process that shares
 * this memory can read. NULL if there is not room enough. Not to be freed.
 */
const struct view *view_copy(const struct view *v, void *mem, size_t size);

/*
 * Does a mount of the view keep something in a tree that is the host's own (written through, worked
 * on in place): read-only, out of sight, or a mount of the host at its place? In such a tree a
 * process with a mount namespace of its own, without that mount, could move or remove the name
 * beneath it.
 */
bool view_pins_host(const struct view *v);

/* Is @path hidden, or below a path that is? */
bool view_hides(const struct view *v, const char *path);

/*
 * The step whose mount shows @path: of those with the deepest target above it the last one. Steps
 * for single sockets do not count. NULL: none.
 */
const struct step *view_seen_through(const struct view *v, const char *path);

/* Appends a line about the step, for --debug. */
struct buf;
void step_describe(const struct step *s, struct buf *out);

#endif
