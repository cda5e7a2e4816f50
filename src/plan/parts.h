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

/* Notes the filesystem of @dir, a directory of a step (or negative: none). */
void apply_note_disk(struct apply *a, int dir);

/* Is the directory of the last apply_at() that of @r, too? */
bool apply_is_here(const struct apply *a, const struct plan_rec *r);

/* The directory beside the host's directory of the last apply_at(); made if @make. -errno. */
int apply_beside(struct apply *a, const struct plan_rec *r, bool make);

/*
 * Exchanges the staged object and the host's. On a filesystem that cannot, the host's gets
 * a second name first and is replaced then: nobody misses it. -EBUSY if somebody else has
 * put something there in between; then nothing is changed.
 */
int apply_swap(struct apply *a, const struct place *p);

/*
 * The same if the host has what is expected there, by identity and by a lease: nobody writes to
 * it meanwhile. ERR_CONFLICT otherwise, and his is there again. @ours: what is staged.
 */
int apply_exchange(struct apply *a, const struct plan_rec *r, const struct place *p,
		   const struct ident *expected, const struct ident *ours, struct err *e);

/*
 * A PLAN_DELETE that has something to bring instead: what the user had made at the place when the
 * deletion was taken back all the same lies in `old`, under the number of the step, while
 * what was deleted is on the host, and the other way round. @now: what the host has.
 */
int apply_trade(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e);

/* In `old`, where such an exchange has ever been begun. */
#define BY_HAND_MARK "by-hand"

/* Finishes or forgets one that was interrupted: each object is in one of its places. -errno. */
int apply_resume(struct apply *a, const struct place *p);

/* Puts what lies in `old` under the number of a step out of its way. -errno. */
int apply_put_aside(const struct place *p);

/* A directory that a step takes away as a whole: is all that it holds what a commit (or, @forward,
 * the undo of that) has put there? */
int apply_whole(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e);

/* Is it one that apply_note_shared() knows, as it was? Then its ctime may be our doing. */
bool apply_is_shared(struct apply *a, const struct ident *id);

/* Steps of these kinds, in either direction: META, MKDIR, DIR (dirs.c), LINK (links.c). */
int apply_meta(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
/* Are the attributes that a META or DIR sets what they were before or after it? ERR_CONFLICT with
 * @what, if they are others. */
int apply_check_attributes(struct apply *a, const struct plan_rec *r,
			   const struct place *p, const struct ident *now,
			   const char *what, struct err *e);
int apply_mkdir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
int apply_dir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
/* Is the name free for a PLAN_LINK of the host's, or taken by what it made? */
int apply_check_link(struct apply *a, const struct plan_rec *r, const struct place *p,
		     bool forward, struct err *e);
int apply_link(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
/* PLAN_LINKED (of others: nothing): can the name that is to take the place be made? Makes it; and
 * takes it away when it is back. */
int apply_check_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		     struct err *e);
int apply_make_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);
int apply_drop_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);
/* A PLAN_LEAVE (checks.c). */
int apply_left(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/* Errors that name the path. */
int apply_failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e);
int apply_conflict(struct apply *a, const struct plan_rec *r, const char *what,
		   struct err *e);

#endif
