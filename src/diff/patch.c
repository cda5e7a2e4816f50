/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "diff/compare.h"
#include "diff/git2.h"
#include "diff/list.h"
#include "diff/walk.h"
#include "sys/fs.h"

#define MAX_TEXT ((off_t)64 << 20)
#define SNIFF 8000

/* How git names a file without content. */
#define EMPTY_ID "e69de29bb2d1"

/* One side of a patch: what it is, and its content if that is text. */
struct side {
	const struct change_layer *layer;
	bool host; /* else upper */
	const char *rel;
	const struct stat *st;
	struct buf name; /* relative to the patch's root */
	struct buf text;
	bool binary;
	int err; /* why it could not be read */
};

struct patch {
	struct buf *out;
	struct patch_stat *st;
};

static void side_free(struct side *s)
{
	buf_free(&s->name);
	buf_free(&s->text);
}

#define AUTO_SIDE __attribute__((cleanup(side_free)))

/* Is it a file or a link, which git can describe? */
static bool is_filelike(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode);
}

void patch_name(const char *path, const char *root, struct buf *out)
{
	size_t i, same = 0;

	if (!root)
		root = "/";
	if (!strcmp(path, root)) {
		buf_addc(out, '.');
		return;
	}
	if (path_within(path, root)) {
		buf_adds(out, path + (strcmp(root, "/") ? strlen(root) + 1 : 1));
		return;
	}
	for (i = 0; path[i] == root[i] && path[i]; i++)
		if (path[i] == '/')
			same = i;
	/* The root may lie below the path: then the path's last component is shared. */
	if (path[i] == '\0' && root[i] == '/')
		same = i;
	for (i = same; root[i]; i++)
		if (root[i] == '/')
			buf_adds(out,
				 path[same] || strchr(root + i + 1, '/') ? "../" : "..");
	if (path[same])
		buf_adds(out, path + same + 1);
}

static void add_quoted(struct buf *out, const char *prefix, const struct buf *name)
{
	AUTO_BUF struct buf b = BUF_INIT;

	buf_adds(&b, prefix);
	buf_add(&b, buf_str(name), name->len);
	text_quote(out, buf_str(&b), b.len);
}

/*
 * A name on the "diff --git" line. With blanks it is quoted, as nothing else shows where it
 * ends when no "---" line follows.
 */
static void add_header_name(struct buf *out, const char *prefix, const struct buf *name)
{
	const char *p;

	if (!strchr(buf_str(name), ' ')) {
		add_quoted(out, prefix, name);
		return;
	}
	{
		AUTO_BUF struct buf b = BUF_INIT;

		add_quoted(&b, prefix, name);
		if (b.data[0] == '"') {
			buf_add(out, b.data, b.len);
			return;
		}
	}
	buf_addf(out, "\"%s", prefix);
	for (p = buf_str(name); *p; p++) {
		if (*p == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *p);
	}
	buf_addc(out, '"');
}

/* "--- a/name": with a tab after a name with blanks, or patch(1) stops at the first. */
static void add_file_line(struct buf *out, const char *mark, const char *prefix,
			  const struct side *s)
{
	size_t at;

	buf_adds(out, mark);
	at = out->len;
	if (s)
		add_quoted(out, prefix, &s->name);
	else
		buf_adds(out, "/dev/null");
	if (out->data[at] != '"' && strchr(out->data + at, ' '))
		buf_addc(out, '\t');
	buf_addc(out, '\n');
}

static unsigned git_mode(const struct stat *st)
{
	return S_ISLNK(st->st_mode) ? 0120000 : st->st_mode;
}

static int read_file(int fd, struct side *s)
{
	char block[65536];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_add(&s->text, block, (size_t)n);
		if (s->text.len > (size_t)MAX_TEXT) {
			s->binary = true;
			break;
		}
	}
	if (memchr(buf_str(&s->text), '\0', s->text.len < SNIFF ? s->text.len : SNIFF))
		s->binary = true;
	return 0;
}

static int open_parent(const struct side *s, const char **base)
{
	const char *top = !s->host	   ? s->layer->upper
			  : s->layer->base ? s->layer->base
					   : s->layer->host;
	AUTO_CLOSE int root = open(top, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return root < 0 ? -errno : fs_open_parent(root, s->rel, base);
}

static int load(struct side *s)
{
	const char *base;
	AUTO_CLOSE int dir = -1;
	AUTO_CLOSE int fd = -1;

	if (S_ISREG(s->st->st_mode) && s->st->st_size > MAX_TEXT) {
		s->binary = true;
		return 0;
	}
	dir = open_parent(s, &base);
	if (dir < 0)
		return TAKE_FD(dir);
	if (S_ISLNK(s->st->st_mode))
		return fs_readlink(dir, base, &s->text);
	fd = compare_open(dir, base);
	return fd < 0 ? TAKE_FD(fd) : read_file(fd, s);
}

static void side_init(struct side *s, const struct change_layer *layers,
		      const struct change *c, bool host, const char *root)
{
	*s = (struct side){
		.layer = &layers[c->layer],
		.host = host,
		.rel = c->rel,
		.st = host ? &c->before : &c->after,
	};
	patch_name(c->path, root, &s->name);
}

/* Content that does not matter for a patch is not read. */
static int side_load(struct side *s, struct err *e)
{
	int r = load(s);

	if (r == 0)
		return 0;
	/* A file that is gone or unreadable is mentioned in the patch; the rest goes on. */
	if (r != -EACCES && r != -EPERM && r != -ENOENT && r != -ESTALE &&
	    r != -ENOTDIR && r != -EINVAL && r != -ELOOP)
		return walk_error(e, r, buf_str(&s->name));
	s->err = r == -EACCES || r == -EPERM ? r : -ESTALE;
	return 0;
}

static void add_id(struct buf *out, const unsigned char id[GIT2_ID])
{
	for (size_t i = 0; i < 6; i++)
		buf_addf(out, "%02x", id[i]);
}

/* The lines before the hunks. */
static void add_files(struct buf *out, const struct side *a, const struct side *b,
		      const struct git2_diff *d)
{
	/* This line alone tells patch(1) that a link is changed; it refuses otherwise. */
	if (a && b && S_ISLNK(b->st->st_mode)) {
		buf_adds(out, "index ");
		add_id(out, d->id[0]);
		buf_adds(out, "..");
		add_id(out, d->id[1]);
		buf_adds(out, " 120000\n");
	}
	add_file_line(out, "--- ", "a/", a);
	add_file_line(out, "+++ ", "b/", b);
}

/* The hunks between two texts (NULL: no file), and their lines counted. */
static int add_hunks(struct patch *p, const struct side *a, const struct side *b,
		     struct err *e)
{
	AUTO_BUF struct buf hunks = BUF_INIT;
	struct git2_diff d;

	if (git2_compare(a ? &a->text : NULL, b ? &b->text : NULL, &d,
			 p->out ? &hunks : NULL, e) < 0)
		return -1;
	p->st->added += d.added;
	p->st->removed += d.removed;
	if (p->out) {
		add_files(p->out, a, b, &d);
		buf_add(p->out, buf_str(&hunks), hunks.len);
	}
	return 0;
}

static bool same_text(const struct side *a, const struct side *b)
{
	size_t na = a ? a->text.len : 0, nb = b ? b->text.len : 0;

	return na == nb && (na == 0 || !memcmp(a->text.data, b->text.data, na));
}

static int add_content(struct patch *p, struct side *a, struct side *b, struct err *e)
{
	struct buf *out = p->out;

	if ((a && side_load(a, e) < 0) || (b && side_load(b, e) < 0))
		return -1;
	if ((a && a->err) || (b && b->err))
		return 0;
	if ((a && a->binary) || (b && b->binary)) {
		p->st->binary = true;
		if (!out)
			return 0;
		buf_adds(out, "Binary files ");
		if (a)
			add_quoted(out, "a/", &a->name);
		else
			buf_adds(out, "/dev/null");
		buf_adds(out, " and ");
		if (b)
			add_quoted(out, "b/", &b->name);
		else
			buf_adds(out, "/dev/null");
		buf_adds(out, " differ\n");
		return 0;
	}
	if (same_text(a, b)) {
		/* An empty file: patch(1) would not remove it without this line. */
		if (out && !a)
			buf_adds(out, "index 000000000000.." EMPTY_ID "\n");
		else if (out && !b)
			buf_adds(out, "index " EMPTY_ID "..000000000000\n");
		return 0;
	}
	return add_hunks(p, a, b, e);
}

static void add_size(struct buf *out, const struct side *s)
{
	if (s)
		buf_addf(out, "%lld", (long long)s->st->st_size);
	else
		buf_adds(out, "none");
}

static void add_comment(struct buf *out, const char *what, const struct side *s)
{
	buf_addf(out, "# %s ", what);
	add_quoted(out, "", &s->name);
}

static void add_trouble(struct patch *p, const struct side *a, const struct side *b)
{
	const struct side *s = a && a->err ? a : b && b->err ? b : NULL;

	if (s) {
		add_comment(p->out, s->host ? "host's" : "new", s);
		buf_adds(p->out, s->err == -ESTALE ? " changed while it was read\n"
						   : " cannot be read: no permission\n");
		return;
	}
	if (p->st->binary) {
		buf_adds(p->out, "# size ");
		add_size(p->out, a);
		buf_adds(p->out, " -> ");
		add_size(p->out, b);
		buf_addc(p->out, '\n');
	}
}

/* One "diff --git": a or b may be NULL. @equal: content is known to be the same. */
static int add_section(struct patch *p, struct side *a, struct side *b, bool equal,
		       struct err *e)
{
	struct buf *out = p->out;
	bool renamed = a && b && strcmp(buf_str(&a->name), buf_str(&b->name)) != 0;

	if (out) {
		buf_adds(out, "diff --git ");
		add_header_name(out, "a/", &(a ? a : b)->name);
		buf_addc(out, ' ');
		add_header_name(out, "b/", &(b ? b : a)->name);
		buf_addc(out, '\n');
		if (!a)
			buf_addf(out, "new file mode %06o\n", git_mode(b->st));
		else if (!b)
			buf_addf(out, "deleted file mode %06o\n", git_mode(a->st));
		else if (git_mode(a->st) != git_mode(b->st))
			buf_addf(out, "old mode %06o\nnew mode %06o\n", git_mode(a->st),
				 git_mode(b->st));
		if (renamed) {
			buf_adds(out, "similarity index 100%\nrename from ");
			add_quoted(out, "", &a->name);
			buf_adds(out, "\nrename to ");
			add_quoted(out, "", &b->name);
			buf_addc(out, '\n');
		}
	}
	if (!equal && add_content(p, a, b, e) < 0)
		return -1;
	if (out)
		add_trouble(p, a, b);
	return 0;
}

static const char *type_name(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symbolic link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "character device";
	default:
		return "block device";
	}
}

/* A device, FIFO or socket was made or removed: git knows nothing of them. */
static void add_special(struct patch *p, const char *verb, const struct side *s)
{
	if (!p->out)
		return;
	buf_addf(p->out, "# %s %s ", verb, type_name(s->st));
	add_quoted(p->out, "", &s->name);
	buf_addf(p->out, ", mode %06o", s->st->st_mode);
	if (S_ISCHR(s->st->st_mode) || S_ISBLK(s->st->st_mode))
		buf_addf(p->out, ", number %u:%u", major(s->st->st_rdev),
			 minor(s->st->st_rdev));
	buf_addc(p->out, '\n');
}

static void add_special_change(struct patch *p, const struct side *a,
			       const struct side *b, unsigned what)
{
	if (p->out && what & CHANGE_MODE) {
		add_comment(p->out, "mode of", b);
		buf_addf(p->out, ": %06o -> %06o\n", a->st->st_mode, b->st->st_mode);
	}
	if (p->out && what & CHANGE_CONTENT) {
		add_comment(p->out, "number of", b);
		buf_addf(p->out, ": %u:%u -> %u:%u\n", major(a->st->st_rdev),
			 minor(a->st->st_rdev), major(b->st->st_rdev),
			 minor(b->st->st_rdev));
	}
}

static int add_side(struct patch *p, struct side *a, struct side *b, struct err *e)
{
	const struct side *s = a ? a : b;

	if (is_filelike(s->st))
		return add_section(p, a, b, false, e);
	add_special(p, a ? "deleted" : "new", s);
	return 0;
}

struct xattr_note {
	struct buf *out;
	const struct side *side;
};

static void note_xattr(void *arg, char how, const char *attr)
{
	struct xattr_note *n = arg;

	add_comment(n->out, "xattr of", n->side);
	buf_addf(n->out, ": %c", how);
	text_escape(n->out, attr, strlen(attr));
	buf_addc(n->out, '\n');
}

/* Comment lines about owner and attributes, which git cannot describe. @a may be NULL. */
static void add_notes(struct patch *p, const struct side *a, const struct side *b,
		      unsigned what)
{
	struct xattr_note note = { p->out, b };
	struct scratch s = { 0 };
	const char *base_a = NULL, *base_b;
	AUTO_CLOSE int dir_a = -1;
	AUTO_CLOSE int dir_b = -1;

	if (a && what & CHANGE_OWNER) {
		add_comment(p->out, "owner of", b);
		buf_addf(p->out, ": %u:%u -> %u:%u\n", a->st->st_uid, a->st->st_gid,
			 b->st->st_uid, b->st->st_gid);
	}
	if (a && !(what & CHANGE_XATTR))
		return;
	dir_b = open_parent(b, &base_b);
	if (a)
		dir_a = open_parent(a, &base_a);
	if (dir_b >= 0 && (!a || dir_a >= 0)) {
		struct object ob = { dir_b, base_b, b->st };
		struct object oa = { dir_a, base_a, a ? a->st : NULL };

		/* After a failure the line is missing; the rest of the patch is right. */
		(void)compare_xattrs(&ob, a ? &oa : NULL, &s, note_xattr, &note);
	}
	scratch_free(&s);
}

static int make(struct patch *p, const struct change *c, struct side *a, struct side *b,
		bool renamed, struct err *e)
{
	int r = 0;

	if (renamed)
		return add_section(p, a, b, true, e);
	switch (c->kind) {
	case CHANGE_ADD:
		return add_side(p, NULL, b, e);
	case CHANGE_DELETE:
		return add_side(p, a, NULL, e);
	case CHANGE_TYPE:
		r = add_side(p, a, NULL, e);
		return r < 0 ? r : add_side(p, NULL, b, e);
	case CHANGE_MODIFY:
		break;
	}
	if (!is_filelike(b->st))
		add_special_change(p, a, b, c->what);
	else if (c->what & (CHANGE_CONTENT | CHANGE_MODE))
		r = add_section(p, a, b, !(c->what & CHANGE_CONTENT), e);
	return r;
}

int patch_make(const struct change_layer *layers, const struct change *c,
	       const struct change *from, const char *root, struct buf *out,
	       struct patch_stat *st, struct err *e)
{
	struct patch_stat mine;
	struct patch p = { out, st ? st : &mine };
	AUTO_SIDE struct side a;
	AUTO_SIDE struct side b;
	size_t begin = out ? out->len : 0;
	unsigned what = c->what;

	*p.st = (struct patch_stat){ 0 };
	side_init(&a, layers, from ? from : c, true, root);
	side_init(&b, layers, c, false, root);
	if (S_ISREG(a.st->st_mode) && (from || c->kind != CHANGE_ADD))
		p.st->size_before = (uint64_t)a.st->st_size;
	if (S_ISREG(b.st->st_mode))
		p.st->size_after = (uint64_t)b.st->st_size;
	if (!change_counts(c))
		return 0;
	/* A caller that may see the patch may not be allowed to read hidden files. */
	if (c->was_hidden && c->kind == CHANGE_DELETE) {
		if (out) {
			add_comment(out, "hidden from the command:", &a);
			buf_addc(out, '\n');
		}
		return 0;
	}
	if (out && c->was_hidden && c->before.st_mode) {
		add_comment(out, "hidden on the host:", &b);
		buf_addc(out, '\n');
	}
	if (out && c->was_closed) {
		add_comment(out, "was read-only for the command:",
			    c->kind == CHANGE_DELETE ? &a : &b);
		buf_addc(out, '\n');
	}
	if (make(&p, c, &a, &b, from != NULL, e) < 0) {
		if (out)
			buf_truncate(out, begin);
		return -1;
	}
	if (from) {
		what = CHANGE_XATTR;
		if (!compare_owner(b.layer, b.st, a.st))
			what |= CHANGE_OWNER;
	}
	if (out && c->kind != CHANGE_DELETE)
		add_notes(&p, from || c->kind == CHANGE_MODIFY ? &a : NULL, &b, what);
	return 0;
}

static void add_field(struct buf *out, const struct change *c, const char *root, bool nul)
{
	AUTO_BUF struct buf name = BUF_INIT;
	const struct stat *st = c->after.st_mode ? &c->after : &c->before;

	patch_name(c->path, root, &name);
	if (S_ISDIR(st->st_mode))
		buf_addc(&name, '/');
	if (nul)
		buf_add(out, buf_str(&name), name.len + 1);
	else
		text_quote(out, buf_str(&name), name.len);
}

void patch_name_status(const struct change_list *l, const struct change_item *it,
		       const char *root, bool nul, struct buf *out)
{
	char sep = nul ? '\0' : '\t';

	buf_addc(out, change_letter(it));
	if (it->renamed_from != SIZE_MAX) {
		buf_adds(out, "100");
		buf_addc(out, sep);
		add_field(out, &l->v[it->renamed_from].c, root, nul);
		if (!nul)
			buf_addc(out, '\t');
	} else {
		buf_addc(out, sep);
	}
	add_field(out, &it->c, root, nul);
	if (!nul)
		buf_addc(out, '\n');
}
