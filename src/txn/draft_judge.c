/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/draft_parts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "change/merge.h"
#include "change/risk.h"
#include "sys/mountinfo.h"

bool draft_is_ours(const struct draft *d, const char *path)
{
	return chosen_side(d->w->ours, d->w->theirs, path) == CHOSEN_OURS;
}

int draft_check_sides(const struct draft *d, const char *path, struct err *e)
{
	if (!d->w->ours || !d->w->theirs ||
	    chosen_side(d->w->ours, d->w->theirs, path) != CHOSEN_BOTH)
		return 0;
	return chosen_twice(path, e);
}

bool draft_is_kept(const struct draft *d, const char *path)
{
	for (char **k = d->kept; k && *k; k++)
		if (path_within(path, *k))
			return true;
	return false;
}

void draft_conflict(struct draft *d, const struct change *c, const char *what)
{
	if (d->looking) {
		if (chosen_side(d->w->ours, d->w->theirs, c->path) != CHOSEN_THEIRS)
			return;
		d->kept = xrealloc(d->kept, (d->nkept + 2) * sizeof(*d->kept));
		d->kept[d->nkept++] = xstrdup(c->path);
		d->kept[d->nkept] = NULL;
		return;
	}
	path_notes_add(&d->res->conflicts, c->path, what);
}

static const char *our_side(const struct change *c)
{
	return c->kind == CHANGE_DELETE ? "deleted"
	       : c->kind == CHANGE_ADD	? "made"
					: "changed";
}

bool draft_host_changed(struct draft *d, const struct change *c, const struct ident *host)
{
	return known_changed(d->known, d->a, (uint32_t)c->layer, c->rel, host);
}

bool draft_only_theirs(struct draft *d, const struct change *c, const struct plan_rec *r)
{
	struct ident base;

	return r->before.ctime >= d->t->rec.begin_ns &&
	       known_ident(d->known, r->layer, c->rel, &base) &&
	       r->after.mtime == base.mtime;
}

/* Both sides changed a text: can both changes stand? Then d->merged holds both. It has our
 * attributes: what the host has given it meanwhile must not be lost. */
static bool merge_step(struct draft *d, const struct change *c, const struct ident *host)
{
	AUTO_BUF struct buf base = BUF_INIT, ours = BUF_INIT, theirs = BUF_INIT;
	uint32_t layer = (uint32_t)c->layer;
	struct err e;

	buf_reset(&d->merged);
	return c->kind == CHANGE_MODIFY && c->what & CHANGE_CONTENT &&
	       S_ISREG(c->after.st_mode) &&
	       known_attributes(d->known, layer, c->rel, host, &c->after) &&
	       known_content(d->known, layer, c->rel, &base) &&
	       apply_text(d->a, layer, c->rel, false, &ours) &&
	       apply_text(d->a, layer, c->rel, true, &theirs) &&
	       merge_text(&base, &ours, &theirs, &d->merged, &e) == 1;
}

void draft_check_conflict(struct draft *d, const struct change *c,
			  const struct ident *host)
{
	char what[96];

	if (draft_is_ours(d, c->path))
		return;
	if (host->mode && draft_host_changed(d, c, host)) {
		/* What the host is to win is not merged: it has to be found first. */
		if (d->w->merge && !d->looking && merge_step(d, c, host)) {
			d->res->merged++;
			return;
		}
		snprintf(what, sizeof(what), "%s in t%lld, changed on the host",
			 our_side(c), (long long)d->t->rec.id);
		draft_conflict(d, c, what);
	}
	/* It was there when the command ended; or it is a directory that the command merged
	 * with the host's, which has none any more. */
	if (c->kind == CHANGE_ADD && ((!host->mode && draft_host_changed(d, c, host)) ||
				      (S_ISDIR(c->after.st_mode) && !c->was_hidden &&
				       apply_is_copy(d->a, (uint32_t)c->layer, c->rel))))
		draft_conflict(d, c, "changed by the command, deleted on the host");
}

void draft_check_risk(struct draft *d, const struct change *c)
{
	AUTO_BUF struct buf target = BUF_INIT;
	const char *why, *rule = NULL;
	bool deny = false;

	if (S_ISLNK(c->after.st_mode)) {
		AUTO_FREE char *up = xasprintf("%s/%s", d->layers[c->layer].upper,
					       c->rel);
		char link[4096];
		ssize_t n = readlink(up, link, sizeof(link) - 1);

		if (n > 0)
			buf_add(&target, link, (size_t)n);
	}
	why = risk_of(c, target.len ? buf_str(&target) : NULL, d->t->rec.workspace);
	if (d->w->judge)
		rule = d->w->judge(d->w->judge_arg, c,
				   target.len ? buf_str(&target) : NULL, &deny);
	if (rule && deny)
		path_notes_add(&d->res->denied, c->path, rule);
	else if (why || rule)
		path_notes_add(&d->res->risks, c->path, why ? why : rule);
}
