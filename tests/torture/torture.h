/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TESTS_TORTURE_H
#define STET_TESTS_TORTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "commit/verify.h"
#include "txn/find.h"

/*
 * Crash tests of begin, commit, rollback, undo, redo, recover, prune and of checkpoints, with
 * no sandbox: the host tree and the upper are made by hand, as overlayfs would leave them, and
 * every action runs in a child process that a fault point fails or kills.
 */

enum { HOSTS = 2 };

/* Where one run happens; rebuilt for each. */
struct site {
	char base[200]; /* holds everything below */
	char host[HOSTS][220];
	char state[220];
	char other[220]; /* on another filesystem; "" if there is none */
	int watch;	 /* the transaction that ACT_LOOK tells about */
};

/* tree.c */
void tree_host(const struct site *s);
/* @small: a few changes only. @wide: so many that the filesystem is synced as a whole. */
enum tree_size { TREE_SMALL, TREE_FULL, TREE_WIDE, TREE_GROUP };
void tree_upper(char *const up[HOSTS], enum tree_size size);
void tree_remove(const char *path);
bool tree_foreign(const struct site *s);    /* objects of another group; false: cannot */
void tree_edit(const struct site *s);	    /* somebody works on the host meanwhile */
void tree_edit_again(const struct site *s); /* after the commit, on what it changed */
void tree_touch(const struct site *s);	    /* the same, but nothing is changed */
/* The command does more to an upper of TREE_FULL. @round: 1, 2, … */
void tree_more(const char *up, int round);
/* And where ACT_COMMIT_PART has committed something of it. */
void tree_newer(const char *up);

/*
 * digest.c: one line per object with all that can be seen of it, inode numbers left out, and
 * what the kernel notes for itself in an upper.
 */
void digest_tree(const char *path, struct buf *out);
/* The lines in which they differ, at most @max of them. */
void digest_diff(const char *a, const char *b, int max, struct buf *out);

/* act.c */
enum action {
	ACT_NONE, /* ends a list */
	ACT_BEGIN,
	ACT_BEGIN_FOREIGN,
	ACT_BEGIN_CROSS, /* the layers are on another filesystem */
	ACT_FILL,	 /* makes the upper */
	ACT_FILL_SMALL,	 /* a few changes */
	ACT_FILL_WIDE,	 /* many */
	ACT_FILL_GROUP,	 /* what has another group on the host */
	ACT_EDIT,	 /* on the host */
	ACT_EDIT_AGAIN,	 /* after a commit */
	ACT_TOUCH,	 /* after a commit, of which it is noted what it left */
	ACT_END,
	ACT_TO_DISK, /* its layers are written to the disk */
	ACT_COMMIT,
	ACT_COMMIT_PART,
	ACT_COMMIT_MERGE,
	ACT_COMMIT_OURS, /* whatever the host has there */
	ACT_COMMIT_MERGE_PART,
	ACT_ROLLBACK,
	ACT_UNDO,
	ACT_UNDO_PART,
	ACT_UNDO_OURS,
	ACT_UNDO_THEIRS, /* what was edited on the host stays */
	ACT_REDO,
	ACT_REDO_OURS,
	ACT_RECOVER,
	ACT_PRUNE,
	ACT_ANOTHER, /* transaction, rolled back */
	ACT_DISCARD, /* it changed nothing */
	ACT_RESUME,  /* the command goes on */
	ACT_MORE,    /* and does more */
	ACT_MORE2,
	ACT_NEWER, /* where a part was committed */
	ACT_CHECKPOINT,
	ACT_CHECKPOINT_THIN, /* and there are too many of them */
	ACT_GO,		     /* back to the first */
	ACT_GO2,	     /* to the second */
	ACT_RESTORE,	     /* some paths of the first */
	ACT_FORK,	     /* a transaction that begins with the first */
	ACT_LOOK,
};

/* What a child has found out. */
struct result {
	bool ran;    /* to its end */
	int crashed; /* its status, if it ended as no program should */
	int rc;
	struct err e;
	int state; /* ACT_LOOK: of the transaction, -1: there is none */
	unsigned recovered;
	unsigned long steps; /* of a commit */
	/* ACT_LOOK */
	unsigned orphans;
	unsigned points;     /* checkpoints, each of them whole */
	char up[HOSTS][300]; /* the uppers; "" if there are none */
	char complaint[800]; /* of txn_check() and txn_verify() */
};

struct scenario {
	const char *name;
	enum action setup[12];
	enum action act;
	int before, after; /* state of the transaction; -1: there is none */
	enum action back;  /* takes it back again */
	const char *sweeps;
	const char *lacks; /* a fault that is there all the time */
	bool layers;	   /* the uppers are part of what is compared */
	int watch;	   /* the transaction, if it is not the first */
	/* Checkpoints there are afterwards (0: not looked at); more that may be there. */
	unsigned points, spare;
};
extern const struct scenario scenarios[];
extern const size_t nscenarios;

/*
 * Does it in a child with STET_FAULT=@fault (NULL: none) and STET_FAULT_SKIP=@skip. Returns
 * how many fault points it passed; *killed says whether it died of one.
 */
unsigned long act(const struct site *s, enum action a, const char *fault,
		  const char *skip, struct result *r, bool *killed);
/* The last point the last child passed; "" if none. */
const char *act_last_point(void);
/* The n-th point it passed, from 1. */
const char *act_point(unsigned long n);
/* Every point's name that any child has passed, a line each. */
void act_points(struct buf *out);

/* checks.c: what concerns checkpoints, for the child. */
struct home;
struct txn;
int check_act(struct home *h, const struct site *s, struct txn *t, enum action a,
	      struct err *e);
void check_look(struct home *h, struct txn *t, struct result *r);
/* For a new transaction of this site. */
struct view;
int act_view(struct home *h, const struct site *s, enum action a, struct view *v,
	     struct err *e);

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
