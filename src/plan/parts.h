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
	char why[192]; /* of the last conflict */
	bool lost_dir; /* the last step's directory is not there */
	bool decided;  /* see apply_decided() */
	bool takes_back;
	int64_t since;	    /* see apply_since() */
	int64_t since_undo; /* see apply_since_undo() */
	int64_t moved;	    /* see apply_moved_until() */
	apply_excuse *excuse;
	void *excuse_arg;
	int64_t began; /* see apply_began() */
	/* The directory of the last step: the next one is mostly in the same. */
	struct buf dir;
	uint32_t layer;
	int host, up;
	struct dircache to_host, to_up; /* the way to them */
	int elsewhere; /* is it on another filesystem than the upper? -1: not known yet */
	bool by_hand; /* an exchange without the kernel's help may have been interrupted */
	bool synced;  /* for apply_sync_dirs(): it is durable */
	bool touched; /* see apply_touched() */
	struct beside *beside;
	size_t nbeside;
	/* The filesystems of the directories of all steps met: these are to be synced. */
	struct disk *disks;
	size_t ndisks;
	bool every_disk; /* there is one that cannot be named: all are synced */
	/* Versions of objects with several names that steps have to do with. */
	struct ident *shared;
	size_t nshared;
	bool shared_sorted;
};

struct disk {
	uint64_t dev;
	int fd;
};

/* A directory of ours on the host's own filesystem, where the store cannot be. */
struct beside {
	uint32_t layer;
	uint64_t dev;
	int fd;
};

/*
 * Where one step happens. @host or @up may be negative if that directory does not exist. What
 * is staged, and then what it replaced, lies at staged/sname: in the upper; if that is on
 * another filesystem, as a copy beside the host's tree; in `old`, if plan_is_apart() or PLAN_ASIDE.
 */
struct place {
	int host, up, staged, old;
	int store; /* `old` beside the upper, even if @old is elsewhere */
	const char *name, *sname;
	char slot[24]; /* its name in old */
	char copy[24]; /* and there, if what is staged is not in the upper */
};

/* Finds the place of a step; ERR_CONFLICT if its directory on the host is gone. */
int apply_at(struct apply *a, const struct plan_rec *r, struct place *p, struct err *e);

/* And who lies there on the host (mode 0: nothing), which every step looks at first. */
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
 * The same if the host has what is expected there, by identity and by a lease: nobody writes to
 * it meanwhile. ERR_CONFLICT otherwise, and his is there again. @ours: what is staged.
 */
int apply_exchange(struct apply *a, const struct plan_rec *r, const struct place *p,
		   const struct ident *expected, const struct ident *ours, struct err *e);

/* In `old`, where such an exchange has ever been begun. */
#define BY_HAND_MARK "by-hand"

/* Puts what lies in `old` under the number of a step out of its way. -errno. */
int apply_put_aside(const struct place *p);

/* Errors that name the path. */
int apply_failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e);
int apply_conflict(struct apply *a, const struct plan_rec *r, const char *what,
		   struct err *e);

#endif
