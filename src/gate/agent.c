/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/tool.h"

void agents_free(struct agents *a)
{
	while (a->n)
		free(a->v[--a->n].args);
}

/* The index of @pid, or the one behind the last. */
static size_t find(const struct agents *a, pid_t pid)
{
	size_t i = 0;

	while (i < a->n && a->v[i].pid != pid)
		i++;
	return i;
}

bool agents_has(const struct agents *a, pid_t pid)
{
	return find(a, pid) < a->n;
}

void agents_drop(struct agents *a, pid_t pid)
{
	size_t i = find(a, pid);

	if (i == a->n)
		return;
	free(a->v[i].args);
	a->v[i] = a->v[--a->n];
}

/* The arguments behind the first @n; NULL if there are none. */
static const char *after(const char *args, size_t argc, size_t n)
{
	if (argc <= n)
		return NULL;
	while (n--)
		args += strlen(args) + 1;
	return args;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static unsigned runs(const char *program)
{
	return policy_runs(policy_builtin(), base_of(program));
}

/*
 * Finds the argument that names the program: the first one, or the script that an interpreter
 * executes. NULL if an interpreter gets a text, or options whose end we do not know. *n: the
 * number of arguments up to it.
 */
static const char *program_of(const char *args, size_t argc, size_t *n)
{
	const char *name = args;

	*n = 1;
	if (argc < 2 || !(runs(args) & RUNS_SCRIPT))
		return name;
	/* Options are one word each here, as --max-old-space-size=4096. */
	while (*n < argc) {
		name = after(args, argc, (*n)++);
		if (name[0] != '-')
			return name;
		if (name[1] != '-' || !strchr(name, '='))
			return NULL;
	}
	return NULL;
}

/* Is it a program that only starts another one and waits for it? */
static bool is_launcher(const struct image *i)
{
	size_t n;
	const char *name = program_of(i->args, i->argc, &n);

	return name && runs(name) & RUNS_COMMAND;
}

/* Is it a shell that was given a text? Launchers put one between themselves and the program. */
static bool has_text(const struct image *i)
{
	const char *second = after(i->args, i->argc, 1);

	return second && runs(i->exe) & RUNS_TEXT && strcmp(second, "-c") == 0;
}

/* Compares base names without extension: /x/codex.js and /y/codex are equal. */
static bool same_name(const char *a, const char *b)
{
	const size_t n = strcspn(base_of(a), ".");

	return n && n == strcspn(base_of(b), ".") &&
	       memcmp(base_of(a), base_of(b), n) == 0;
}

/*
 * Is it the same program again, or one that a script around it hands its own arguments to? A
 * single argument proves nothing: too many programs get the same one.
 */
static bool takes_over(const struct agent *x, const struct image *i)
{
	enum { WORDS = 2 };
	size_t n, m, len;
	const char *mine = program_of(x->args, x->argc, &n), *tail;
	const char *its = program_of(i->args, i->argc, &m);

	if (!mine || !its)
		return false;
	if (same_name(mine, its))
		return true;
	tail = after(x->args, x->argc, n);
	len = tail ? x->args_len - (size_t)(tail - x->args) : 0;
	return x->argc >= n + WORDS && i->argc > x->argc - n && len < i->args_len &&
	       !i->args[i->args_len - len - 1] &&
	       memcmp(i->args + i->args_len - len, tail, len) == 0;
}

static void add(struct agents *a, pid_t pid, bool launcher, const struct image *i)
{
	size_t at = find(a, pid);

	if (at == AGENTS_MAX)
		return;
	if (at < a->n)
		free(a->v[at].args);
	else
		a->n++;
	a->v[at] = (struct agent){ .pid = pid,
				   .launcher = launcher,
				   .args = memcpy(xmalloc(i->args_len), i->args,
						  i->args_len),
				   .args_len = i->args_len,
				   .argc = i->argc };
}

void agents_ran(struct agents *a, pid_t pid, pid_t parent, const struct image *i)
{
	const struct agent *x = agents_has(a, parent) ? &a->v[find(a, parent)] : NULL;
	const bool launched = x && x->launcher;

	if (!i->exe || !i->args_len)
		return;
	if (!a->n || launched || agents_has(a, pid) || (x && takes_over(x, i)))
		add(a, pid, is_launcher(i) || (launched && has_text(i)), i);
}
