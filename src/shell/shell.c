/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/shell.h"

#include <string.h>

#include "shell/builtin.h"
#include "shell/state.h"
#include "shell/walk.h"

static void set_known(struct shell *sh, const char *name, const char *value)
{
	shell_set_again(sh, name, strlen(name), (struct word){ value, 0, NULL });
}

void shell_run(struct context *ctx, const char *text, size_t len, const struct cmd *c,
	       size_t args)
{
	struct shell sh = { .ctx = ctx };
	struct flow in = { 0 };
	struct done done = { 0 };
	const char *cwd = ctx->cwd;
	size_t from = ctx->from, to = ctx->to;

	if (memchr(text, 0, len))
		report_unknown(ctx);
	set_known(&sh, "IFS", " \t\n");
	if (ctx->home)
		set_known(&sh, "HOME", ctx->home);
	/* A copy that ends at the first NUL. */
	text = arena_str(ctx->arena, text, len);
	if (c)
		in = (struct flow){ .from = c->from,
				    .text = c->input,
				    .open = c->input_open };
	sh.start = cwd;
	if (args && !c->more) {
		sh.nargs = args < c->n ? c->n - args : 0;
		sh.args = c->words + c->n - sh.nargs;
	}
	shell_eval(&sh, text, &in, &done);
	run_traps(&sh, NULL);
	ctx->cwd = cwd;
	ctx->from = from;
	ctx->to = to;
	for (; sh.trees; sh.trees = sh.trees->next)
		ts_tree_delete(sh.trees->tree);
}
