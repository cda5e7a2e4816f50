/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/known.h"

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
#include "change/gitindex.h"
#include "sys/mountinfo.h"
#include "txn/keys.h"
#include "txn/parts.h"
#include "txn/table.h"

/* In the directory of a transaction that began with the state of another: what that knew. */
#define INHERITED "known"

/* Both are of the time before the transaction began. */
static const char *const bases[] = { SEEN, BASE };

struct version {
	struct ident id;
	uint64_t digest;
	bool has_digest;
	bool is_base; /* nothing of ours has touched it since: its ctime counts */
	bool ours;    /* attributes set or put back by an operation of this transaction */
	bool made;    /* a directory that a commit needed: its inode is not known */
	int64_t whole_at; /* a directory that we put there with all that is in it: since then */
};

/* So many questions are answered by reading it all for each: that takes no memory. */
enum { FEW = 8 };

/* What was found out about a directory, for all that lies beneath it. */
struct memo {
	uint64_t place_key, whole_key; /* 0: nothing */
	enum known_place is;
	int64_t whole_at, newest; /* see find_whole() */
};

/* So many directories; a power of two. */
enum { MEMOS = 1 << 14 };

struct known {
	int dir; /* the transaction's */
	struct home *h;
	int64_t id, begin;
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
	} place;
	struct memo *memos;	/* NULL: none */
	struct table *versions; /* by layer and path */
	struct version found;	/* what the last question was about */
	/* They could not be kept: no answer is worth anything. */
	bool broken;
	struct err why;
};

static uint64_t key_of(uint32_t layer, const char *rel)
{
	uint64_t k = XXH64(rel, strlen(rel), layer);

	return k ? k : 1;
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

	if (k->listing)
		keys_add(&k->keys, key);
	if (k->listing || k->broken || (k->only && key != k->only))
		return;
	told = table_get(k->versions, key, &v, &k->why);
	if (told == 0) {
		v = *said;
	} else if (told > 0) {
		bool digest = said->has_digest && !v.has_digest &&
			      ident_same(&v.id, &said->id);
		bool whole = said->whole_at && !v.whole_at && ident_is(&v.id, &said->id);

		if (!digest && !whole && v.ours >= said->ours)
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
	int64_t begun; /* the operation; 0: it is none */
};

static int read_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct reading *rd = arg;
	bool undone = rd->undone || r->flags & PLAN_UNDONE;
	struct version v = { .id = undone ? r->before : r->after };

	(void)e;
	/* What was decided against the host's version was decided for that one time. */
	if (undone && r->flags & (PLAN_FORCE | PLAN_MERGED))
		return 0;
	switch (r->kind) {
	case PLAN_BASE:
		v.id = r->before;
		v.is_base = true;
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
		break;
	case PLAN_MKDIR:
		v.made = !undone;
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

void known_read(struct known *k, int dir, const char *name)
{
	struct reading rd = { .k = k };
	struct err e;

	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		read_plan(&rd, dir, name, &e);
}

/* Does it say what is on the host? *undone: that is what was there before it. */
static bool tells(const struct op_record *r, bool *undone)
{
	bool part = r->kind == OP_UNDO && r->part && r->state == OP_DONE &&
		    r->redone != 1;

	/* One that was reversed has moved things away and back: their ctime is ours. */
	*undone = part || r->undone || r->state == OP_REVERSED;
	return (r->kind == OP_COMMIT || part) && r->plan &&
	       (r->state == OP_DONE || r->state == OP_REVERSED);
}

static int read_op(void *arg, struct op_record *r, struct err *e)
{
	struct reading rd = { .k = arg, .begun = r->begun_ns };

	return tells(r, &rd.undone) ? read_plan(&rd, rd.k->dir, r->plan, e) : 0;
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
	k->id = t->rec.id;
	k->begin = t->rec.begin_ns;
	k->workspace = t->rec.workspace;
	k->dir = open(t->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (k->dir < 0) {
		err_sys(e, errno, "cannot open %s", t->rec.dir);
		known_close(k);
		return -1;
	}
	*out = k;
	return 0;
}

/* What cannot be read is not known, and then it is judged by time alone. */
static void read_all(struct known *k)
{
	struct err e;

	journal_op_each(k->h->journal, k->id, read_op, k, &e);
	known_read(k, k->dir, INHERITED);
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
		known_read(k, k->dir, bases[i]);
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
 * What is known of a path, or NULL; until the next question. Of a million changes most are never
 * asked about, and those who ask are mostly not known: a table of all is the last resort.
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
	free(k);
}

int known_held(const struct known *k, struct err *e)
{
	if (k->broken)
		*e = k->why;
	return k->broken ? -1 : 0;
}

static bool same_attributes(const struct ident *a, const struct ident *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* What git's index says has no size of its own (change/gitindex.h): the digest alone tells. */
static bool same_size(const struct version *s, const char *rel, const struct ident *host)
{
	return s->id.size == host->size || (s->has_digest && gitindex_name(rel));
}

bool known_touched(struct known *k, uint32_t layer, const char *rel,
		   const struct ident *host)
{
	const struct version *s = find(k, layer, rel);

	return s && (s->ours || (s->made && same_attributes(&s->id, host)));
}

/* A file can be written and given its old mtime again, a FIFO an ACL: only the ctime tells then. */
static bool is_untouched(const struct version *s, const struct ident *host)
{
	return S_ISDIR(host->mode) || host->ctime == s->id.ctime ||
	       (!s->is_base && !s->has_digest);
}

enum verdict {
	KNOWN_NOTHING, /* never seen: judge by time */
	KNOWN_SAME,    /* exactly this version */
	KNOWN_OTHER,   /* seen, but it was another */
};

/* If only times differ, the content is compared with the digest of what was seen. */
static enum verdict look(struct known *k, struct apply *a, uint32_t layer,
			 const char *rel, const struct ident *host)
{
	const struct version *s = find(k, layer, rel);
	uint64_t digest;

	if (!s || (!s->id.mode && host->mode))
		return KNOWN_NOTHING;
	if (!s->id.mode)
		return KNOWN_SAME;
	if (ident_same(&s->id, host) && is_untouched(s, host))
		return KNOWN_SAME;
	if (!same_attributes(&s->id, host) || (!same_size(s, rel, host) && !s->made))
		return KNOWN_OTHER;
	if (s->made)
		return KNOWN_SAME;
	/* Of all but a file the inode is what it is for life; a directory's times move with what
	 * is put into it, for which each of the names answers by itself. */
	if (!S_ISREG(host->mode) && !s->has_digest && ident_is(&s->id, host))
		return KNOWN_SAME;
	return s->has_digest && apply_digest(a, layer, rel, &digest, NULL, 0) &&
			       digest == s->digest
		       ? KNOWN_SAME
		       : KNOWN_OTHER;
}

/* The directory that holds @rel, or itself if that is the top: "." */
static char *dir_of(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? xstrndup(rel, (size_t)(slash - rel)) : xstrdup(".");
}

static bool is_in_workspace(const struct known *k, const struct apply *a, uint32_t layer,
			    const char *dir)
{
	const char *host = apply_host(a, layer);
	AUTO_FREE char *path = xasprintf("%s/%s", strcmp(host, "/") == 0 ? "" : host,
					 dir);

	return strcmp(dir, ".") != 0 && strcmp(path, k->workspace) != 0 &&
	       path_within(path, k->workspace);
}

/* The place for what is found out about @key; what was there about another goes. */
static struct memo *memo(struct known *k, uint64_t key)
{
	if (!k->memos)
		k->memos = xcalloc(MEMOS, sizeof(*k->memos));
	return &k->memos[key & (MEMOS - 1)];
}

/* Directories from one upwards, of which nothing is known yet. */
struct way {
	struct visited {
		uint64_t key;
		int64_t ctime;
	} * v;
	size_t n;
};

static void way_add(struct way *w, uint64_t key, int64_t ctime)
{
	if ((w->n & (w->n - 1)) == 0)
		w->v = xrealloc(w->v, (w->n ? 2 * w->n : 8) * sizeof(*w->v));
	w->v[w->n++] = (struct visited){ key, ctime };
}

static void note_whole(struct known *k, uint64_t key, int64_t at, int64_t newest)
{
	struct memo *m = memo(k, key);

	m->whole_key = key;
	m->whole_at = at;
	m->newest = newest;
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
		const struct memo *m = memo(k, key);
		const struct version *s;
		char *slash = strrchr(dir, '/');

		if (m->whole_key == key) {
			at = m->whole_at;
			top = m->newest;
			break;
		}
		s = find(k, layer, dir);
		if (apply_look(a, layer, dir, &now, &up, &e) < 0 || !S_ISDIR(now.mode)) {
			note_whole(k, key, 0, 0);
			break;
		}
		if (s && s->whole_at && ident_is(&s->id, &now)) {
			at = s->whole_at;
			note_whole(k, key, at, 0);
			break;
		}
		way_add(&w, key, now.ctime);
		if (!slash)
			break;
		*slash = '\0';
	}
	for (size_t i = w.n; i > 0; i--) {
		top = w.v[i - 1].ctime > top ? w.v[i - 1].ctime : top;
		note_whole(k, w.v[i - 1].key, at, top);
	}
	free(w.v);
	*newest = top > *newest ? top : *newest;
	return at;
}

/* A directory that has changed since the transaction began. */
static enum known_place judge_place(struct known *k, struct apply *a, uint32_t layer,
				    char *dir, struct ident *now)
{
	int from = apply_came_from(a, layer, dir);
	struct ident seen;

	if (from < 0 && known_ident(k, layer, dir, &seen))
		from = ident_is(&seen, now);
	/* In what we have made since the beginning nothing is older. */
	if (find_whole(k, a, layer, dir, &now->ctime))
		return PLACE_OTHER;
	return from < 0 ? PLACE_UNKNOWN : from ? PLACE_SAME : PLACE_OTHER;
}

/*
 * What was renamed bears it in its ctime, what came with it does not. So does one into which
 * something was put: then overlayfs' mark tells, or who was seen there before.
 */
static enum known_place find_place(struct known *k, struct apply *a, uint32_t layer,
				   char *dir)
{
	enum known_place is = PLACE_SAME;
	struct ident now, up;
	struct way w = { 0 };
	struct err e;

	while (is_in_workspace(k, a, layer, dir)) {
		uint64_t key = key_of(layer, dir);
		const struct memo *m = memo(k, key);
		char *slash = strrchr(dir, '/');

		if (m->place_key == key) {
			is = m->is;
			break;
		}
		way_add(&w, key, 0);
		if (apply_look(a, layer, dir, &now, &up, &e) < 0 || !now.mode) {
			is = PLACE_UNKNOWN;
			break;
		}
		if (now.ctime >= k->begin) {
			is = judge_place(k, a, layer, dir, &now);
			break;
		}
		if (!slash)
			break;
		*slash = '\0';
	}
	for (size_t i = 0; i < w.n; i++) {
		struct memo *m = memo(k, w.v[i].key);

		m->place_key = w.v[i].key;
		m->is = is;
	}
	free(w.v);
	return is;
}

void known_place_again(struct known *k)
{
	free(k->place.dir);
	k->place.dir = NULL;
	free(k->memos);
	k->memos = NULL;
}

/* Asked once for all that lies in one directory. */
enum known_place known_place(struct known *k, struct apply *a, uint32_t layer,
			     const char *rel)
{
	AUTO_FREE char *dir = dir_of(rel);

	if (!k->place.dir || k->place.layer != layer || strcmp(k->place.dir, dir) != 0) {
		free(k->place.dir);
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

bool known_changed(struct known *k, struct apply *a, uint32_t layer, const char *rel,
		   const struct ident *host)
{
	enum verdict v;

	/* The usual case: untouched since before we began. No need to know any more. */
	if (host->mode && host->ctime < k->begin &&
	    known_place(k, a, layer, rel) != PLACE_OTHER)
		return false;
	v = look(k, a, layer, rel, host);
	return v == KNOWN_OTHER || (v == KNOWN_NOTHING && host->mode &&
				    !came_with_ours(k, a, layer, rel, host));
}

bool known_is(struct known *k, struct apply *a, uint32_t layer, const char *rel,
	      const struct ident *host)
{
	const struct version *s = find(k, layer, rel);
	uint64_t digest;

	if (!s || !s->id.mode || !host->mode)
		return false;
	if (s->is_base && ident_same(&s->id, host) && s->id.ctime == host->ctime)
		return true;
	return s->has_digest && same_attributes(&s->id, host) &&
	       same_size(s, rel, host) && apply_digest(a, layer, rel, &digest, NULL, 0) &&
	       digest == s->digest;
}

bool known_ident(struct known *k, uint32_t layer, const char *rel, struct ident *out)
{
	const struct version *s = find(k, layer, rel);

	if (!s || !s->id.mode || s->made)
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

struct wanted {
	uint32_t layer;
	const char *rel;
	struct buf *out;
	bool found;
};

static int find_content(void *arg, const struct plan_rec *r, struct err *e)
{
	struct wanted *w = arg;

	(void)e;
	if (r->kind != PLAN_BASE || r->layer != w->layer || !S_ISREG(r->before.mode) ||
	    strcmp(r->rel, w->rel) != 0)
		return 0;
	/* A digest first, then the content; a file that is empty has both but no bytes. */
	if (r->nxbefore >= sizeof(uint64_t) && (r->nxafter || !r->before.size)) {
		buf_add(w->out, r->xafter, r->nxafter);
		w->found = true;
	}
	return 1;
}

bool known_content(struct known *k, uint32_t layer, const char *rel, struct buf *out)
{
	struct wanted w = { layer, rel, out, false };
	struct plan *p;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bases) && !w.found; i++) {
		if (plan_open(k->dir, bases[i], &p, &e) < 0)
			continue;
		plan_each(p, false, find_content, &w, &e);
		plan_close(p);
	}
	return w.found;
}

struct heritage {
	struct home *h;
	int from;
	struct plan_writer *out;
	uint32_t *layers; /* the other's layer for each, or UINT32_MAX */
	size_t nlayers;
	bool undone;
};

static int hand_down(void *arg, const struct plan_rec *r, struct err *e)
{
	struct heritage *g = arg;
	struct plan_rec copy = *r;

	if (r->layer >= g->nlayers || g->layers[r->layer] == UINT32_MAX)
		return 0;
	copy.layer = g->layers[r->layer];
	if (g->undone)
		copy.flags |= PLAN_UNDONE;
	copy.nxafter = 0; /* no content */
	if (r->kind != PLAN_BASE)
		copy.nxbefore = 0;
	return plan_add(g->out, &copy, e);
}

static int hand_down_list(struct heritage *g, const char *name, bool undone,
			  struct err *e)
{
	struct plan *p;
	int r;

	if (faccessat(g->from, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (plan_open(g->from, name, &p, e) < 0)
		return -1;
	g->undone = undone;
	r = plan_each(p, false, hand_down, g, e);
	plan_close(p);
	return r;
}

static int hand_down_op(void *arg, struct op_record *r, struct err *e)
{
	bool undone;

	return tells(r, &undone) ? hand_down_list(arg, r->plan, undone, e) : 0;
}

static uint32_t *map_layers(const struct txn_record *from, const struct txn_record *to,
			    size_t *n)
{
	size_t nfrom, nto;
	AUTO_FREE struct change_layer *a = txn_layers(from, &nfrom);
	AUTO_FREE struct change_layer *b = txn_layers(to, &nto);
	uint32_t *map = xcalloc(nfrom + 1, sizeof(*map));

	for (size_t i = 0; i < nfrom; i++) {
		map[i] = UINT32_MAX;
		for (size_t k = 0; k < nto; k++)
			if (strcmp(a[i].host, b[k].host) == 0)
				map[i] = (uint32_t)k;
	}
	*n = nfrom;
	return map;
}

void known_inherit(struct home *h, const struct txn_record *from,
		   const struct txn_record *to)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	AUTO_CLOSE int source = open(from->dir, flags), dir = open(to->dir, flags);
	struct heritage g = { .h = h, .from = source };
	AUTO_FREE uint32_t *layers = NULL;
	struct err e;
	int r;

	if (source < 0 || dir < 0 || plan_create(dir, INHERITED, &g.out, &e) < 0)
		return;
	g.layers = layers = map_layers(from, to, &g.nlayers);
	/* Newest first: the first one told is believed. */
	r = journal_op_each(h->journal, from->id, hand_down_op, &g, &e);
	if (r == 0)
		r = hand_down_list(&g, INHERITED, false, &e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bases); i++)
		r = hand_down_list(&g, bases[i], false, &e);
	if (r == 0)
		plan_finish_lazily(g.out, &e);
	else
		plan_abandon(g.out);
}
