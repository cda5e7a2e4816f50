/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs.h"
#include "torture.h"

struct seen {
	dev_t dev;
	ino_t ino;
	size_t number;
};

struct walk {
	struct buf *out;
	struct seen *links;
	size_t n;
};

static void put_holes(struct buf *out, int fd, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0)
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		buf_addf(out, " data=%lld-%lld", (long long)data, (long long)hole);
		at = hole;
	}
}

/* FNV-1a: nobody attacks this. */
static void put_content(struct buf *out, int dir, const char *name, off_t size)
{
	AUTO_CLOSE int fd = fs_open_read(dir, name);
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	unsigned char chunk[4096];
	ssize_t n;

	if (fd < 0) {
		buf_addf(out, " unreadable");
		return;
	}
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ chunk[i]) * UINT64_C(0x100000001b3);
	buf_addf(out, " sum=%016llx", (unsigned long long)h);
	put_holes(out, fd, size);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names inodes and mounts, which are new ones each time. */
static bool is_note(const char *attr)
{
	return strcmp(attr, "user.overlay.origin") == 0 ||
	       strcmp(attr, "user.overlay.uuid") == 0 ||
	       strcmp(attr, "user.overlay.impure") == 0;
}

static void put_xattrs(struct buf *out, int dir, const char *name)
{
	AUTO_BUF struct buf list = BUF_INIT, value = BUF_INIT;
	const char *sorted[64];
	size_t n = 0;

	if (fs_xattr_list(dir, name, &list) < 0)
		return;
	for (const char *a = buf_str(&list); a < buf_str(&list) + list.len && n < 64;
	     a += strlen(a) + 1)
		if (strcmp(a, "security.selinux") != 0 && !is_note(a))
			sorted[n++] = a;
	qsort(sorted, n, sizeof(sorted[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		buf_addf(out, " %s=", sorted[i]);
		if (fs_xattr_get(dir, name, sorted[i], &value) < 0) {
			buf_adds(out, "?");
			continue;
		}
		for (size_t k = 0; k < value.len; k++)
			buf_addf(out, "%02x", (unsigned char)value.data[k]);
	}
}

/* Names of one inode have one number, given in the order met. */
static size_t link_number(struct walk *w, const struct stat *st)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->links[i].dev == st->st_dev && w->links[i].ino == st->st_ino)
			return w->links[i].number;
	w->links = xrealloc(w->links, (w->n + 1) * sizeof(*w->links));
	w->links[w->n] = (struct seen){ st->st_dev, st->st_ino, w->n + 1 };
	return w->links[w->n++].number;
}

static void put_object(struct walk *w, int dir, const char *name, const char *path);

static void put_dir(struct walk *w, int dir, const char *name, const char *path)
{
	AUTO_CLOSE int fd = openat(dir, name,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct fs_names names;

	if (fd < 0 || fs_names_read(fd, &names) < 0)
		die("cannot read %s", path);
	for (size_t i = 0; i < names.n; i++) {
		AUTO_FREE char *sub = xasprintf("%s/%s", path, names.v[i]);

		/* Where copies lie that could not be kept in the store. */
		if (strncmp(names.v[i], ".stet-", 6) == 0)
			continue;
		put_object(w, fd, names.v[i], sub);
	}
	fs_names_free(&names);
}

static void put_object(struct walk *w, int dir, const char *name, const char *path)
{
	AUTO_BUF struct buf target = BUF_INIT;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		die("cannot look at %s", path);
	text_quote(w->out, path, strlen(path));
	/* Nobody sees the mode of a whiteout. */
	if (S_ISCHR(st.st_mode) && st.st_rdev == 0)
		st.st_mode = S_IFCHR;
	buf_addf(w->out, " mode=%o owner=%u:%u", st.st_mode, st.st_uid, st.st_gid);
	/* What a merge makes has the time of the merge; all else has one that it was given. */
	if (st.st_mtim.tv_sec > 1500000000)
		buf_addf(w->out, " mtime=now");
	else
		buf_addf(w->out, " mtime=%lld.%09ld", (long long)st.st_mtim.tv_sec,
			 st.st_mtim.tv_nsec);
	if (!S_ISDIR(st.st_mode))
		buf_addf(w->out, " size=%lld links=%lu", (long long)st.st_size,
			 (unsigned long)st.st_nlink);
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		buf_addf(w->out, " device=%lx", (unsigned long)st.st_rdev);
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
		buf_addf(w->out, " inode=%zu", link_number(w, &st));
	if (S_ISLNK(st.st_mode) && fs_readlink(dir, name, &target) == 0) {
		buf_adds(w->out, " -> ");
		text_quote(w->out, buf_str(&target), target.len);
	}
	put_xattrs(w->out, dir, name);
	if (S_ISREG(st.st_mode))
		put_content(w->out, dir, name, st.st_size);
	buf_addc(w->out, '\n');
	if (S_ISDIR(st.st_mode))
		put_dir(w, dir, name, path);
}

void digest_tree(const char *path, struct buf *out)
{
	struct walk w = { .out = out };

	put_object(&w, AT_FDCWD, path, ".");
	free(w.links);
}

/* Lines of @a that @b does not have. */
static int put_missing(const char *a, const char *b, char sign, int max, struct buf *out)
{
	AUTO_FREE char *copy = xstrdup(a);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) && max > 0) {
		AUTO_FREE char *whole = xasprintf("%s\n", line);

		if (!*line || strstr(b, whole))
			continue;
		buf_addf(out, "    %c %s\n", sign, line);
		max--;
	}
	return max;
}

void digest_diff(const char *a, const char *b, int max, struct buf *out)
{
	put_missing(a, b, '-', max, out);
	put_missing(b, a, '+', max, out);
}
