/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_PARTS_H
#define STET_PLAN_PARTS_H

#include "plan/apply.h"
#include "plan/dircache.h"

/* Private to the room: what apply.c (the steps) and stage.c (before and after them) share. */

struct roots {
	int host, up, old;
};

struct apply {
	const struct change_layer *layers;
	size_t n;
	struct roots *roots;
	char why[192]; /* what the last conflict was */
	bool lost_dir; /* the last step's directory is not there */
	bool decided;  /* see apply_decided() */
	bool takes_back;
	int64_t since;	    /* see apply_since() */
	int64_t since_undo; /* see apply_since_undo() */
	struct apply_moves moves;
	apply_excuse *excuse;
	void *excuse_arg;
	int64_t began; /* see apply_began() */
	/* The directory of the last step: mostly the next step is in the same one. */
	struct buf dir;
	uint32_t layer;
	int host, up;
	struct dircache to_host, to_up; /* open directories down to them */
	int elsewhere; /* are @host and @up on different filesystems? -1: not known yet */
	bool by_hand; /* an exchange without the kernel's help may have been interrupted */
	bool synced;  /* apply_sync_dirs() has synced @host */
	bool touched; /* see apply_touched() */
	struct beside *beside;
	size_t nbeside;
	/* The filesystems of the directories of all steps: those are synced. */
	struct disk *disks;
	size_t ndisks;
	bool every_disk; /* a filesystem is not in @disks: everything is synced */
	/* Identities of objects with several names that steps have moved. */
	struct ident *shared;
	size_t nshared;
	bool shared_sorted;
};

struct disk {
	uint64_t dev;
	int fd;
};

/* A directory of ours on the host's own filesystem, if the store is on another one. */
struct beside {
	uint32_t layer;
	uint64_t dev;
	int fd;
};

/*
 * The place of one step. @host or @up may be negative if that directory does not exist. The
 * staged object, and later the one that it has replaced, is staged/sname: in the upper; as a
 * copy beside the host's tree if the upper is on another filesystem; in `old` if
 * plan_is_apart() or PLAN_ASIDE.
 */
struct place {
	int host, up, staged, old;
	int store; /* `old` beside the upper, even if @old is elsewhere */
	const char *name, *sname;
	char slot[24]; /* its name in old */
	char copy[24]; /* its name there, if the staged object is not in the upper */
};

/* Finds the place of a step; ERR_CONFLICT if its directory on the host is gone. */
int apply_at(struct apply *a, const struct plan_rec *r, struct place *p, struct err *e);

/*
 * apply_at(), and the identity of the host's object (mode 0: none), which every step looks at
 * first.
 */
int apply_meet(struct apply *a, const struct plan_rec *r, struct place *p,
	       struct ident *now, struct err *e);

/* Has the user decided about this step, for the operation at hand and its direction? */
static inline bool apply_is_forced(const struct apply *a, const struct plan_rec *r)
{
	return r->flags & PLAN_FORCE && a->decided && !a->takes_back;
}

/* Is the directory of the last apply_at() that of @r, too? */
bool apply_is_here(const struct apply *a, const struct plan_rec *r);

/*
 * Exchanges the staged object and the host's if the host's is the expected one, by identity
 * and by a lease: no process writes to it meanwhile. ERR_CONFLICT otherwise, and the host has
 * its own again. @ours: the staged object.
 */
int apply_exchange(struct apply *a, const struct plan_rec *r, const struct place *p,
		   const struct ident *expected, const struct ident *ours, struct err *e);

/* Exists in `old` if an exchange by hand was ever begun there. */
#define BY_HAND_MARK "by-hand"

/* Renames what lies in `old` under the number of a step. -errno. */
int apply_put_aside(const struct place *p);
/* Fills in *id from what apply_put_aside() has renamed; mode 0: nothing. -errno. */
int apply_find_aside(const struct place *p, struct ident *id);
/*
 * If the renamed object is the one that the step took away, and the host does not have it,
 * renames it to @name in @dir, unless that name exists. Needed for stores that an older version
 * has damaged: it put objects aside that a later undo needs. -errno.
 */
int apply_take_aside(const struct plan_rec *r, const struct place *p, int dir,
		     const char *name);

/* Set errors that name the path; return -1. */
int apply_failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e);
int apply_conflict(struct apply *a, const struct plan_rec *r, const char *what,
		   struct err *e);

#endif
