/* SPDX-License-Identifier: Apache-2.0 */
#include "snap/pin.h"

#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

/* Does @path lie in a written-through tree, below its top? */
static bool lies_in_through(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->nthrough; i++)
		if (path_within(path, v->through[i]) && strcmp(path, v->through[i]) != 0)
			return true;
	return false;
}

bool step_is_pin(const struct view *v, const struct step *s)
{
	if (s->kind == STEP_SOCKET ||
	    (s->kind == STEP_BIND && !(s->attrs & MOUNT_ATTR_RDONLY)))
		return false;
	return lies_in_through(v, s->target);
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

struct pins {
	char **v;
	size_t n;
};

/* Notes the directories above @path, up to the top of the tree that is the host's own. */
static void pin_above(const struct plan *p, const char *path, struct pins *pins)
{
	AUTO_FREE char *dir = xstrdup(path);

	for (char *slash = strrchr(dir, '/'); slash > dir; slash = strrchr(dir, '/')) {
		*slash = '\0';
		if (is_mounted(p->v, dir) || !is_host_own(p->v, dir))
			continue;
		pins->v = xrealloc(pins->v, (pins->n + 1) * sizeof(*pins->v));
		pins->v[pins->n++] = xstrdup(dir);
	}
}

/*
 * A mount of the host moves on the host, too, when a directory above it is renamed. Mounts
 * that this user cannot reach are in no danger.
 */
static void pin_host_mounts(const struct plan *p, struct pins *pins)
{
	for (size_t i = 0; i < p->mi.n; i++) {
		const struct mountpoint *m = &p->mi.v[i];
		AUTO_FREE char *dir = xstrndup(
			m->target, (size_t)(strrchr(m->target, '/') - m->target));

		if (!m->visible || !*dir || access(dir, F_OK) < 0 ||
		    !lies_in_through(p->v, m->target))
			continue;
		p->v->host_mounts = true;
		pin_above(p, m->target, pins);
	}
}

/* Several targets may lie below the same directory, which is pinned once. */
void plan_pins(struct plan *p)
{
	size_t planned = p->v->nsteps;
	struct pins pins = { 0 };

	for (size_t i = 0; i < planned; i++)
		if (step_is_pin(p->v, &p->v->steps[i]))
			pin_above(p, p->v->steps[i].target, &pins);
	pin_host_mounts(p, &pins);
	/* Only now: what is mounted at one of them must not hide that the tree is the host's. */
	for (size_t i = 0; i < pins.n; i++) {
		if (!is_mounted(p->v, pins.v[i]))
			plan_step(p, STEP_PIN, pins.v[i], NULL, 0, "not to be renamed");
		free(pins.v[i]);
	}
	free(pins.v);
}
