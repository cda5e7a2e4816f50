/* SPDX-License-Identifier: Apache-2.0 */
#include "change/merge.h"

#include "change/git2.h"

static void fill(git_merge_file_input *in, const struct buf *b)
{
	in->ptr = buf_str(b);
	in->size = b->len;
}

int merge_text(const struct buf *base, const struct buf *ours, const struct buf *theirs,
	       struct buf *out, struct err *e)
{
	git_merge_file_input ancestor = GIT_MERGE_FILE_INPUT_INIT;
	git_merge_file_input mine = GIT_MERGE_FILE_INPUT_INIT;
	git_merge_file_input other = GIT_MERGE_FILE_INPUT_INIT;
	git_merge_file_result res = { 0 };
	const struct git2 *g = git2_load(e);
	int r;

	if (!g)
		return -1;
	fill(&ancestor, base);
	fill(&mine, ours);
	fill(&other, theirs);
	if (g->merge_file(&res, &ancestor, &mine, &other, NULL) < 0)
		return git2_error(g, e, "cannot merge");
	r = res.automergeable ? 1 : 0;
	if (r)
		buf_add(out, res.ptr, res.len);
	g->merge_file_result_free(&res);
	return r;
}
