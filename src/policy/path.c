/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "shell/cwd.h"

static bool is_pattern(const char *s, size_t n)
{
	while (n && *s != '*' && *s != '?' && *s != '[') {
		s++;
		n--;
	}
	return n;
}

static enum tri component(const char *spec, size_t ns, const char *path, size_t np,
			  bool glob)
{
	char a[256], b[256];
	bool pattern;

	if (ns == np && memcmp(spec, path, ns) == 0)
		return TRI_YES;
	pattern = is_pattern(spec, ns);
	if ((!pattern && !glob) || ns >= sizeof(a) || np >= sizeof(b))
		return TRI_NO;
	memcpy(a, spec, ns);
	memcpy(b, path, np);
	a[ns] = b[np] = 0;
	if (pattern && fnmatch(a, b, 0) == 0)
		return TRI_YES;
	if (glob && is_pattern(b, np) && fnmatch(b, a, FNM_PERIOD) == 0)
		return TRI_MAYBE;
	return TRI_NO;
}

/* The next component of *path, or NULL; *n is its length. *path moves behind it. */
static const char *next_of(const char **path, size_t *n)
{
	const char *p = *path;

	while (*p == '/')
		p++;
	*path = strchrnul(p, '/');
	*n = (size_t)(*path - p);
	return *n ? p : NULL;
}

/*
 * Do the next components differ in their first byte, and is neither a pattern? Nearly
 * every comparison of a commit's changes with the rules ends here.
 */
static bool differ_at_once(const char *spec, const char *path, bool glob)
{
	if (glob)
		return false;
	while (*spec == '/')
		spec++;
	while (*path == '/')
		path++;
	return *spec && *path && *spec != *path && *spec != '*' && *spec != '?' &&
	       *spec != '[' && *spec != '\\';
}

/*
 * Compares *path with @spec, component by component. *path moves behind the components of
 * @spec. REL_ABOVE: *path has ended before @spec. *sure: how certain the result is.
 */
static enum relation descend(const char *spec, const char **path, bool glob,
			     enum tri *sure)
{
	const char *a, *b;
	size_t na, nb;

	for (;;) {
		if (differ_at_once(spec, *path, glob)) {
			*sure = TRI_NO;
			return REL_NONE;
		}
		a = next_of(&spec, &na);
		if (!a)
			return REL_BELOW;
		b = next_of(path, &nb);
		if (!b)
			return REL_ABOVE;
		*sure = tri_and(*sure, component(a, na, b, nb, glob));
		if (*sure == TRI_NO)
			return REL_NONE;
	}
}

/*
 * descend(), with the last result kept for the workspace and the home, with which many
 * rules begin.
 */
static enum relation descend_lead(struct scene *s, const char *base, const char **path,
				  bool glob, enum tri *sure)
{
	struct lead *l = base == s->workspace  ? &s->leads[0]
			 : base == s->ctx.home ? &s->leads[1]
					       : NULL;

	if (!l)
		return descend(base, path, glob, sure);
	if (l->path != *path || l->glob != glob) {
		*l = (struct lead){ .path = *path, .glob = glob, .left = *path };
		l->sure = TRI_YES;
		l->how = descend(base, &l->left, glob, &l->sure);
	}
	*path = l->left;
	*sure = l->sure;
	return l->how;
}

struct lookup {
	struct scene *s;
	const char *path;
	bool glob;
	enum relation want; /* REL_BELOW and REL_ABOVE include REL_SAME */
	enum tri result;
};

/*
 * Looks the path up in the directory @base followed by @rest, which is "" or begins with
 * a slash.
 */
static void against(struct lookup *l, const char *base, const char *rest)
{
	const char *path = l->path;
	enum tri sure = TRI_YES;
	enum relation r = descend_lead(l->s, base, &path, l->glob, &sure);
	size_t n;

	if (r == REL_NONE)
		return;
	if (r == REL_BELOW && *rest)
		r = descend(rest, &path, l->glob, &sure);
	if (r == REL_BELOW && !next_of(&path, &n))
		r = REL_SAME;
	if (r == l->want || r == REL_SAME)
		l->result = tri_or(l->result, sure);
}

static void against_under(struct lookup *l, const char *base, const char *rest)
{
	if (base && (!*rest || *rest == '/'))
		against(l, base, rest);
	else if (base)
		against(l, arena_printf(l->s->ctx.arena, "%s%s", base, rest), "");
}

static const struct doc_class *class_find(const struct policy *p, const char *name)
{
	size_t i = p->docs_count;
	uint32_t k;

	while (i--)
		for (k = 0; k < p->docs[i]->classes_count; k++)
			if (strcmp(p->docs[i]->classes[k].name, name) == 0)
				return &p->docs[i]->classes[k];
	return NULL;
}

/*
 * Can the path surely not match @spec, which lies in the home? Large classes list files
 * in the home, so nearly every path ends here.
 */
static bool is_elsewhere(struct lookup *l, const char *spec)
{
	const char *rest = l->path;
	enum tri sure = TRI_YES;

	if (spec[0] == '$' && strncmp(spec, "$HOME/", 6) == 0)
		spec += 5;
	else if (spec[0] == '~' && spec[1] == '/')
		spec++;
	else
		return false;
	if (!l->s->ctx.home || l->glob)
		return !l->s->ctx.home;
	if (descend_lead(l->s, l->s->ctx.home, &rest, false, &sure) != REL_BELOW)
		return l->want == REL_BELOW;
	return differ_at_once(spec, rest, false);
}

static void lookup_spec(struct lookup *l, const char *spec, unsigned depth)
{
	static const char *const tmp[] = { "/tmp", "/var/tmp", "/dev/shm" };
	const struct doc_class *c;
	uint32_t i;

	if (spec[0] == '/') {
		against(l, spec, "");
	} else if (spec[0] == '~') {
		against_under(l, l->s->ctx.home, spec + 1);
	} else if (strncmp(spec, "$WORKSPACE", 10) == 0) {
		against_under(l, l->s->workspace, spec + 10);
	} else if (strncmp(spec, "$HOME", 5) == 0) {
		against_under(l, l->s->ctx.home, spec + 5);
	} else if (strncmp(spec, "$GIT", 4) == 0) {
		against_under(l, l->s->git, spec + 4);
	} else if (strncmp(spec, "$TMP", 4) == 0) {
		for (i = 0; i < ARRAY_SIZE(tmp); i++)
			against_under(l, tmp[i], spec + 4);
	} else if (spec[0] == '@' && depth < 4) {
		c = class_find(l->s->p, spec + 1);
		for (i = 0; c && i < c->paths_count && l->result != TRI_YES; i++)
			if (!is_elsewhere(l, c->paths[i]))
				lookup_spec(l, c->paths[i], depth + 1);
	}
}

static enum tri lookup(struct scene *s, const char *path, bool glob, enum relation want,
		       const char *const *specs, uint32_t n)
{
	struct lookup l = { s, path, glob, want, TRI_NO };
	uint32_t i;

	for (i = 0; i < n && l.result != TRI_YES; i++)
		lookup_spec(&l, specs[i], 0);
	return l.result;
}

/* The directory in which the first pattern of the path is looked for. */
static const char *pattern_top(struct scene *s, const char *path)
{
	size_t n = strcspn(path, "*?["), len;

	if (!path[n])
		return path;
	for (len = n; len && path[len - 1] != '/';)
		len--;
	return len > 1 ? arena_str(s->ctx.arena, path, len - 1) : "/";
}

/* The absolute path of the word, kept because the word is compared with many rules. */
static const char *clean_word(struct scene *s, const struct word *w)
{
	if (s->cleaned != w->s || s->cleaned_in != s->ctx.cwd) {
		s->clean = cwd_resolve(&s->ctx, s->ctx.cwd, w->s);
		s->cleaned = w->s;
		s->cleaned_in = s->ctx.cwd;
	}
	return s->clean;
}

/*
 * The path to which the links in the word lead; NULL if that is not known. The word is
 * looked up as the kernel would do it: from the command's directory, with every ".." in
 * it.
 */
static const char *real_path(struct scene *s, const struct word *w, bool follow)
{
	const struct exec_facts *f = s->facts;
	const char *path = w->s, *real;

	if (!f || !f->find_path || w->flags & WORD_GLOB)
		return NULL;
	if (path[0] != '/' && s->ctx.cwd != cwd_later && s->ctx.cwd != f->cwd) {
		if (!s->ctx.cwd)
			return NULL;
		path = arena_printf(s->ctx.arena, "%s/%s", s->ctx.cwd, path);
	}
	real = f->find_path(f->ctx, path, follow);
	return real ? arena_str(s->ctx.arena, real, strlen(real)) : NULL;
}

enum tri path_matches(struct scene *s, const struct doc_paths *p, const struct word *w,
		      bool follow)
{
	enum tri r = TRI_YES;
	const char *path, *real;
	bool glob = w->flags & WORD_GLOB;

	/* A URL, or a file that exists only for this command. */
	if (strstr(w->s, "://") || w->flags & WORD_FILE)
		return TRI_NO;
	if (w->flags & WORD_OPEN || !w->s[0])
		return w->s[0] || w->flags & WORD_OPEN ? TRI_MAYBE : TRI_NO;
	path = clean_word(s, w);
	if (!path)
		return TRI_MAYBE;
	real = real_path(s, w, follow);
	if (real && strcmp(real, path) == 0)
		real = NULL;
/*
 * For `within`, `is` and `above` either name may match; for `outside` only the link's
 * target counts.
 */
#define LOOK(where, want, list) lookup(s, where, glob, want, p->list, p->list##_count)
#define EITHER(want, list)                                                      \
	(!real	      ? LOOK(path, want, list)                                  \
	 : s->loosens ? tri_and(LOOK(path, want, list), LOOK(real, want, list)) \
		      : tri_or(LOOK(path, want, list), LOOK(real, want, list)))
	if (p->within_count)
		r = tri_and(r, EITHER(REL_BELOW, within));
	if (p->is_count)
		r = tri_and(r, EITHER(REL_SAME, is));
	if (p->above_count)
		r = tri_and(r, EITHER(REL_ABOVE, above));
	/* A pattern may name files outside if its directory lies outside. */
	if (p->outside_count && glob)
		path = pattern_top(s, path);
	if (p->outside_count)
		r = tri_and(r, tri_not(LOOK(real ? real : path, REL_BELOW, outside)));
#undef EITHER
#undef LOOK
	return r;
}
