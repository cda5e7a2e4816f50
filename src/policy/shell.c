/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/shell.h"

#include <string.h>

#include "policy/builtin.h"
#include "policy/state.h"
#include "policy/walk.h"

static void set_known(struct shell *sh, const char *name, const char *value)
{
	shell_set_again(sh, name, strlen(name), (struct word){ value, 0, NULL });
}

void judge_shell(struct scene *s, const char *text, size_t len, const struct cmd *c,
		 size_t args)
{
	struct shell sh = { .s = s };
	struct flow in = { 0 };
	struct done done = { 0 };
	const char *cwd = s->cwd;
	size_t from = s->from, to = s->to;

	if (memchr(text, 0, len))
		judge_defer(s);
	set_known(&sh, "IFS", " \t\n");
	if (s->home)
		set_known(&sh, "HOME", s->home);
	/* With a NUL behind it, and not longer than the first one. */
	text = arena_str(s->arena, text, len);
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
	s->cwd = cwd;
	s->from = from;
	s->to = to;
	for (; sh.trees; sh.trees = sh.trees->next)
		ts_tree_delete(sh.trees->tree);
}
