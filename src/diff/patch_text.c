/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/patch_text.h"

#include <string.h>

#include "base/text.h"
#include "diff/git2.h"

static void add_name(struct buf *out, const char *mark, const char *name)
{
	buf_adds(out, mark);
	text_quote(out, name, strlen(name));
	buf_addc(out, '\n');
}

int patch_text(const char *a, const struct buf *from, const char *b, const struct buf *to,
	       struct buf *out, struct err *e)
{
	AUTO_BUF struct buf hunks = BUF_INIT;
	struct git2_diff d;

	if (from->len == to->len && !memcmp(buf_str(from), buf_str(to), to->len))
		return 0;
	if (git2_compare(from, to, &d, &hunks, e) < 0)
		return -1;
	add_name(out, "--- ", a);
	add_name(out, "+++ ", b);
	buf_add(out, buf_str(&hunks), hunks.len);
	return 0;
}
