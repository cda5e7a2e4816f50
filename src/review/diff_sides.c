/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "diff/patch_text.h"
#include "host/known_text.h"
#include "review/diff.h"
#include "review/diff_sides.h"
#include "sys/fs.h"

enum { TEXT_MAX = 16 << 20, SNIFF = 8000 };

const char *diff_conflict(const struct diff_res *res, const char *path)
{
	size_t k;

	for (k = 0; k < res->conflicts.n; k++)
		if (strcmp(res->conflicts.v[k].path, path) == 0)
			return res->conflicts.v[k].what;
	return NULL;
}

/* The text of a file below @top; false if it is none, or too long. */
static bool read_text(const char *top, const char *rel, struct buf *out)
{
	AUTO_CLOSE int root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd = root < 0 ? -1 : fs_open_beneath(root, rel, O_RDONLY);
	char block[65536];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	while (out->len <= TEXT_MAX && (n = read(fd, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	return n == 0 && !memchr(buf_str(out), '\0', out->len < SNIFF ? out->len : SNIFF);
}

static int compare(const struct diff_res *res, const struct change *c, const char *a,
		   const struct buf *from, const char *b, const struct buf *to,
		   struct buf *out, struct err *e)
{
	AUTO_BUF struct buf left = BUF_INIT, right = BUF_INIT;

	buf_addf(&left, "%s/", a);
	patch_name(c->path, res->txn.rec.workspace, &left);
	buf_addf(&right, "%s/", b);
	patch_name(c->path, res->txn.rec.workspace, &right);
	return patch_text(left.data, from, right.data, to, out, e);
}

int diff_sides(const struct diff_res *res, const struct change_item *it, struct buf *out,
	       struct err *e)
{
	const struct change *c = &it->c;
	const struct change_layer *l = &res->layers[c->layer];
	AUTO_BUF struct buf host = BUF_INIT, here = BUF_INIT, base = BUF_INIT;

	/* Hidden from the command, and so from whoever reads this on its behalf. */
	if (c->was_hidden || !S_ISREG(c->before.st_mode) || !S_ISREG(c->after.st_mode) ||
	    !read_text(l->host, c->rel, &host) || !read_text(l->upper, c->rel, &here))
		return patch_make(res->layers, c, changes_from(&res->changes, it),
				  res->txn.rec.workspace, out, NULL, e);
	if (known_content(res->known, (uint32_t)c->layer, c->rel, &base) &&
	    (compare(res, c, "base", &base, "host", &host, out, e) < 0 ||
	     compare(res, c, "base", &base, "transaction", &here, out, e) < 0))
		return -1;
	return compare(res, c, "host", &host, "transaction", &here, out, e);
}
