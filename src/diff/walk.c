/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "diff/compare.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "sys/ns.h"

/*
 * A depth-first walk over the upper, with the host alongside. The stack is our own, and only
 * the deepest directories have open descriptors: the sandboxed side chooses how deep its tree
 * is.
 */
#define OPEN_LEVELS 96

/* How often an object is looked at again that changes meanwhile. */
#define TRIES 3

struct dir_id {
	dev_t dev;
	ino_t ino;
};

/*
 * A directory being read. Both descriptors: the upper lies over the host's (and if it is
 * opaque, the host's names are read too); upper alone: added; host alone: deleted.
 */
struct frame {
	int up, host; /* -1: none, or closed for the moment */
	bool has_up, has_host;
	struct dir_id up_id, host_id;
	struct fs_names names, host_names; /* host's: opaque directories only */
	size_t i, j;
	size_t path_len;
	bool opaque; /* nothing of the host shows here, nor in what lies below */
	bool implied, hidden, closed;
	bool matched; /* all below passes the filter */
	bool post;    /* report `change` when the contents are done */
	struct change change;
};

struct walk {
	const struct change_layer *layer;
	size_t layer_index;
	const char *const *paths;
	change_fn *fn;
	void *arg;
	struct buf path; /* absolute, of the object at hand */
	size_t rel;	 /* where its part relative to the layer begins */
	int up_root, host_root;
	struct frame *stack;
	size_t depth, cap;
	size_t first_open; /* frames below this index have their descriptors closed */
	struct scratch scratch;
};

/* One name in the directory on top of the stack. */
struct entry {
	const char *name;
	bool has_up, has_host;
	bool is_hidden, is_closed; /* the path itself, or one it lies below */
	bool matched;
	struct stat up, host;
};

static const struct stat no_stat;

int walk_error(struct err *e, int err, const char *path)
{
	AUTO_BUF struct buf q = BUF_INIT;
	size_t len = strlen(path), most = 400;

	if (len > most)
		buf_adds(&q, "...");
	text_quote(&q, len > most ? path + len - most : path, len > most ? most : len);
	if (q.len > 700)
		buf_truncate(&q, 700);
	err_sys(e, err, "cannot read %s", buf_str(&q));
	if (err == EACCES || err == -EACCES)
		err_hint(e, "its mode keeps you out; chmod it, or look at it as root");
	return -1;
}

static int fail(struct walk *w, int err, struct err *e)
{
	return walk_error(e, err, buf_str(&w->path));
}

static struct frame *top(const struct walk *w)
{
	return &w->stack[w->depth - 1];
}

static void close_frame(struct frame *f)
{
	if (f->up >= 0)
		close(f->up);
	if (f->host >= 0)
		close(f->host);
	f->up = f->host = -1;
}

static struct dir_id id_of(const struct stat *st)
{
	return (struct dir_id){ st->st_dev, st->st_ino };
}

static bool same_dir(int fd, const struct dir_id *id)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == id->dev && st.st_ino == id->ino;
}

/*
 * Opens the directory above @child, or by its path if there is no child on that side. It must
 * be the directory that was read before.
 */
static int reopen(int child, int root, const char *rel, const struct dir_id *id)
{
	int fd;

	if (child >= 0) {
		fd = openat(child, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && same_dir(fd, id))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	fd = fs_open_beneath(root, *rel ? rel : ".", O_PATH | O_DIRECTORY);
	if (fd < 0 || same_dir(fd, id))
		return fd;
	close(fd);
	return -ESTALE;
}

/* Removes the top frame; the one beneath gets its descriptors back. */
static int pop(struct walk *w, struct err *e)
{
	struct frame *f = top(w), *g;
	const char *rel;
	int r = 0;

	fs_names_free(&f->names);
	fs_names_free(&f->host_names);
	w->depth--;
	if (w->depth == 0 || w->first_open < w->depth) {
		close_frame(f);
		return 0;
	}
	g = top(w);
	buf_truncate(&w->path, g->path_len);
	rel = w->path.len > w->rel ? w->path.data + w->rel : "";
	if (g->has_up) {
		r = reopen(f->up, w->up_root, rel, &g->up_id);
		g->up = r < 0 ? -1 : r;
	}
	if (r >= 0 && g->has_host) {
		r = reopen(f->host, w->host_root, rel, &g->host_id);
		g->host = r < 0 ? -1 : r;
	}
	close_frame(f);
	w->first_open = w->depth - 1;
	return r < 0 ? fail(w, r, e) : 0;
}

/*
 * Puts a directory on the stack; takes both descriptors (-1: none), on failure too. Names
 * come from the upper, or from the host where there is no upper, or from both.
 */
static int push(struct walk *w, int up, int host, bool both, const struct entry *en,
		struct err *e)
{
	struct frame *f;
	int r;

	if (w->depth == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 16;
		w->stack = xrealloc(w->stack, w->cap * sizeof(*w->stack));
	}
	if (w->depth - w->first_open >= OPEN_LEVELS)
		close_frame(&w->stack[w->first_open++]);
	f = &w->stack[w->depth++];
	*f = (struct frame){
		.up = up,
		.host = host,
		.has_up = up >= 0,
		.has_host = host >= 0,
		.path_len = w->path.len,
		.opaque = both,
		.implied = w->depth > 1 && (up < 0 || host < 0),
		.hidden = en->is_hidden,
		.closed = en->is_closed,
		.matched = en->matched,
	};
	f->up_id = id_of(&en->up);
	f->host_id = id_of(&en->host);
	r = fs_names_read(up >= 0 ? up : host, &f->names);
	if (r == 0 && both)
		r = fs_names_read(host, &f->host_names);
	return r < 0 ? fail(w, r, e) : 0;
}

static int emit(struct walk *w, const struct change *c, struct err *e)
{
	struct change out = *c;

	out.path = buf_str(&w->path);
	out.rel = out.path + w->rel;
	out.layer = w->layer_index;
	return w->fn(w->arg, &out, e);
}

static struct change change_of(struct walk *w, const struct entry *en,
			       enum change_kind kind)
{
	return (struct change){
		.kind = kind,
		.implied = top(w)->implied,
		.was_hidden = en->is_hidden,
		.was_closed = en->is_closed,
		.before = en->has_host ? en->host : no_stat,
		.after = en->has_up ? en->up : no_stat,
	};
}

static int report(struct walk *w, const struct entry *en, enum change_kind kind,
		  unsigned what, struct err *e)
{
	struct change c = change_of(w, en, kind);

	if (!en->matched)
		return 0;
	c.what = what;
	return emit(w, &c, e);
}

/* Is the path itself in the list? For paths above it the frame knows. */
static bool is_listed(const struct walk *w, const char *const *list)
{
	for (; list && *list; list++)
		if (!strcmp(*list, w->path.data))
			return true;
	return false;
}

/* Can anything at or below the path pass the filter? Sets *matched if everything does. */
static bool passes(const struct walk *w, bool *matched)
{
	const char *const *p;
	bool any = false;

	*matched = top(w)->matched;
	if (*matched)
		return true;
	for (p = w->paths; *p; p++) {
		if (path_within(w->path.data, *p)) {
			*matched = true;
			return true;
		}
		any = any || path_within(*p, w->path.data);
	}
	return any;
}

static int open_dir(int dir, const char *name, int flags)
{
	int fd;

	do {
		fd = openat(dir, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} while (fd < 0 && errno == EACCES && ns_gain_override() == 0);
	return fd < 0 ? -errno : fd;
}

/*
 * Opens a directory of the host for reading. -EXDEV where another mount begins: the layer ends
 * there.
 */
static int open_host_dir(int dir, const char *name)
{
	int fd;

	do {
		fd = fs_open_dir_here(dir, name, O_RDONLY | O_NOATIME);
		if (fd == -EPERM) /* O_NOATIME is for owners only */
			fd = fs_open_dir_here(dir, name, O_RDONLY);
	} while (fd == -EACCES && ns_gain_override() == 0);
	return fd;
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static bool is_opaque(int fd)
{
	char v[2];

	return fgetxattr(fd, OVERLAY_OPAQUE, v, sizeof(v)) == 1 && v[0] == 'y';
}

/* The whole directory of the host is deleted: first its contents, then @kind for itself. */
static int walk_deleted(struct walk *w, const struct entry *en, enum change_kind kind,
			struct err *e)
{
	int host = open_host_dir(top(w)->host, en->name);
	struct change c = change_of(w, en, kind);

	if (is_absent(host) || host == -EXDEV)
		return report(w, en, kind, 0, e);
	if (host < 0)
		return fail(w, host, e);
	if (push(w, -1, host, false, en, e) < 0)
		return -1;
	top(w)->change = c;
	top(w)->post = en->matched;
	return 0;
}

/* What the host has at the path of a directory of the upper. */
enum meets {
	MEETS_NOTHING,
	MEETS_DIR,	   /* and may be opaque */
	MEETS_MERGING_DIR, /* and is known not to be opaque by itself */
};

static int walk_upper(struct walk *w, const struct entry *en, enum meets meets,
		      struct err *e)
{
	AUTO_CLOSE int up = open_dir(top(w)->up, en->name, O_RDONLY);
	bool opaque = false;
	int host = -1;

	if (up < 0) {
		int r = TAKE_FD(up);

		return is_absent(r) ? 0 : fail(w, r, e);
	}
	if (meets != MEETS_NOTHING) {
		opaque = top(w)->opaque || (meets == MEETS_DIR && is_opaque(up));
		host = opaque ? open_host_dir(top(w)->host, en->name) : -EXDEV;
		opaque = host >= 0;
		/* A merged directory's own names are enough: no need to read the host's. */
		if (host == -EXDEV)
			host = open_dir(top(w)->host, en->name, O_PATH);
		if (is_absent(host))
			host = -1;
		else if (host < 0)
			return fail(w, host, e);
	}
	return push(w, TAKE_FD(up), host, opaque, en, e);
}

/* An object at a path that was hidden from the sandbox: it is new, whatever the host has. */
static int visit_hidden(struct walk *w, const struct entry *en, struct err *e)
{
	int r;

	if (!en->has_up)
		return report(w, en, CHANGE_DELETE, 0, e);
	r = report(w, en, CHANGE_ADD, 0, e);
	if (r != 0 || !S_ISDIR(en->up.st_mode))
		return r;
	return walk_upper(w, en, MEETS_NOTHING, e);
}

/*
 * Was the object copied into the upper before the command ran, and not touched by the command?
 */
static bool is_as_copied(const struct walk *w, const struct entry *en)
{
	const struct timespec *t = &en->up.st_ctim;

	return w->layer->copied_ns &&
	       (S_ISREG(en->up.st_mode) || S_ISDIR(en->up.st_mode)) &&
	       (int64_t)t->tv_sec * 1000000000 + t->tv_nsec < w->layer->copied_ns;
}

/* Compares two objects of one type. -ENOENT, -ESTALE: look again. */
static int visit_pair(struct walk *w, const struct entry *en, struct err *e, int *again)
{
	struct object up = { top(w)->up, en->name, &en->up };
	struct object host = { top(w)->host, en->name, &en->host };
	enum meets meets = MEETS_DIR;
	unsigned what;
	int r;

	if (en->matched && is_as_copied(w, en)) {
		if (w->layer->every) {
			struct change c = change_of(w, en, CHANGE_MODIFY);

			r = emit(w, &c, e);
			if (r != 0)
				return r;
		}
	} else if (en->matched) {
		r = compare_objects(w->layer, &up, &host, &w->scratch, &what);
		*again = r == -ENOENT || r == -ESTALE ? r : 0;
		if (r < 0)
			return fail(w, r, e);
		/* The comparison listed its attributes; most directories have no such. */
		if (!compare_listed(&w->scratch, OVERLAY_OPAQUE))
			meets = MEETS_MERGING_DIR;
		if (what || w->layer->every) {
			struct change c = change_of(w, en, CHANGE_MODIFY);

			c.what = what;
			c.bare = S_ISREG(en->up.st_mode) && compare_bare(&w->scratch);
			r = emit(w, &c, e);
			if (r != 0)
				return r;
		}
	}
	return S_ISDIR(en->up.st_mode) ? walk_upper(w, en, meets, e) : 0;
}

static int visit_kinds(struct walk *w, const struct entry *en, struct err *e, int *again)
{
	int r;

	if (!en->has_up && !en->has_host)
		return 0;
	if (en->is_hidden && !top(w)->hidden && en->has_host)
		return visit_hidden(w, en, e);
	if (!en->has_up)
		return S_ISDIR(en->host.st_mode) ? walk_deleted(w, en, CHANGE_DELETE, e)
						 : report(w, en, CHANGE_DELETE, 0, e);
	if (en->has_host && (en->up.st_mode & S_IFMT) == (en->host.st_mode & S_IFMT))
		return visit_pair(w, en, e, again);
	/* The host has something else there by now, or nothing. */
	if (S_ISREG(en->up.st_mode) && is_as_copied(w, en))
		return 0;
	if (en->has_host && S_ISDIR(en->host.st_mode))
		return walk_deleted(w, en, CHANGE_TYPE, e);
	r = report(w, en, en->has_host ? CHANGE_TYPE : CHANGE_ADD, 0, e);
	if (r != 0 || !S_ISDIR(en->up.st_mode))
		return r;
	return walk_upper(w, en, MEETS_NOTHING, e);
}

/* 1: there is one, 0: there is none. */
static int look(int dir, const char *name, struct stat *st)
{
	do {
		if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0)
			return 1;
	} while (errno == EACCES && ns_gain_override() == 0);
	return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

static int visit(struct walk *w, const char *name, bool in_upper, struct err *e)
{
	struct entry en = { .name = name };
	int r, tries = 0, again;

	if (!passes(w, &en.matched) || is_listed(w, w->layer->never))
		return 0;
	en.is_hidden = top(w)->hidden || is_listed(w, w->layer->hidden);
	en.is_closed = top(w)->closed || is_listed(w, w->layer->closed);
	do {
		again = 0;
		en.has_up = en.has_host = false;
		if (in_upper) {
			r = look(top(w)->up, name, &en.up);
			if (r < 0)
				return fail(w, r, e);
			/*
			 * A running sandbox has removed the object; the next look at the
			 * directory shows why.
			 */
			if (r == 0 && !top(w)->host_names.v)
				return 0;
			en.has_up = r && !overlay_is_whiteout(&en.up);
		}
		if (top(w)->host >= 0) {
			r = look(top(w)->host, name, &en.host);
			if (r < 0)
				return fail(w, r, e);
			en.has_host = r;
		}
		r = visit_kinds(w, &en, e, &again);
	} while (again && ++tries < TRIES);
	return r;
}

/* Next name of the frame in byte order; NULL at the end. */
static const char *next_name(struct frame *f, bool *in_upper)
{
	const char *a = f->i < f->names.n ? f->names.v[f->i] : NULL;
	const char *b = f->j < f->host_names.n ? f->host_names.v[f->j] : NULL;
	int order = a && b ? strcmp(a, b) : a ? -1 : 1;

	*in_upper = f->has_up && order <= 0;
	if (a && order <= 0)
		f->i++;
	if (b && order >= 0)
		f->j++;
	return order <= 0 ? a : b;
}

static int step(struct walk *w, struct err *e)
{
	struct frame *f = top(w);
	bool in_upper;
	const char *name = next_name(f, &in_upper);
	int r = 0;

	buf_truncate(&w->path, f->path_len);
	if (name) {
		buf_addc(&w->path, '/');
		buf_adds(&w->path, name);
		return visit(w, name, in_upper, e);
	}
	if (f->post)
		r = emit(w, &f->change, e);
	return r != 0 ? r : pop(w, e);
}

static bool wanted(const struct walk *w, bool *matched)
{
	const char *host = w->layer->host;
	const char *const *p;
	bool any = !w->paths;

	*matched = !w->paths;
	for (p = w->paths; p && *p; p++) {
		*matched = *matched || path_within(host, *p);
		any = any || *matched || path_within(*p, host);
	}
	return any;
}

/* The attributes of the layer's root are not compared: stet has made that directory. */
static int push_root(struct walk *w, bool matched, struct err *e)
{
	const struct change_layer *l = w->layer;
	struct entry root = { .matched = matched };
	int up, host = -1;

	for (const char *const *p = l->closed; p && *p; p++)
		root.is_closed = root.is_closed || path_within(l->host, *p);
	w->up_root = open_dir(AT_FDCWD, l->upper, O_PATH);
	if (w->up_root < 0)
		return walk_error(e, w->up_root, l->upper);
	w->host_root = open_dir(AT_FDCWD, l->base ? l->base : l->host, O_PATH);
	if (w->host_root < 0 && w->host_root != -ENOENT)
		return walk_error(e, w->host_root, l->host);
	if (fstat(w->up_root, &root.up) < 0)
		return walk_error(e, errno, l->upper);
	if (w->host_root >= 0) {
		host = open_dir(w->host_root, ".", O_PATH);
		if (host < 0)
			return walk_error(e, host, l->host);
		if (fstat(host, &root.host) < 0) {
			close(host);
			return walk_error(e, errno, l->host);
		}
	}
	up = open_dir(w->up_root, ".", O_RDONLY);
	if (up < 0) {
		if (host >= 0)
			close(host);
		return walk_error(e, up, l->upper);
	}
	return push(w, up, host, false, &root, e);
}

static int walk_layer(struct walk *w, struct err *e)
{
	bool matched;
	int r;

	if (!wanted(w, &matched) || (w->layer->away && w->layer->untouched))
		return 0;
	buf_reset(&w->path);
	if (strcmp(w->layer->host, "/") != 0)
		buf_adds(&w->path, w->layer->host);
	w->rel = w->path.len + 1;
	w->up_root = w->host_root = -1;
	r = push_root(w, matched, e);
	while (r == 0 && w->depth > 0)
		r = step(w, e);
	for (; w->depth > 0; w->depth--) {
		close_frame(top(w));
		fs_names_free(&top(w)->names);
		fs_names_free(&top(w)->host_names);
	}
	w->first_open = 0;
	if (w->up_root >= 0)
		close(w->up_root);
	if (w->host_root >= 0)
		close(w->host_root);
	return r;
}

int change_walk_paths(const struct change_layer *layers, size_t n,
		      const char *const *paths, change_fn *fn, void *arg, struct err *e)
{
	struct walk w = { .paths = paths, .fn = fn, .arg = arg };
	int r = 0;

	for (; r == 0 && w.layer_index < n; w.layer_index++) {
		w.layer = &layers[w.layer_index];
		r = walk_layer(&w, e);
	}
	free(w.stack);
	buf_free(&w.path);
	scratch_free(&w.scratch);
	return r;
}

int change_walk(const struct change_layer *layers, size_t n, change_fn *fn, void *arg,
		struct err *e)
{
	return change_walk_paths(layers, n, NULL, fn, arg, e);
}
