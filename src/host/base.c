/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "diff/walk.h"
#include "host/base.h"
#include "host/early.h"
#include "host/known.h"
#include "plan/apply.h"
#include "plan/content.h"
#include "plan/stage.h"
#include "txn/find.h"
#include "txn/marks.h"
#include "txn/parts.h"

/*
 * The base: what the host had at the paths that the command changed, noted when it ended, or
 * while it ran (base_running.c). With it a later commit can tell a file that was merely
 * touched from one that was changed, and merge text. Off the critical path; without it (the
 * machine went down) a commit judges by time alone and is stricter.
 */
enum {
	TEXT_MAX = 256 * 1024,
	TEXT_TOTAL = 32 * 1024 * 1024,
	DIGEST_MAX = 4 * 1024 * 1024,
	DIGEST_OURS = 64 * 1024 * 1024, /* nobody is waiting to go on with his work */
	SOON_MAX = 8 * 1024 * 1024,	/* to be read while somebody waits */
};

void base_notes_free(struct base_notes *b)
{
	buf_free(&b->text);
	known_close(b->known);
	apply_close(b->a);
}

/* Notes only that the object exists, and its identity. */
static int note_late(struct base_notes *b, struct plan_rec *r, struct err *e)
{
	if (!b->whole)
		return 0;
	r->flags |= PLAN_LATE;
	return plan_add(b->w, r, e) < 0 ? -1 : 1;
}

int base_note(struct base_notes *b, uint32_t layer, const char *rel,
	      const struct ident *host, struct err *e)
{
	struct plan_rec r = {
		.kind = PLAN_BASE, .layer = layer, .rel = rel, .before = *host
	};
	const uint64_t max = b->ours ? DIGEST_OURS : DIGEST_MAX;
	struct ident still, up;
	uint64_t digest;

	if (!host->mode)
		return 0;
	/* Changed while the command ran, or come with another directory: not what it saw. */
	if (host->ctime >= b->begin ||
	    (!b->ours && known_place(b->known, b->a, layer, rel) != PLACE_SAME))
		return note_late(b, &r, e);
	buf_reset(&b->text);
	b->read += host->size <= max ? host->size : 0;
	if (host->size <= max &&
	    apply_digest(b->a, layer, rel, &digest, &b->text,
			 !b->ours && b->kept < TEXT_TOTAL ? TEXT_MAX : 0)) {
		/* Changed while it was read: the digest is of something in between. */
		if (apply_look(b->a, layer, rel, &still, &up, e) < 0)
			return -1;
		if (!ident_same(host, &still) || still.ctime != host->ctime)
			return note_late(b, &r, e);
		r.xbefore = (const char *)&digest;
		r.nxbefore = sizeof(digest);
		r.xafter = buf_str(&b->text);
		r.nxafter = (uint32_t)b->text.len;
		b->kept += b->text.len;
	}
	/*
	 * The contents of the directory may be noted next, though somebody has added to it by
	 * then.
	 */
	if (S_ISDIR(host->mode))
		known_tell(b->known, layer, rel, host);
	return plan_add(b->w, &r, e) < 0 ? -1 : 1;
}

struct base {
	bool *touched; /* by layer */
	struct base_notes notes;
	struct base_wish w;
	size_t noted;
	struct early *early;  /* a base that may become too much for who waits */
	struct known *listed; /* what was there before; NULL: nobody has listed it */
};

/*
 * The command has something there, and the host has not. That is so for all that is new; but what
 * was there when the command was reported to have ended has been taken away before we came. Where
 * that was not listed, it may have been, if a name in the directory has changed since then.
 */
static int note_absent(struct base *b, const struct change *c, struct err *e)
{
	struct plan_rec r = { .kind = PLAN_BASE,
			      .flags = PLAN_DOUBT,
			      .layer = (uint32_t)c->layer,
			      .rel = c->rel };
	const char *slash = strrchr(c->rel, '/');
	AUTO_FREE char *dir = slash ? xstrndup(c->rel, (size_t)(slash - c->rel))
				    : xstrdup(".");
	struct ident host, up;

	if (!b->w.since || c->implied || !c->after.st_mode)
		return 0;
	ident_from(&c->after, &r.before);
	if (b->listed)
		return known_has(b->listed, r.layer, r.rel) ? plan_add(b->notes.w, &r, e)
							    : 0;
	if (apply_look(b->notes.a, r.layer, dir, &host, &up, e) < 0)
		return -1;
	if (!host.mode || host.ctime < b->w.since)
		return 0;
	return plan_add(b->notes.w, &r, e);
}

static int note(void *arg, const struct change *c, struct err *e)
{
	struct base *b = arg;
	struct ident host, up, seen;

	b->touched[c->layer] = true;
	if (!b->notes.w)
		return 0;
	if (b->early) {
		early_note(b->early, c);
		if (++b->noted > b->w.max || b->notes.read > SOON_MAX)
			return early_is_late(b->early);
	}
	if (!c->before.st_mode)
		return note_absent(b, c, e);
	if (apply_look(b->notes.a, (uint32_t)c->layer, c->rel, &host, &up, e) < 0)
		return -1;
	/* Noted while the command ran, and no other since. */
	if (known_ident(b->notes.known, (uint32_t)c->layer, c->rel, &seen) &&
	    ident_same(&seen, &host) && seen.ctime == host.ctime)
		return 0;
	return base_note(&b->notes, (uint32_t)c->layer, c->rel, &host, e) < 0 ? -1 : 0;
}

static int copy_note(void *arg, const struct plan_rec *r, struct err *e)
{
	struct plan_rec copy = *r;

	return plan_add(arg, &copy, e);
}

/* Notes from before an explore are taken over; a damaged file of notes is begun anew. */
static int take_over(struct base_notes *b, int dir, struct err *e)
{
	struct plan *p;
	struct err ignored;
	int r;

	if (faccessat(dir, BASE, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
	    plan_open(dir, BASE, &p, &ignored) < 0)
		return 0;
	known_read(b->known, dir, BASE);
	r = plan_each(p, false, copy_note, b->w, e);
	plan_close(p);
	return r;
}

int txn_note_base(struct txn *t, const struct base_wish *w, struct err *e)
{
	AUTO_CLOSE int dir = open(t->rec.dir,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE struct change_layer *layers = NULL;
	AUTO_FREE bool *touched = NULL;
	struct base b = { .notes = { .begin = t->rec.begin_ns, .whole = true }, .w = *w };
	size_t n;
	int r;

	if (dir < 0)
		return err_sys(e, errno, "cannot open %s", t->rec.dir);
	unlinkat(dir, "base.new", 0);
	b.notes.known = known_new(&t->rec);
	known_read(b.notes.known, dir, SEEN);
	layers = txn_layers(&t->rec, &n);
	b.touched = touched = xcalloc(n, sizeof(*touched));
	/* Noting one object too many does no harm. */
	for (size_t i = 0; i < n; i++)
		layers[i].rough = true;
	for (size_t i = 0; i < n; i++)
		layers[i].every = true;
	if (b.w.max)
		b.early = early_begin(&t->rec);
	if (b.w.since && (b.listed = known_new(&t->rec)) &&
	    !known_read(b.listed, dir, EARLY)) {
		known_close(b.listed);
		b.listed = NULL;
	}
	r = apply_open(layers, n, &b.notes.a, e);
	if (r == 0)
		r = plan_create(dir, "base.new", &b.notes.w, e);
	if (r == 0 && take_over(&b.notes, dir, e) < 0) {
		plan_abandon(b.notes.w);
		b.notes.w = NULL;
		r = -1;
	}
	if (r == 0) {
		r = change_walk(layers, n, note, &b, e);
		if (b.early)
			early_end(b.early, r == 0);
		b.early = NULL;
		if (r == 0 && b.w.max && (b.noted > b.w.max || b.notes.read > SOON_MAX))
			r = 1;
		if (r == 0)
			untouched_keep(&t->rec, touched, n);
		if (b.notes.w && r == 0)
			r = plan_finish_lazily(b.notes.w, e);
		else if (b.notes.w)
			plan_abandon(b.notes.w);
	}
	if (r == 0 && b.notes.w &&
	    (FAULT_AT("base.rename") || renameat(dir, "base.new", dir, "base") < 0))
		r = err_sys(e, errno, "cannot keep the base");
	if (b.early)
		early_end(b.early, false);
	if (r == 0)
		unlinkat(dir, EARLY, 0);
	known_close(b.listed);
	base_notes_free(&b.notes);
	return r;
}
