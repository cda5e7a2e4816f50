/* SPDX-License-Identifier: Apache-2.0 */
#include "snap/pin.h"

#include <string.h>
#include <sys/mount.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

bool step_is_pin(const struct view *v, const struct step *s)
{
	if (s->kind == STEP_SOCKET ||
	    (s->kind == STEP_BIND && !(s->attrs & MOUNT_ATTR_RDONLY)))
		return false;
	for (size_t i = 0; i < v->nthrough; i++)
		if (path_within(s->target, v->through[i]) &&
		    strcmp(s->target, v->through[i]) != 0)
			return true;
	return false;
}

/* Can the command rename what lies at @path on the host, at once and without a layer? */
static bool is_host_own(const struct view *v, const char *path)
{
	const struct step *s = view_seen_through(v, path);

	return s && s->kind == STEP_BIND && !(s->attrs & MOUNT_ATTR_RDONLY);
}

static bool is_mounted(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->nsteps; i++)
		if (v->steps[i].kind != STEP_SOCKET &&
		    strcmp(v->steps[i].target, path) == 0)
			return true;
	return false;
}

/* The targets of steps that were there before, each of which may lie below another one. */
void plan_pins(struct plan *p)
{
	size_t planned = p->v->nsteps, nfound = 0;
	char **found = NULL;

	for (size_t i = 0; i < planned; i++) {
		AUTO_FREE char *path = NULL;

		if (!step_is_pin(p->v, &p->v->steps[i]))
			continue;
		path = xstrdup(p->v->steps[i].target);
		for (char *slash = strrchr(path, '/'); slash > path;
		     slash = strrchr(path, '/')) {
			*slash = '\0';
			if (is_mounted(p->v, path) || !is_host_own(p->v, path))
				continue;
			found = xrealloc(found, (nfound + 1) * sizeof(*found));
			found[nfound++] = xstrdup(path);
		}
	}
	/* Only now: what is mounted at one of them must not hide that the tree is the host's. */
	for (size_t i = 0; i < nfound; i++) {
		if (!is_mounted(p->v, found[i]))
			plan_step(p, STEP_PIN, found[i], NULL, 0, "not to be renamed");
		free(found[i]);
	}
	free(found);
}
