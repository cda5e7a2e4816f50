/* SPDX-License-Identifier: Apache-2.0 */
#include "change/patch_text.h"

#include <string.h>

#include "base/text.h"
#include "change/git2.h"

static int print_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
		      const git_diff_line *line, void *arg)
{
	struct buf *out = arg;

	(void)delta;
	(void)hunk;
	switch (line->origin) {
	case GIT_DIFF_LINE_CONTEXT:
	case GIT_DIFF_LINE_ADDITION:
	case GIT_DIFF_LINE_DELETION:
		buf_addc(out, line->origin);
		break;
	case GIT_DIFF_LINE_FILE_HDR:
	case GIT_DIFF_LINE_BINARY:
		return 0;
	default:
		break;
	}
	buf_add(out, line->content, line->content_len);
	return 0;
}

static void add_name(struct buf *out, const char *mark, const char *name)
{
	buf_adds(out, mark);
	text_quote(out, name, strlen(name));
	buf_addc(out, '\n');
}

int patch_text(const char *a, const struct buf *from, const char *b, const struct buf *to,
	       struct buf *out, struct err *e)
{
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	const struct git2 *g = git2_load(e);
	size_t before = out->len;
	git_patch *gp = NULL;
	int r;

	if (!g)
		return -1;
	if (from->len == to->len && !memcmp(buf_str(from), buf_str(to), to->len))
		return 0;
	/* No user's configuration takes part. */
	opts.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_SKIP_BINARY_CHECK |
		     GIT_DIFF_INDENT_HEURISTIC;
	add_name(out, "--- ", a);
	add_name(out, "+++ ", b);
	r = g->patch_from_buffers(&gp, buf_str(from), from->len, "a", buf_str(to),
				  to->len, "b", &opts);
	if (r == 0)
		r = g->patch_print(gp, print_line, out);
	if (r != 0) {
		git2_error(g, e, "cannot compare");
		buf_truncate(out, before);
	}
	g->patch_free(gp);
	return r == 0 ? 0 : -1;
}
