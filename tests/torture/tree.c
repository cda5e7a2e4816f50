/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/rmtree.h"
#include "torture.h"

/*
 * Everything gets a fixed mtime and its final mode at the end, children before their
 * directories: two builds of one tree have one digest.
 */
struct dressing {
	char *path;
	mode_t mode; /* 0: as it is (links) */
	int stamp;
};

struct build {
	int root;
	struct dressing *v;
	size_t n;
	int next_stamp;
};

#define FIFTY_ONE "01234567890123456789012345678901234567890123456789n"
#define LONG_NAME FIFTY_ONE FIFTY_ONE FIFTY_ONE FIFTY_ONE FIFTY_ONE
_Static_assert(sizeof(LONG_NAME) - 1 == 255, "the longest name there is");

enum { DEPTH = 24, MANY = 260 };

/* Changed at its end by the command, at its beginning on the host. */
#define MIDDLE "1\n2\n3\n4\n5\n6\n7\n8\n"
#define TEXT_BEFORE "before\n" MIDDLE "before\n"
#define TEXT_AFTER "before\n" MIDDLE "after, and longer\n"
#define TEXT_EDITED "edited\n" MIDDLE "before\n"

static void must(int r, const char *what, const char *path)
{
	if (r < 0)
		die("%s %s", what, path);
}

static void dress(struct build *b, const char *path, mode_t mode, int stamp)
{
	b->v = xrealloc(b->v, (b->n + 1) * sizeof(*b->v));
	b->v[b->n++] = (struct dressing){ xstrdup(path), mode, stamp };
}

static void begin(struct build *b, const char *root, int first_stamp)
{
	*b = (struct build){ .root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			     .next_stamp = first_stamp };
	must(b->root, "open", root);
}

static void finish(struct build *b)
{
	for (size_t i = b->n; i > 0; i--) {
		const struct dressing *d = &b->v[i - 1];
		struct timespec t[2] = { { 1000000000, 0 },
					 { 1000000000 + d->stamp, 1001 * d->stamp } };

		if (d->mode)
			must(fchmodat(b->root, d->path, d->mode, 0), "chmod", d->path);
		must(utimensat(b->root, d->path, t, AT_SYMLINK_NOFOLLOW), "utimes",
		     d->path);
		free(d->path);
	}
	free(b->v);
	close(b->root);
}

/* --- one object each; stamp 0: a new one --- */

static int stamp_of(struct build *b, int stamp)
{
	return stamp ? stamp : b->next_stamp++;
}

static void dir(struct build *b, const char *path, mode_t mode, int stamp)
{
	if (strcmp(path, ".") != 0)
		must(mkdirat(b->root, path, 0755), "mkdir", path);
	dress(b, path, mode, stamp_of(b, stamp));
}

static void file(struct build *b, const char *path, const char *text, mode_t mode,
		 int stamp)
{
	AUTO_CLOSE int fd = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				   0644);

	must(fd, "create", path);
	must((int)write(fd, text, strlen(text)), "write", path);
	dress(b, path, mode, stamp_of(b, stamp));
}

static void sparse(struct build *b, const char *path, off_t at, int stamp)
{
	AUTO_CLOSE int fd = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				   0644);

	must(fd, "create", path);
	must((int)pwrite(fd, "data", 4, at), "write", path);
	must(ftruncate(fd, 96 << 10), "truncate", path);
	dress(b, path, 0644, stamp_of(b, stamp));
}

/* As overlayfs copies such a file, and then somebody writes to its end. */
static void filled(struct build *b, const char *path, off_t at, int stamp)
{
	static const char zeros[80 << 10];
	AUTO_CLOSE int fd = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				   0644);

	must(fd, "create", path);
	must((int)pwrite(fd, zeros, sizeof(zeros), at), "write", path);
	must((int)pwrite(fd, "data", 4, at), "write", path);
	must((int)pwrite(fd, "more", 4, 96 << 10), "write", path);
	dress(b, path, 0644, stamp_of(b, stamp));
}

static void sym(struct build *b, const char *path, const char *target)
{
	must(symlinkat(target, b->root, path), "symlink", path);
	dress(b, path, 0, stamp_of(b, 0));
}

static void fifo(struct build *b, const char *path)
{
	must(mkfifoat(b->root, path, 0640), "mkfifo", path);
	dress(b, path, 0640, stamp_of(b, 0));
}

static void hard(struct build *b, const char *from, const char *to)
{
	must(linkat(b->root, from, b->root, to, 0), "link", to);
}

static void whiteout(struct build *b, const char *path)
{
	must(mknodat(b->root, path, S_IFCHR, makedev(0, 0)), "mknod", path);
}

static void attr(struct build *b, const char *path, const char *name, const void *value,
		 size_t len)
{
	AUTO_CLOSE int fd = openat(b->root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	must(fd, "open", path);
	must(fsetxattr(fd, name, value, len, 0), name, path);
}

static void user_attr(struct build *b, const char *path, const char *name,
		      const char *value)
{
	attr(b, path, name, value, strlen(value));
}

/* As overlayfs marks what it copied up. */
static void origin(struct build *b, const char *path)
{
	user_attr(b, path, "user.overlay.origin", "whence");
}

/* user::rw-, user:1:@perm, group::r--, mask::rw-, other::r-- : mode 0664 */
static void acl(struct build *b, const char *path, const char *name, unsigned perm)
{
	struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} e[5];
	} v = { 2,
		{ { 1, 6, -1U },
		  { 2, (uint16_t)perm, 1 },
		  { 4, 4, -1U },
		  { 16, 6, -1U },
		  { 32, 4, -1U } } };

	attr(b, path, name, &v, sizeof(v));
}

static void deep(struct build *b, const char *top, const char *leaf, bool copied,
		 int first)
{
	AUTO_BUF struct buf path = BUF_INIT;

	for (int i = 0; i < DEPTH; i++) {
		buf_addf(&path, "%s%s", i ? "/" : "", i ? "level" : top);
		dir(b, buf_str(&path), 0755, first + i);
	}
	buf_addf(&path, "/leaf");
	file(b, buf_str(&path), leaf, 0644, 0);
	if (copied)
		origin(b, buf_str(&path));
}

/* --- the host --- */

/* Directories that the upper has too, with the stamps they share. */
enum { S_ROOT = 100, S_PLAIN, S_STILL, S_RO, S_RO_STILL, S_XDIR, S_OPAQUE, S_DEEP = 200 };

static void host_files(struct build *b)
{
	dir(b, ".", 0755, S_ROOT);
	dir(b, "plain", 0755, 0);
	file(b, "plain/kept", "as it was\n", 0644, 0);
	file(b, "plain/modified", TEXT_BEFORE, 0644, 0);
	file(b, "plain/chmodded", "same\n", 0644, S_PLAIN);
	file(b, "plain/deleted", "away\n", 0600, 0);
	file(b, "plain/touched", "same\n", 0644, 0);
	file(b, "plain/setgid", "same\n", 0755, S_PLAIN);
	dir(b, "still", 0755, S_STILL); /* its own mtime does not change */
	file(b, "still/modified", "before\n", 0644, 0);
	dir(b, "ro", 0555, 0);
	file(b, "ro/modified", "before\n", 0444, 0);
	file(b, "ro/deleted", "away\n", 0644, 0);
	dir(b, "ro-still", 0555, S_RO_STILL);
	file(b, "ro-still/modified", "before\n", 0644, 0);
	file(b, "shut", "nobody reads this\n", 0, 0);
	file(b, "new\nline", "before\n", 0644, 0);
	file(b, LONG_NAME, "before\n", 0644, 0);
	sparse(b, "sparse", 16 << 10, 0);
	sparse(b, "filled", 16 << 10, 0);
	sym(b, "link", "plain/kept");
	sym(b, "link-deleted", "nowhere");
	fifo(b, "fifo");
	fifo(b, "fifo-deleted");
	deep(b, "deep", "before\n", false, S_DEEP);
}

static void host_dirs(struct build *b)
{
	dir(b, "empty-deleted", 0755, 0);
	dir(b, "full-deleted", 0755, 0);
	file(b, "full-deleted/1", "one\n", 0644, 0);
	dir(b, "full-deleted/sub", 0700, 0);
	sym(b, "full-deleted/sub/link", "../1");
	dir(b, "opaque", 0755, 0);
	file(b, "opaque/old", "hidden\n", 0644, 0);
	file(b, "opaque/both", "before\n", 0644, 0);
	dir(b, "opaque/sub", 0755, 0);
	file(b, "opaque/sub/deep", "hidden\n", 0644, 0);
	dir(b, "moded", 0755, S_PLAIN);
	file(b, "moded/in", "same\n", 0644, 0);
}

static void host_kinds(struct build *b)
{
	file(b, "file-dir", "a file\n", 0644, 0);
	dir(b, "dir-file", 0755, 0);
	file(b, "dir-file/in", "inside\n", 0644, 0);
	sym(b, "link-file", "plain");
	fifo(b, "fifo-link");
	dir(b, "dir-link", 0755, 0);
	dir(b, "dir-fifo", 0755, 0);
	file(b, "file-fifo", "a file\n", 0644, 0);
}

static void host_links(struct build *b)
{
	file(b, "hard1", "linked\n", 0644, 0);
	hard(b, "hard1", "hard2");
	hard(b, "hard1", "hard3");
	file(b, "anchor", "linked\n", 0644, S_PLAIN);
	file(b, "anchored", "by itself\n", 0644, 0);
	file(b, "exact", "linked\n", 0644, S_PLAIN);
	file(b, "over-exact", "by itself\n", 0600, 0);
	fifo(b, "fifo-exact");
	file(b, "dressed1", "linked\n", 0644, S_PLAIN);
	hard(b, "dressed1", "dressed2");
	hard(b, "dressed1", "dressed3");
	file(b, "pair1", "linked\n", 0644, 0);
	hard(b, "pair1", "pair2");
	dir(b, "shared", 0755, 0);
	file(b, "shared/in", "linked\n", 0644, 0);
	hard(b, "shared/in", "shared-name");
	dir(b, "shared-kept", 0755, 0);
	file(b, "shared-kept/in", "linked\n", 0644, S_PLAIN);
	hard(b, "shared-kept/in", "shared-anchor");
}

static void host_attrs(struct build *b)
{
	file(b, "xattrs", "same\n", 0644, S_PLAIN);
	user_attr(b, "xattrs", "user.one", "1");
	user_attr(b, "xattrs", "user.two", "2");
	dir(b, "xdir", 0755, S_XDIR);
	user_attr(b, "xdir", "user.dir", "1");
	file(b, "acl", "same\n", 0664, S_PLAIN);
	acl(b, "acl", "system.posix_acl_access", 4);
	file(b, "acl-lost", "same\n", 0664, S_PLAIN);
	acl(b, "acl-lost", "system.posix_acl_access", 4);
	file(b, "acl-got", "same\n", 0600, S_PLAIN);
}

void tree_host(const struct site *s)
{
	struct build b;

	begin(&b, s->host[0], 1000);
	host_files(&b);
	host_dirs(&b);
	host_kinds(&b);
	host_links(&b);
	host_attrs(&b);
	finish(&b);
	begin(&b, s->host[1], 2000);
	dir(&b, ".", 0750, 0);
	file(&b, "modified", "before\n", 0644, 0);
	file(&b, "deleted", "away\n", 0644, 0);
	finish(&b);
}

/* --- the upper --- */

static void copy(struct build *b, const char *path, const char *text, mode_t mode,
		 int stamp)
{
	file(b, path, text, mode, stamp);
	origin(b, path);
}

static void up_files(struct build *b)
{
	dir(b, "plain", 0755, 0);
	copy(b, "plain/modified", TEXT_AFTER, 0644, 0);
	copy(b, "plain/chmodded", "same\n", 0755, S_PLAIN);
	copy(b, "plain/touched", "same\n", 0644, 0);
	copy(b, "plain/setgid", "same\n", 02755, S_PLAIN);
	whiteout(b, "plain/deleted");
	file(b, "plain/new", "new\n", 0640, 0);
	file(b, "plain/shut", "nobody reads this either\n", 0, 0);
	dir(b, "still", 0755, S_STILL);
	copy(b, "still/modified", "after\n", 0644, 0);
	dir(b, "ro", 0555, 0);
	copy(b, "ro/modified", "after\n", 0444, 0);
	whiteout(b, "ro/deleted");
	file(b, "ro/new", "new\n", 0444, 0);
	dir(b, "ro-still", 0555, S_RO_STILL);
	copy(b, "ro-still/modified", "after\n", 0644, 0);
	copy(b, "shut", "nobody reads this still\n", 0, 0);
	copy(b, "new\nline", "after\n", 0644, 0);
	copy(b, LONG_NAME, "after\n", 0644, 0);
	file(b, "new\n\x01\xff name", "new\n", 0644, 0);
	sparse(b, "sparse", 48 << 10, 0);
	filled(b, "filled", 16 << 10, 0);
	sparse(b, "sparse-new", 32 << 10, 0);
	sym(b, "link", "plain/new");
	sym(b, "link-new", "plain");
	whiteout(b, "link-deleted");
	whiteout(b, "fifo-deleted");
	whiteout(b, "nothing-at-all");
	fifo(b, "fifo-new");
	deep(b, "deep", "after\n", true, S_DEEP);
	deep(b, "deep-new", "new\n", false, 300);
}

static void up_dirs(struct build *b)
{
	whiteout(b, "empty-deleted");
	whiteout(b, "full-deleted");
	dir(b, "opaque", 0755, 0);
	user_attr(b, "opaque", "user.overlay.opaque", "y");
	file(b, "opaque/both", "after\n", 0644, 0);
	file(b, "opaque/new", "new\n", 0644, 0);
	dir(b, "moded", 0700, S_PLAIN);
	dir(b, "new", 0755, 0);
	user_attr(b, "new", "user.overlay.opaque", "y");
	file(b, "new/file", "new\n", 0644, 0);
	whiteout(b, "new/whiteout");
	dir(b, "new/ro", 0555, 0);
	file(b, "new/ro/file", "new\n", 0444, 0);
	dir(b, "new/empty", 0711, 0);
	user_attr(b, "new/empty", "user.mark", "yes");
	sym(b, "new/link", "file");
	copy(b, "new/moved", "moved here\n", 0644, 0);
}

static void up_kinds(struct build *b)
{
	dir(b, "file-dir", 0755, 0);
	file(b, "file-dir/in", "inside\n", 0644, 0);
	file(b, "file-dir/more", "inside\n", 0644, 0);
	file(b, "dir-file", "a file\n", 0644, 0);
	file(b, "link-file", "a file\n", 0644, 0);
	sym(b, "fifo-link", "plain");
	sym(b, "dir-link", "plain");
	fifo(b, "dir-fifo");
	fifo(b, "file-fifo");
}

static void up_links(struct build *b)
{
	copy(b, "hard1", "not linked any more\n", 0644, 0);
	whiteout(b, "hard3");
	copy(b, "anchor", "linked\n", 0600, S_PLAIN);
	hard(b, "anchor", "anchor-name");
	/* Names that the host has, and now they are others of a file that stays. */
	hard(b, "anchor", "anchored");
	copy(b, "exact", "linked\n", 0644, S_PLAIN);
	hard(b, "exact", "over-exact");
	hard(b, "exact", "fifo-exact");
	/* One gets attributes, which others have that go. */
	copy(b, "dressed1", "linked\n", 0600, S_PLAIN);
	whiteout(b, "dressed2");
	dir(b, "dressed3", 0755, 0);
	copy(b, "pair1", "both of them\n", 0644, 0);
	hard(b, "pair1", "pair2");
	file(b, "pair-new1", "new pair\n", 0644, 0);
	hard(b, "pair-new1", "pair-new2");
	/* Directories that go, with a name elsewhere that goes, too, or gets another;
	 * and one that comes, with a name elsewhere. */
	whiteout(b, "shared");
	whiteout(b, "shared-name");
	whiteout(b, "shared-kept");
	copy(b, "shared-anchor", "linked\n", 0644, S_PLAIN);
	hard(b, "shared-anchor", "shared-more");
	dir(b, "shared-new", 0755, 0);
	file(b, "shared-new/in", "new\n", 0644, 0);
	hard(b, "shared-new/in", "shared-new-name");
	hard(b, "exact", "shared-new/exact");
}

static void up_attrs(struct build *b)
{
	copy(b, "xattrs", "same\n", 0644, S_PLAIN);
	user_attr(b, "xattrs", "user.one", "9");
	user_attr(b, "xattrs", "user.three", "3");
	dir(b, "xdir", 0755, S_XDIR);
	user_attr(b, "xdir", "user.dir", "2");
	user_attr(b, "xdir", "user.more", "3");
	copy(b, "acl", "same\n", 0664, S_PLAIN);
	acl(b, "acl", "system.posix_acl_access", 6);
	copy(b, "acl-lost", "same\n", 0600, S_PLAIN);
	copy(b, "acl-got", "same\n", 0664, S_PLAIN);
	acl(b, "acl-got", "system.posix_acl_access", 7);
	file(b, "acl-new", "new\n", 0664, 0);
	acl(b, "acl-new", "system.posix_acl_access", 7);
	file(b, "xattrs-new", "new\n", 0644, 0);
	user_attr(b, "xattrs-new", "user.overlay.overlay.mine", "escaped");
	user_attr(b, "xattrs-new", "user.plain", "kept");
}

static void up_small(struct build *b)
{
	dir(b, "plain", 0755, 0);
	copy(b, "plain/modified", TEXT_AFTER, 0644, 0);
	copy(b, "plain/chmodded", "same\n", 0755, S_PLAIN);
	whiteout(b, "plain/deleted");
	file(b, "plain/new", "new\n", 0640, 0);
	dir(b, "new", 0755, 0);
	file(b, "new/file", "new\n", 0644, 0);
	copy(b, "anchor", "linked\n", 0600, S_PLAIN);
	hard(b, "anchor", "anchor-name");
	hard(b, "anchor", "anchored");
}

static gid_t second_group(void)
{
	gid_t groups[64], gid = (gid_t)-1;
	int n = getgroups(64, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] != getegid())
			gid = groups[i];
	return gid == (gid_t)-1 && geteuid() == 0 ? 1 : gid;
}

static void set_group(struct build *b, const char *path)
{
	must(fchownat(b->root, path, (uid_t)-1, second_group(), AT_SYMLINK_NOFOLLOW),
	     "chown", path);
}

/* In a copy that was made before the command began; what is new has the user's group. */
static void up_group(struct build *b)
{
	AUTO_CLOSE int fd = openat(b->root, "foreign/file",
				   O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);

	must(fd, "open", "foreign/file");
	must((int)write(fd, "after\n", 6), "write", "foreign/file");
	dress(b, "foreign", 02775, stamp_of(b, 0));
	dress(b, "foreign/file", 02774, stamp_of(b, 0));
	file(b, "foreign/setuid", "new\n", 04755, 0);
	dir(b, "foreign/dir", 0755, 0);
	file(b, "foreign/dir/setuid", "new\n", 06755, 0);
	sym(b, "foreign/dir/link", "setuid");
	copy(b, "plain/setgid", "same\n", 0755, S_PLAIN);
	set_group(b, "plain/setgid");
}

static void up_many(struct build *b)
{
	dir(b, "many", 0755, 0);
	for (int i = 0; i < MANY; i++) {
		char name[24];

		snprintf(name, sizeof(name), "many/%d", i);
		file(b, name, name, 0644, 0);
	}
}

void tree_upper(char *const up[HOSTS], enum tree_size size)
{
	struct build b;

	begin(&b, up[0], 5000);
	dir(&b, ".", 0755, 0);
	if (size == TREE_GROUP) {
		up_small(&b);
		up_group(&b);
	} else if (size != TREE_FULL) {
		up_small(&b);
	} else {
		up_files(&b);
		up_dirs(&b);
		up_kinds(&b);
		up_links(&b);
		up_attrs(&b);
	}
	if (size == TREE_WIDE)
		up_many(&b);
	finish(&b);
	begin(&b, up[1], 6000);
	dir(&b, ".", 0750, 0);
	copy(&b, "modified", "after\n", 0644, 0);
	whiteout(&b, "deleted");
	file(&b, "new", "new\n", 0644, 0);
	finish(&b);
}

/* By another name first, as an editor saves. */
static void again(struct build *b, const char *path, const char *text, mode_t mode)
{
	must(unlinkat(b->root, path, 0), "unlink", path);
	copy(b, path, text, mode, 0);
}

void tree_more(const char *up, int round)
{
	const char *text = round == 1 ? "more\n" : "still more\n";
	struct build b;
	char name[40];

	begin(&b, up, 7000 + 100 * round);
	dress(&b, ".", 0755, stamp_of(&b, 0));
	dress(&b, "plain", 0755, stamp_of(&b, 0));
	again(&b, "plain/modified", text, 0644);
	again(&b, "plain/touched", text, 0600);
	snprintf(name, sizeof(name), "plain/more%d", round);
	file(&b, name, text, 0644, 0);
	snprintf(name, sizeof(name), "more%d", round);
	dir(&b, name, 0755, 0);
	snprintf(name, sizeof(name), "more%d/in", round);
	file(&b, name, text, 0444, 0);
	if (round == 1) {
		must(unlinkat(b.root, "plain/new", 0), "unlink", "plain/new");
		must(unlinkat(b.root, "plain/deleted", 0), "unlink", "plain/deleted");
		must(unlinkat(b.root, "link-new", 0), "unlink", "link-new");
		dir(&b, "link-new", 0500, 0);
		user_attr(&b, "sparse-new", "user.later", "1");
		dress(&b, "sparse-new", 0600, stamp_of(&b, 0));
		hard(&b, "pair-new1", "pair-new3");
		whiteout(&b, "hard2");
	}
	finish(&b);
}

/*
 * Files, a new directory and what it holds, deletions at the places of what was committed; one
 * directory is elsewhere, another has other attributes, and not all of what was in it is newer.
 */
void tree_newer(const char *up)
{
	struct build b;

	begin(&b, up, 7500);
	dress(&b, ".", 0755, stamp_of(&b, 0));
	dress(&b, "plain", 0755, stamp_of(&b, 0));
	copy(&b, "plain/modified", "newer\n", 0600, 0);
	must(unlinkat(b.root, "plain/deleted", 0), "unlink", "plain/deleted");
	file(&b, "plain/deleted", "newer\n", 0644, 0);
	dress(&b, "new", 0755, stamp_of(&b, 0));
	file(&b, "new/file", "newer\n", 0644, 0);
	dress(&b, "deep-new", 0711, stamp_of(&b, 0));
	dir(&b, "deep-new/level", 0755, 0);
	file(&b, "deep-new/level/leaf", "newer\n", 0644, 0);
	must(fchmodat(b.root, "ro", 0755, 0), "chmod", "ro");
	dress(&b, "ro", 0550, stamp_of(&b, 0));
	copy(&b, "ro/modified", "newer\n", 0444, 0);
	whiteout(&b, "dir-file");
	must(renameat(b.root, "opaque", b.root, "moved"), "rename", "opaque");
	whiteout(&b, "opaque");
	finish(&b);
}

void tree_edit(const struct site *s)
{
	struct build b;

	begin(&b, s->host[0], 4000);
	must(unlinkat(b.root, "plain/modified", 0), "unlink", "modified");
	file(&b, "plain/modified", TEXT_EDITED, 0644, 0);
	dress(&b, "plain", 0755, stamp_of(&b, 0));
	finish(&b);
}

/* The directory keeps its time: only what is in it is his. */
void tree_edit_again(const struct site *s)
{
	struct build b;
	struct stat st;

	begin(&b, s->host[0], 5000);
	must(fstatat(b.root, "plain", &st, 0), "stat", "plain");
	must(unlinkat(b.root, "plain/modified", 0), "unlink", "modified");
	file(&b, "plain/modified", "his\n", 0644, 0);
	if (unlinkat(b.root, "plain/deleted", 0) < 0 && errno != ENOENT)
		die("unlink deleted");
	file(&b, "plain/deleted", "his\n", 0640, 0);
	finish(&b);
	b.root = open(s->host[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(utimensat(b.root, "plain", (struct timespec[]){ st.st_atim, st.st_mtim }, 0),
	     "utimens", "plain");
	close(b.root);
}

/* Another time, and the same content. */
void tree_touch(const struct site *s)
{
	struct build b;

	begin(&b, s->host[0], 5500);
	dress(&b, "plain/modified", 0644, stamp_of(&b, 0));
	dress(&b, "plain/chmodded", 0755, stamp_of(&b, 0));
	dress(&b, "plain/new", 0640, stamp_of(&b, 0));
	dress(&b, "new/file", 0644, stamp_of(&b, 0));
	finish(&b);
}

bool tree_foreign(const struct site *s)
{
	struct build b;

	if (second_group() == (gid_t)-1)
		return false;
	begin(&b, s->host[0], 3000);
	dir(&b, "foreign", 02775, 0);
	file(&b, "foreign/file", "of the group\n", 0664, 0);
	dir(&b, "foreign/sub", 02775, 0);
	file(&b, "foreign/sub/file", "of the group\n", 0664, 0);
	set_group(&b, "foreign/file");
	set_group(&b, "foreign/sub/file");
	set_group(&b, "foreign/sub");
	set_group(&b, "foreign");
	dress(&b, ".", 0755, S_ROOT);
	finish(&b);
	return true;
}

/* In a child: our own count of fault points must stay at zero. */
void tree_remove(const char *path)
{
	pid_t pid = fork();
	int status, r;

	if (pid == 0) {
		const char *slash = strrchr(path, '/');
		AUTO_FREE char *parent = xstrndup(path, (size_t)(slash - path));
		AUTO_CLOSE int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r = rmtree_at(fd, slash + 1, NULL);
		_exit(r < 0 && r != -ENOENT);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		die("cannot remove %s", path);
}
