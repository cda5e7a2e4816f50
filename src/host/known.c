/* SPDX-License-Identifier: Apache-2.0 */
#include "host/known.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "diff/gitindex.h"
#include "host/after_commit.h"
#include "host/inherit.h"
#include "host/keys.h"
#include "host/memo.h"
#include "host/moved.h"
#include "host/put_back.h"
#include "host/table.h"
#include "journal/op_rows.h"
#include "plan/content.h"
#include "plan/stage.h"
#include "txn/find.h"
#include "txn/parts.h"

struct version {
	struct ident id;
	uint64_t digest;
	bool has_digest;
	bool is_base; /* nothing of ours has touched it since: its ctime counts */
	bool ours;    /* attributes set or put back by an operation of this transaction */
	bool made;    /* a directory that a commit needed: its inode is not known */
	bool late;    /* there when the command ended; what it was before is not known */
	bool doubt;   /* no longer there then, perhaps */
	/* A directory whose names alone a commit has changed: who else set these is older. */
	bool mode_as_found, owner_as_found;
	bool hint; /* a digest for a version that is told elsewhere; no version of its own */
	int64_t whole_at; /* a directory that we put there with all that is in it: since then */
	int64_t moved; /* until then at least the operation that tells it has moved it */
};

/* So many questions are answered by reading it all for each: that takes no memory. */
enum { FEW = 8 };

struct known {
	int dir;	/* the transaction's */
	struct home *h; /* NULL: it knows what it is told */
	struct change_layer *layers;
	size_t nlayers;
	struct put_backs others;
	int64_t id, begin;
	struct moved *moved; /* NULL: no operation has moved anything */
	const char *workspace;
	bool loaded;
	unsigned asked, hits;
	uint64_t only; /* while reading: nothing but this key counts; 0: all do */
	/* Behind the first few questions: who is known at all, sorted. Mostly it is not asked. */
	bool listed;
	struct keys keys;
	bool listing; /* while reading: keys alone */
	/* Of the directory asked about last. */
	struct {
		char *dir; /* NULL: none */
		uint32_t layer;
		enum known_place is;
		bool still; /* no name in it has changed since the beginning */
	} place;
	struct memo *memos;	/* NULL: none */
	struct table *versions; /* by layer and path */
	struct version found;	/* what the last question was about */
	bool complete;		/* there is a base: what it does not name was not there */
	/* They could not be kept: no answer is worth anything. */
	bool broken;
	struct err why;
};

static uint64_t key_of(uint32_t layer, const char *rel)
{
	uint64_t k = XXH64(rel, strlen(rel), layer);

	return k ? k : 1;
}

static bool same_attributes(const struct ident *a, const struct ident *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* Attributes that a commit has not set in a directory are those that were known before. */
static bool add_attributes(struct version *v, const struct version *said)
{
	bool mode = v->mode_as_found, owner = v->owner_as_found;

	if ((!mode && !owner) || !S_ISDIR(v->id.mode) || !said->id.mode || said->late ||
	    said->doubt || said->made || !ident_is(&v->id, &said->id))
		return false;
	if (mode)
		v->id.mode = said->id.mode;
	if (owner) {
		v->id.uid = said->id.uid;
		v->id.gid = said->id.gid;
	}
	v->mode_as_found = mode && said->mode_as_found;
	v->owner_as_found = owner && said->owner_as_found;
	return true;
}

/* Does it say what the version holds? Of a directory: which extended attributes it has. */
static bool adds_digest(const struct version *v, const struct version *said)
{
	if (!said->has_digest || v->has_digest || v->late || v->doubt)
		return false;
	if (!S_ISDIR(v->id.mode))
		return ident_same(&v->id, &said->id);
	/* The inode of a directory that we made is not known. */
	return said->made || ident_is(&v->id, &said->id);
}

/*
 * The first one told wins: newest operations come first, the base last. What an older one says of
 * the same version is added to it.
 */
static void tell(struct known *k, uint32_t layer, const char *rel,
		 const struct version *said)
{
	uint64_t key = key_of(layer, rel);
	struct version v;
	int told;

	if (k->listing && !said->hint)
		keys_add(&k->keys, key);
	if (k->listing || k->broken || (k->only && key != k->only))
		return;
	told = table_get(k->versions, key, &v, &k->why);
	if (told == 0 && said->hint)
		return;
	if (told == 0) {
		v = *said;
	} else if (told > 0) {
		bool digest = adds_digest(&v, said);
		bool whole = said->whole_at && !v.whole_at && ident_is(&v.id, &said->id);
		bool attributes = add_attributes(&v, said);

		if (!digest && !whole && !attributes && v.ours >= said->ours)
			return;
		if (digest)
			v.digest = said->digest;
		if (whole)
			v.whole_at = said->whole_at;
		v.has_digest |= digest;
		v.ours |= said->ours;
	}
	if (told < 0 || table_put(k->versions, key, &v, &k->why) < 0)
		k->broken = true;
}

struct reading {
	struct known *k;
	bool undone;
	bool hints;
	bool digests;  /* see known_attrs() */
	int64_t begun; /* the operation; 0: it is none */
	int64_t moved; /* all paths of the list were moved until then; 0: the records say it */
};

static int read_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct reading *rd = arg;
	bool undone = rd->undone || r->flags & PLAN_UNDONE;
	struct version v = { .id = undone ? r->before : r->after,
			     .moved = rd->moved ? rd->moved : moved_noted(r) };
	bool found;

	(void)e;
	/* A decision against the host's version was made for that one time. */
	if (undone && r->flags & (PLAN_FORCE | PLAN_DECIDED | PLAN_MERGED))
		return 0;
	switch (r->kind) {
	case PLAN_BASE:
		v.id = r->before;
		v.moved = 0;
		v.is_base = true;
		v.hint = rd->hints;
		v.late = r->flags & PLAN_LATE;
		v.doubt = r->flags & PLAN_DOUBT;
		v.has_digest = r->nxbefore >= sizeof(v.digest);
		if (v.has_digest)
			memcpy(&v.digest, r->xbefore, sizeof(v.digest));
		break;
	case PLAN_META:
		/* The host's own inode, with other attributes. */
		v.id.ino = r->before.ino;
		v.id.btime = r->before.btime;
		break;
	case PLAN_DELETE:
	case PLAN_REPLACE:
	case PLAN_CREATE:
		/* Nothing is told, too: what an older operation left there is gone. */
		if (!undone && r->kind != PLAN_DELETE && S_ISDIR(v.id.mode))
			v.whole_at = rd->begun;
		break;
	case PLAN_DIR:
		if (!r->before.mode)
			return 0;
		if (r->flags & PLAN_TIMES) {
			v.id = r->before;
			v.id.mtime = undone ? r->before.mtime : r->after.mtime;
		}
		v.id.ino = r->before.ino;
		v.id.btime = r->before.btime;
		v.ours = true;
		v.has_digest = known_attrs(r, undone, rd->digests, &v.digest);
		/* A version from before the beginning is what the command found. */
		found = r->before.ctime >= rd->k->begin;
		v.mode_as_found = found && (r->flags & PLAN_TIMES ||
					    r->before.mode == r->after.mode);
		v.owner_as_found = found && (r->flags & PLAN_TIMES ||
					     (r->before.uid == r->after.uid &&
					      r->before.gid == r->after.gid));
		break;
	case PLAN_MKDIR:
		v.made = !undone;
		v.has_digest = v.made && known_attrs(r, false, rd->digests, &v.digest);
		break;
	case PLAN_LINK:
		/* The inode of a name in a staged directory is not known. */
		if (r->flags & PLAN_STAGED)
			return 0;
		break;
	case PLAN_LEAVE:
		return 0;
	}
	tell(rd->k, r->layer, r->rel, &v);
	/* Another name has moved the ctime of this one, and back. */
	if (r->kind == PLAN_LINK || r->flags & PLAN_LINKED)
		tell(rd->k, r->layer, r->link, &(struct version){ .id = r->after });
	return 0;
}

static int read_plan(struct reading *rd, int dir, const char *name, struct err *e)
{
	struct plan *p;
	int r;

	if (plan_open(dir, name, &p, e) < 0)
		return -1;
	r = plan_each(p, false, read_step, rd, e);
	plan_close(p);
	return r;
}

bool known_read(struct known *k, int dir, const char *name)
{
	struct reading rd = { .k = k, .digests = strcmp(name, INHERITED) == 0 };
	struct err e;

	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	       read_plan(&rd, dir, name, &e) == 0;
}

static int read_op(void *arg, struct op_record *r, struct err *e)
{
	struct known *k = arg;
	struct reading rd = { .k = k, .begun = r->begun_ns },
		       left = { .k = k, .hints = true };
	struct err ignored;
	char name[32];

	if (!known_tells(r, &rd.undone))
		return 0;
	rd.moved = moved_by_list(k->moved, r->plan);
	if (read_plan(&rd, k->dir, r->plan, e) < 0)
		return -1;
	after_commit_name(name, r->id);
	if (!rd.undone && faccessat(k->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		read_plan(&left, k->dir, name, &ignored);
	return 0;
}

static void forget_all(struct known *k)
{
	table_free(k->versions);
	k->versions = table_new(k->dir, sizeof(struct version));
}

struct known *known_new(const struct txn_record *t)
{
	struct known *k = xcalloc(1, sizeof(*k));

	/* Without a place for many all are kept in memory. */
	k->dir = open(t->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	k->begin = t->begin_ns;
	k->workspace = t->workspace;
	k->loaded = true;
	forget_all(k);
	return k;
}

void known_tell(struct known *k, uint32_t layer, const char *rel, const struct ident *id)
{
	tell(k, layer, rel, &(struct version){ .id = *id, .is_base = true });
}

int known_open(struct home *h, const struct txn *t, struct known **out, struct err *e)
{
	struct known *k = xcalloc(1, sizeof(*k));

	k->h = h;
	k->layers = txn_layers(&t->rec, &k->nlayers);
	k->id = t->rec.id;
	k->begin = t->rec.begin_ns;
	k->workspace = t->rec.workspace;
	k->dir = open(t->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (k->dir < 0) {
		err_sys(e, errno, "cannot open %s", t->rec.dir);
		known_close(k);
		return -1;
	}
	k->moved = moved_new(h, k->id, k->begin, k->dir);
	*out = k;
	return 0;
}

/* A list that cannot be read leaves its paths unknown: they are judged by time alone. */
static void read_all(struct known *k)
{
	struct err e;

	journal_op_each(k->h->journal, k->id, read_op, k, &e);
	known_read(k, k->dir, INHERITED);
	known_read(k, k->dir, SEEN);
	k->complete = known_read(k, k->dir, BASE);
}

static void read_one(struct known *k, uint64_t key)
{
	forget_all(k);
	k->only = key;
	read_all(k);
	k->only = 0;
}

void known_read_all(struct known *k)
{
	if (k->loaded)
		return;
	k->loaded = true;
	keys_free(&k->keys);
	forget_all(k);
	read_all(k);
}

static bool is_listed(struct known *k, uint64_t key)
{
	if (!k->listed) {
		k->listed = k->listing = true;
		read_all(k);
		k->listing = false;
		keys_sort(&k->keys);
	}
	return keys_has(&k->keys, key);
}

/*
 * The known version of a path, or NULL; valid until the next question. Of a million changes
 * most paths are never asked about, and most of those that are asked about are not known: a
 * table of all is the last resort.
 */
static const struct version *find(struct known *k, uint32_t layer, const char *rel)
{
	const uint64_t key = key_of(layer, rel);
	int told;

	if (!k->loaded && k->asked++ >= FEW) {
		if (!is_listed(k, key))
			return NULL;
		k->loaded = k->hits++ >= FEW;
		if (k->loaded) {
			keys_free(&k->keys);
			forget_all(k);
			read_all(k);
		}
	}
	if (!k->loaded)
		read_one(k, key);
	told = k->broken ? 0 : table_get(k->versions, key, &k->found, &k->why);
	k->broken |= told < 0;
	return told > 0 ? &k->found : NULL;
}

void known_close(struct known *k)
{
	if (!k)
		return;
	cleanup_close(&k->dir);
	known_place_again(k);
	table_free(k->versions);
	keys_free(&k->keys);
	moved_free(k->moved);
	put_backs_free(&k->others);
	free(k->layers);
	free(k);
}

int known_held(const struct known *k, struct err *e)
{
	if (k->broken)
		*e = k->why;
	return k->broken ? -1 : 0;
}

/*
 * git's index is compared by its meaning, which has no size (diff/gitindex.h): the digest
 * decides.
 */
static bool same_size(const struct version *s, const char *rel, const struct ident *host)
{
	return s->id.size == host->size || (s->has_digest && gitindex_name(rel));
}

/* Does the host's object hold what this version held, as far as that is known? */
static bool has_digest_of(const struct version *s, struct apply *a, uint32_t layer,
			  const char *rel)
{
	uint64_t digest;

	return !s->has_digest ||
	       (apply_digest(a, layer, rel, &digest, NULL, 0) && digest == s->digest);
}

bool known_touched(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		   const struct ident *host)
{
	const struct version *s = find(k, layer, rel);

	return s && (s->ours || s->made) && !s->mode_as_found && !s->owner_as_found &&
	       same_attributes(&s->id, host) && has_digest_of(s, a, layer, rel);
}

/* Is its ctime from an operation of ours? What is known of the list comes first: mostly it is
 * enough. */
static bool is_moved(struct known *k, const struct version *s, uint32_t layer,
		     const char *rel, const struct ident *host)
{
	return host->ctime < k->begin || host->ctime < s->moved ||
	       (k->moved && host->ctime < moved_until(k->moved, layer, rel, host));
}

/* A file can be written and given its old mtime again, a FIFO or a directory an ACL: only the ctime
 * tells then. That of what we have moved ourselves is not known, but not later than that. */
static bool is_untouched(struct known *k, const struct version *s, uint32_t layer,
			 const char *rel, const struct ident *host)
{
	return host->ctime == s->id.ctime || (S_ISDIR(host->mode) && !s->has_digest) ||
	       (!s->is_base && !s->has_digest && is_moved(k, s, layer, rel, host));
}

/* Have others taken it away since we were last at it, and put it back? */
static bool is_put_back(struct known *k, uint32_t layer, const char *rel,
			const struct ident *host)
{
	AUTO_FREE char *path = NULL;
	int64_t since;

	if (!k->moved || layer >= k->nlayers)
		return false;
	since = moved_until(k->moved, layer, rel, host);
	since = since > k->begin ? since : k->begin;
	path = xasprintf("%s/%s", k->layers[layer].host, rel);
	return put_back_has(put_backs_since(&k->others, k->h, since), path, host);
}

enum verdict {
	KNOWN_NOTHING, /* never seen: judge by time */
	KNOWN_SAME,    /* exactly this version */
	KNOWN_OTHER,   /* seen, but it was another */
};

/* The directory that holds @rel, or itself if that is the top: "." */
static char *dir_of(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? xstrndup(rel, (size_t)(slash - rel)) : xstrdup(".");
}

/* Is there a directory for it? If not, it is that which is gone. */
static bool has_place(struct apply *a, uint32_t layer, const char *rel)
{
	AUTO_FREE char *dir = dir_of(rel);
	struct ident host, up;
	struct err e;

	return apply_look(a, layer, dir, &host, &up, &e) < 0 || S_ISDIR(host.mode);
}

/* If only times differ, the content is compared with the digest of what was seen. */
static enum verdict look(struct known *k, struct apply *a, uint32_t layer,
			 const char *rel, const struct ident *host)
{
	const struct version *s = find(k, layer, rel);

	if (!s || (!s->id.mode && host->mode))
		return KNOWN_NOTHING;
	if (!s->id.mode)
		return KNOWN_SAME;
	if (s->doubt)
		return KNOWN_OTHER;
	if (s->late && !host->mode)
		return has_place(a, layer, rel) ? KNOWN_OTHER : KNOWN_NOTHING;
	if (s->late)
		return ident_is(&s->id, host) ? KNOWN_NOTHING : KNOWN_OTHER;
	if (ident_same(&s->id, host) && is_untouched(k, s, layer, rel, host))
		return KNOWN_SAME;
	if (!same_attributes(&s->id, host) || (!same_size(s, rel, host) && !s->made))
		return KNOWN_OTHER;
	if (s->made)
		return has_digest_of(s, a, layer, rel) ? KNOWN_SAME : KNOWN_OTHER;
	/* Of all but a file the inode is what it is for life; a directory's times move with what
	 * is put into it, for which each of the names answers by itself. */
	if (!S_ISREG(host->mode) && !s->has_digest && ident_is(&s->id, host))
		return KNOWN_SAME;
	if (S_ISDIR(host->mode) && !ident_is(&s->id, host))
		return KNOWN_OTHER;
	if (!s->has_digest && !s->is_base)
		return ident_same(&s->id, host) && is_put_back(k, layer, rel, host)
			       ? KNOWN_SAME
			       : KNOWN_OTHER;
	return s->has_digest && has_digest_of(s, a, layer, rel) ? KNOWN_SAME
								: KNOWN_OTHER;
}

/*
 * When the directory that holds @dir, or is it, was put there by us with all that was in it;
 * 0: none was. *newest: the latest change on the way to it. @dir is cut.
 */
static int64_t find_whole(struct known *k, struct apply *a, uint32_t layer, char *dir,
			  int64_t *newest)
{
	struct ident now, up;
	int64_t at = 0, top = 0;
	struct way w = { 0 };
	struct err e;

	while (strcmp(dir, ".") != 0) {
		uint64_t key = key_of(layer, dir);
		const struct memo *m = memo(&k->memos, key);
		const struct version *s;
		char *slash = strrchr(dir, '/');

		if (m->whole_key == key) {
			at = m->whole_at;
			top = m->newest;
			break;
		}
		s = find(k, layer, dir);
		if (apply_look(a, layer, dir, &now, &up, &e) < 0 || !S_ISDIR(now.mode)) {
			note_whole(&k->memos, key, 0, 0);
			break;
		}
		if (s && s->whole_at && ident_is(&s->id, &now)) {
			at = s->whole_at;
			note_whole(&k->memos, key, at, 0);
			break;
		}
		way_add(&w, key, now.ctime);
		if (!slash)
			break;
		*slash = '\0';
	}
	for (size_t i = w.n; i > 0; i--) {
		top = w.v[i - 1].ctime > top ? w.v[i - 1].ctime : top;
		note_whole(&k->memos, w.v[i - 1].key, at, top);
	}
	free(w.v);
	*newest = top > *newest ? top : *newest;
	return at;
}

/* The answer for one directory; or GO_UP: the directory above has to be asked. */
enum { GO_UP = -1 };

/*
 * Is @dir, @now on the host, the directory that the command saw there? Names in the one that holds
 * it have changed since the beginning. By overlayfs' mark, or by who was seen there.
 */
static int judge_place(struct known *k, struct apply *a, uint32_t layer, const char *dir,
		       const struct ident *now)
{
	AUTO_FREE char *copy = xstrdup(dir);
	const struct version *s;
	int64_t newest = 0;
	int from;

	/* In what we have made since the beginning nothing is older. */
	if (find_whole(k, a, layer, copy, &newest))
		return PLACE_OTHER;
	from = apply_came_from(a, layer, dir);
	if (from >= 0)
		return from ? PLACE_SAME : PLACE_OTHER;
	s = find(k, layer, dir);
	if (s && s->made)
		return S_ISDIR(now->mode) ? PLACE_SAME : PLACE_OTHER;
	if (s ? s->doubt || !ident_is(&s->id, now) : k->complete)
		return PLACE_OTHER;
	if (s && !s->late)
		return PLACE_SAME;
	/* A rename moves the ctime of a directory; but so does a new entry in it. */
	if (now->ctime < k->begin || (s && s->id.ctime < k->begin))
		return GO_UP;
	return apply_saw_one(a, layer, dir) ? PLACE_UNKNOWN : PLACE_OTHER;
}

/*
 * A renamed object has a new ctime, objects beneath it have not: so all directories up to the
 * top of the layer are asked.
 */
static enum known_place find_place(struct known *k, struct apply *a, uint32_t layer,
				   char *dir)
{
	struct ident now, above, up;
	struct way w = { 0 };
	struct err e;
	int is = PLACE_SAME;

	if (apply_look(a, layer, dir, &now, &up, &e) < 0 || !now.mode)
		return PLACE_UNKNOWN;
	k->place.still = now.ctime < k->begin;
	while (strcmp(dir, ".") != 0) {
		AUTO_FREE char *parent = dir_of(dir);
		uint64_t key = key_of(layer, dir);
		const struct memo *m = memo(&k->memos, key);

		is = m->place_key == key ? (int)m->is : GO_UP;
		if (is != GO_UP)
			break;
		way_add(&w, key, 0);
		if (apply_look(a, layer, parent, &above, &up, &e) < 0 || !above.mode)
			is = PLACE_UNKNOWN;
		else if (above.ctime >= k->begin)
			is = judge_place(k, a, layer, dir, &now);
		if (is != GO_UP)
			break;
		memcpy(dir, parent, strlen(parent) + 1);
		now = above;
		is = PLACE_SAME;
	}
	for (size_t i = 0; i < w.n; i++) {
		struct memo *m = memo(&k->memos, w.v[i].key);

		m->place_key = w.v[i].key;
		m->is = (enum known_place)is;
	}
	free(w.v);
	return (enum known_place)is;
}

void known_place_again(struct known *k)
{
	free(k->memos);
	k->memos = NULL;
	free(k->place.dir);
	k->place.dir = NULL;
}

/* Asked once for all that lies in one directory. */
enum known_place known_place(struct known *k, struct apply *a, uint32_t layer,
			     const char *rel)
{
	AUTO_FREE char *dir = dir_of(rel);

	if (!k->place.dir || k->place.layer != layer || strcmp(k->place.dir, dir) != 0) {
		free(k->place.dir);
		k->place.still = false;
		k->place.layer = layer;
		k->place.dir = xstrdup(dir);
		k->place.is = find_place(k, a, layer, dir);
	}
	return k->place.is;
}

/* Is it what we put there, though its own name is in no list? It is if nothing has moved since on
 * the way to it from a directory that was put there whole. */
static bool came_with_ours(struct known *k, struct apply *a, uint32_t layer,
			   const char *rel, const struct ident *host)
{
	AUTO_FREE char *dir = dir_of(rel);
	int64_t newest = host->ctime, whole_at;

	whole_at = find_whole(k, a, layer, dir, &newest);
	return newest < whole_at;
}

/*
 * The host's object is older than the transaction, but names in its directory have changed since:
 * is it the one that was there? On XFS an exchange leaves no trace in what is exchanged, and what
 * comes with a directory bears none either.
 */
static bool is_another(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		       const struct ident *host)
{
	const struct version *s = find(k, layer, rel);

	if (!s)
		return k->complete;
	/* It may have come with its directory while the command ran, without a new ctime. */
	if (s->late && k->place.is == PLACE_UNKNOWN)
		return true;
	if (s->made || (!s->doubt && ident_is(&s->id, host)))
		return false;
	return look(k, a, layer, rel, host) != KNOWN_SAME;
}

bool known_changed(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		   const struct ident *host)
{
	bool older = host->mode && host->ctime < k->begin;
	enum known_place place = older ? known_place(k, a, layer, rel) : PLACE_OTHER;
	enum verdict v;

	/* The usual case: untouched since before we began. No need to know any more. */
	if (place == PLACE_SAME && k->place.still)
		return false;
	if (place != PLACE_OTHER)
		return is_another(k, a, layer, rel, host);
	v = look(k, a, layer, rel, host);
	return v == KNOWN_OTHER || (v == KNOWN_NOTHING && host->mode &&
				    !came_with_ours(k, a, layer, rel, host));
}

bool known_untouched(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		     const struct stat *ours)
{
	const struct version *s = find(k, layer, rel);
	struct ident up;
	uint64_t digest;

	if (!s || !s->is_base || s->late || s->doubt || !s->has_digest)
		return false;
	ident_from(ours, &up);
	return up.mode == s->id.mode && up.size == s->id.size &&
	       up.mtime == s->id.mtime && apply_same_owner(a, layer, ours, &s->id) &&
	       apply_digest_up(a, layer, rel, &digest) && digest == s->digest;
}

bool known_is(struct known *k, struct apply *a, uint32_t layer, const char *rel,
	      const struct ident *host)
{
	const struct version *s = find(k, layer, rel);

	if (!s || !s->id.mode || !host->mode || s->late || s->doubt)
		return false;
	if (s->is_base && ident_same(&s->id, host) && s->id.ctime == host->ctime)
		return true;
	return s->has_digest && same_attributes(&s->id, host) &&
	       same_size(s, rel, host) && has_digest_of(s, a, layer, rel);
}

bool known_has(struct known *k, uint32_t layer, const char *rel)
{
	return find(k, layer, rel);
}

bool known_ident(struct known *k, uint32_t layer, const char *rel, struct ident *out)
{
	const struct version *s = find(k, layer, rel);

	if (!s || !s->id.mode || s->made || s->late || s->doubt || s->mode_as_found ||
	    s->owner_as_found)
		return false;
	*out = s->id;
	return true;
}

bool known_attributes(struct known *k, uint32_t layer, const char *rel,
		      const struct ident *host, const struct stat *ours)
{
	struct ident was;

	if (host->mode == ours->st_mode && host->uid == ours->st_uid &&
	    host->gid == ours->st_gid)
		return true;
	return known_ident(k, layer, rel, &was) && same_attributes(&was, host);
}

int known_dir(const struct known *k)
{
	return k->dir;
}
