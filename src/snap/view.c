/* SPDX-License-Identifier: Apache-2.0 */
#include "snap/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "snap/hide.h"
#include "snap/pin.h"
#include "snap/plan.h"
#include "snap/show.h"
#include "snap/store.h"
#include "snap/trees.h"

const char *step_kind_name(enum step_kind k)
{
	static const char *const names[] = {
		[STEP_BIND] = "bind",	  [STEP_OVERLAY] = "overlay",
		[STEP_SHOW] = "show",	  [STEP_SCRATCH] = "scratch",
		[STEP_TMPFS] = "tmpfs",	  [STEP_PROC] = "proc",
		[STEP_DEV] = "dev",	  [STEP_RUN] = "run",
		[STEP_SOCKET] = "socket", [STEP_PIN] = "pin",
		[STEP_MASK] = "mask",
	};

	return names[k];
}

void step_describe(const struct step *s, struct buf *out)
{
	static const struct {
		uint64_t attr;
		const char *name;
	} attrs[] = {
		{ MOUNT_ATTR_RDONLY, "ro" },	   { MOUNT_ATTR_NOSUID, "nosuid" },
		{ MOUNT_ATTR_NODEV, "nodev" },	   { MOUNT_ATTR_NOEXEC, "noexec" },
		{ MOUNT_ATTR_NOATIME, "noatime" },
	};

	buf_addf(out, "%-8s ", step_kind_name(s->kind));
	text_quote(out, s->target, strlen(s->target));
	if (s->source && strcmp(s->source, s->target) != 0) {
		buf_adds(out, " from ");
		text_quote(out, s->source, strlen(s->source));
	}
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++)
		if (s->attrs & attrs[i].attr)
			buf_addf(out, " %s", attrs[i].name);
	if (s->why)
		buf_addf(out, " (%s)", s->why);
}

static struct step *add_step(struct view *v, enum step_kind kind, const char *target,
			     const char *source, uint64_t attrs, const char *why)
{
	struct step *s;

	if ((v->nsteps & (v->nsteps - 1)) == 0)
		v->steps = xrealloc(v->steps,
				    (v->nsteps ? 2 * v->nsteps : 16) * sizeof(*v->steps));
	s = &v->steps[v->nsteps++];
	*s = (struct step){ .kind = kind,
			    .target = xstrdup(target),
			    .source = source ? xstrdup(source) : NULL,
			    .attrs = attrs,
			    .why = why };
	return s;
}

struct step *plan_step(struct plan *p, enum step_kind kind, const char *target,
		       const char *source, uint64_t attrs, const char *why)
{
	return add_step(p->v, kind, target, source, attrs, why);
}

/* Not to be changed from inside: commit/draft.c sees to it that it is not, mount or no mount. */
static void view_close_path(struct view *v, const char *path)
{
	v->closed = xrealloc(v->closed, (v->nclosed + 1) * sizeof(*v->closed));
	v->closed[v->nclosed++] = xstrdup(path);
}

int view_allow_socket(struct view *v, const char *path, bool spare, struct err *e)
{
	for (size_t i = 0; i < v->nhidden; i++) {
		if (!path_within(path, v->hidden[i]))
			continue;
		if (spare)
			return 0;
		err_set(e, ERR_USAGE,
			"--allow-socket %s would show what must stay hidden (%s)", path,
			v->hidden[i]);
		return err_hint(e, "leave one of the two options out");
	}
	/* On top of all that there is. */
	add_step(v, STEP_SOCKET, path, path,
		 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			 MOUNT_ATTR_NOEXEC,
		 "--allow-socket")
		->spare = spare;
	view_close_path(v, path);
	v->sockets = xrealloc(v->sockets, (v->nsockets + 1) * sizeof(*v->sockets));
	v->sockets[v->nsockets++] = xstrdup(path);
	return 0;
}

/* The directory this layer had when the transaction was first run, if it is resumed. */
static char *earlier_dir(const struct txn_record *r, enum layer_kind kind,
			 const char *host)
{
	for (size_t i = 0; r && i < r->nlayers; i++)
		if (r->layers[i].kind == kind && strcmp(r->layers[i].host, host) == 0)
			return xstrdup(r->layers[i].dir);
	return NULL;
}

int plan_layer(struct plan *p, enum layer_kind kind, const char *host, bool skeleton,
	       uint64_t attrs, const char *why, struct err *e)
{
	const char *near = kind == LAYER_SCRATCH ? p->rq->state_dir : host;
	struct view *v = p->v;
	struct view_layer l = { .kind = kind, .lax_owner = !v->root };
	struct step *s;

	/* Most layers share the store of the one before. */
	if (p->last_near &&
	    mountinfo_of(&p->mi, p->last_near) == mountinfo_of(&p->mi, near))
		l.store = xstrdup(v->layers[v->nlayers - 1].store);
	else if (store_for(&p->mi, p->rq->state_dir, near, &l.store, e) < 0)
		return -1;
	l.host = xstrdup(host);
	p->last_near = kind == LAYER_SCRATCH ? p->rq->state_dir : l.host;
	l.dir = earlier_dir(p->rq->resume, kind, host);
	if ((v->nlayers & (v->nlayers - 1)) == 0)
		v->layers = xrealloc(v->layers, (v->nlayers ? 2 * v->nlayers : 8) *
							sizeof(*v->layers));
	v->layers[v->nlayers] = l;
	s = plan_step(p, kind == LAYER_SCRATCH ? STEP_SCRATCH : STEP_OVERLAY, host,
		      kind == LAYER_SCRATCH ? NULL : host, attrs, why);
	s->layer = v->nlayers++;
	s->skeleton = skeleton;
	return 0;
}

bool plan_is_private(const struct plan *p, const char *path)
{
	for (size_t i = 0; p->private_dirs[i]; i++)
		if (path_within(path, p->private_dirs[i]))
			return true;
	return false;
}

static bool listed(char *const *v, const char *path)
{
	for (; v && *v; v++)
		if (strcmp(*v, path) == 0)
			return true;
	return false;
}

/*
 * Is the workspace itself a directory that is empty inside, and gone with the command? What is
 * below one is shown again on top of it; the directory as a whole cannot be.
 */
static int check_not_private(const struct plan *p, struct err *e)
{
	const char *ws = p->rq->workspace;
	bool scratch = false;

	for (size_t i = 0; p->private_dirs[i]; i++)
		scratch = scratch || strcmp(ws, p->private_dirs[i]) == 0;
	if (!scratch && (p->v->root || strcmp(ws, "/run") != 0))
		return 0;
	/* Taken up again it is what it was; a bind at the same place lies on top. */
	if (p->rq->resume || listed(p->rq->read_only, ws) ||
	    listed(p->rq->write_through, ws))
		return 0;
	err_set(e, ERR_USAGE,
		"%s cannot be the workspace: it is private inside, begins empty and is not "
		"kept",
		ws);
	return err_hint(e,
			scratch ? "choose another with --workspace DIR, or capture the "
				  "host's: stet run --tmp host -- COMMAND"
				: "choose another with --workspace DIR");
}

static int check_workspace(const struct plan *p, struct err *e)
{
	static const char *const never[] = { "/proc", "/sys", "/dev" };
	const char *ws = p->rq->workspace;
	const struct mountpoint *m = mountinfo_of(&p->mi, ws);
	struct stat st;

	if (stat(ws, &st) < 0)
		return err_sys(e, errno, "workspace %s", ws);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_USAGE, "workspace %s is not a directory", ws);
	if (access(ws, R_OK | X_OK) < 0) {
		err_set(e, ERR_USAGE, "workspace %s cannot be read by this user", ws);
		return err_hint(e, "choose another with --workspace DIR");
	}
	if (strcmp(ws, "/") == 0) {
		err_set(e, ERR_USAGE, "the whole root directory cannot be the workspace");
		return err_hint(e,
				"cd into the project, or name it with --workspace DIR");
	}
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		if (!path_within(ws, never[i]))
			continue;
		err_set(e, ERR_USAGE, "%s cannot be a workspace: %s is made anew inside",
			ws, never[i]);
		return err_hint(e, "choose another with --workspace DIR");
	}
	if (check_not_private(p, e) < 0)
		return -1;
	if (path_within(ws, p->rq->state_dir))
		return err_set(e, ERR_USAGE,
			       "%s is stet's own store; it cannot be the workspace", ws);
	if (!store_fs_lower(m->fstype)) {
		err_set(e, ERR_UNSUPPORTED,
			"%s is on %s, which the kernel cannot overlay", ws, m->fstype);
		return err_hint(e, "use a directory on ext4, xfs, btrfs or tmpfs");
	}
	return 0;
}

/*
 * A path that is made anew inside is not the host's: a wish about the host's cannot be met
 * there.
 */
static int check_wishes(const char *option, char *const *paths, struct err *e)
{
	static const char *const remade[] = { "/proc", "/dev" };

	for (; paths && *paths; paths++)
		for (size_t i = 0; i < ARRAY_SIZE(remade); i++)
			if (path_within(*paths, remade[i]) &&
			    !path_within(*paths, "/dev/shm"))
				return err_set(e, ERR_USAGE,
					       "--%s %s: %s is made anew inside, the "
					       "host's is not seen",
					       option, *paths, remade[i]);
	return 0;
}

/* On top lies the host's own tree; layers that lie on top of that are closed one by one. */
static int plan_read_only(struct plan *p, const char *path, struct err *e)
{
	struct view *v = p->v;
	const struct step *through = NULL;
	struct stat st;

	view_close_path(v, path);
	for (size_t i = 0; i < v->nsteps; i++) {
		struct step *s = &v->steps[i];

		if (s->kind != STEP_OVERLAY || !path_within(s->target, path))
			continue;
		s->attrs |= MOUNT_ATTR_RDONLY;
		s->why = "--read-only";
	}
	for (size_t i = 0; i < v->nsteps; i++)
		if (path_within(path, v->steps[i].target) &&
		    (!through || strlen(v->steps[i].target) >= strlen(through->target)))
			through = &v->steps[i];
	if (stat(path, &st) < 0)
		return err_sys(e, errno, "--read-only %s", path);
	if (S_ISSOCK(st.st_mode) && !p->rq->resume) {
		err_set(e, ERR_USAGE, "--read-only %s is a socket", path);
		return err_hint(
			e, "to let the command connect to it: --allow-socket '%s'", path);
	}
	if (strcmp(path, "/") == 0 || (through && through->kind == STEP_SHOW))
		return 0;
	if (S_ISDIR(st.st_mode))
		return plan_show(p, path, "--read-only", e) < 0
			       ? -1
			       : plan_show_mounts(p, path, "--read-only", e);
	if (S_ISREG(st.st_mode))
		plan_step(p, STEP_BIND, path, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
			  "--read-only");
	return 0;
}

static int plan_binds(struct plan *p, struct err *e)
{
	const struct view_request *rq = p->rq;
	struct view *v = p->v;

	if (check_wishes("read-only", rq->read_only, e) < 0 ||
	    check_wishes("write-through", rq->write_through, e) < 0 ||
	    check_wishes("hide", rq->hide, e) < 0)
		return -1;
	for (char *const *s = rq->read_only; s && *s; s++)
		if (plan_read_only(p, *s, e) < 0)
			return -1;
	for (char *const *s = rq->write_through; s && *s; s++) {
		if (strcmp(*s, "/") == 0)
			return err_set(e, ERR_USAGE,
				       "--write-through / would leave nothing to "
				       "roll back");
		if (listed(rq->read_only, *s))
			return err_set(
				e, ERR_USAGE,
				"%s cannot be both --read-only and --write-through", *s);
		plan_step(p, STEP_BIND, *s, *s, MOUNT_ATTR_NODEV, "--write-through");
		v->through = xrealloc(v->through,
				      (v->nthrough + 1) * sizeof(*v->through));
		v->through[v->nthrough++] = xstrdup(*s);
	}
	for (size_t i = 0; i < v->nthrough; i++)
		if (plan_written(p, v->through[i], e) < 0)
			return -1;
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	int c = strcmp(x->target, y->target);

	if (c)
		return c;
	/* Steps that the user asked for come after the planned ones, and masks come last. */
	return (int)(x->attrs >> 32) - (int)(y->attrs >> 32);
}

/* Parents before children; among equals the order in which they were planned. */
static void sort_steps(struct view *v)
{
	for (size_t i = 0; i < v->nsteps; i++)
		v->steps[i].attrs |= (uint64_t)i << 32;
	qsort(v->steps, v->nsteps, sizeof(*v->steps), by_target);
	for (size_t i = 0; i < v->nsteps; i++)
		v->steps[i].attrs &= 0xffffffff;
}

static int is_plain_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int make(struct plan *p, struct err *e)
{
	static const char *const scratch[] = { "/tmp", "/var/tmp" };
	size_t n = 0;

	if (!mountinfo_of(&p->mi, "/"))
		return err_set(e, ERR_UNSUPPORTED,
			       "the mount table does not show a root");
	for (size_t i = 0; i < ARRAY_SIZE(scratch) && !p->rq->host_tmp; i++)
		if (is_plain_dir(scratch[i]))
			p->private_dirs[n++] = scratch[i];
	if (check_workspace(p, e) < 0)
		return -1;
	plan_veil(p);
	if (plan_trees(p, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (plan_layer(p, LAYER_SCRATCH, p->private_dirs[i], false,
			       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, "private", e) < 0)
			return -1;
	plan_step(p, STEP_PROC, "/proc", NULL, 0, "own processes only");
	plan_step(p, STEP_DEV, "/dev", NULL, 0, "harmless devices, own terminals");
	if (plan_binds(p, e) < 0)
		return -1;
	sort_steps(p->v);
	if (plan_hidden(p, e) < 0)
		return -1;
	sort_steps(p->v);
	plan_pins(p);
	sort_steps(p->v);
	for (char *const *s = p->rq->sockets; s && *s; s++)
		if (view_allow_socket(p->v, *s, p->rq->resume, e) < 0)
			return -1;
	return 0;
}

static void free_strings(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

int view_make_from(const struct mountinfo *mi, bool root, const struct view_request *rq,
		   struct view *v, struct err *e)
{
	struct plan p = { .rq = rq, .v = v, .mi = *mi };
	int r;

	*v = (struct view){ .root = root,
			    .workspace = xstrdup(rq->workspace),
			    .cwd = xstrdup(rq->cwd),
			    .in_place = rq->in_place };
	if (rq->home && rq->home[0] == '/' && strcmp(rq->home, "/") != 0)
		v->home = realpath(rq->home, NULL);
	r = make(&p, e);
	free_strings(p.veiled, p.nveiled);
	free_strings(p.closed, p.nclosed);
	log_debug("view of %zu steps", v->nsteps);
	if (r < 0)
		view_free(v);
	return r;
}

int view_make(const struct view_request *rq, struct view *v, struct err *e)
{
	struct mountinfo mi;
	int r;

	*v = (struct view){ 0 };
	log_debug("looking at the mounts");
	r = mountinfo_read(&mi);
	if (r < 0)
		return err_sys(e, r, "cannot read the mount table");
	r = view_make_from(&mi, geteuid() == 0, rq, v, e);
	mountinfo_free(&mi);
	return r;
}

void view_free(struct view *v)
{
	for (size_t i = 0; i < v->nsteps; i++) {
		free(v->steps[i].target);
		free(v->steps[i].source);
	}
	for (size_t i = 0; i < v->nlayers; i++) {
		free(v->layers[i].host);
		free(v->layers[i].store);
		free(v->layers[i].dir);
	}
	free(v->steps);
	free(v->layers);
	free_strings(v->hidden, v->nhidden);
	free_strings(v->closed, v->nclosed);
	free_strings(v->through, v->nthrough);
	free_strings(v->sockets, v->nsockets);
	free(v->workspace);
	free(v->home);
	free(v->cwd);
	free(v->stage);
	*v = (struct view){ 0 };
}

bool view_hides(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->nhidden; i++)
		if (path_within(path, v->hidden[i]))
			return true;
	return false;
}

const struct step *view_seen_through(const struct view *v, const char *path)
{
	const struct step *best = NULL;

	for (size_t i = 0; i < v->nsteps; i++) {
		const struct step *s = &v->steps[i];

		if (s->kind != STEP_SOCKET && path_within(path, s->target) &&
		    (!best || strlen(s->target) >= strlen(best->target)))
			best = s;
	}
	return best;
}

bool view_pins_host(const struct view *v)
{
	for (size_t i = 0; i < v->nsteps; i++)
		if (step_is_pin(v, &v->steps[i]))
			return true;
	return v->host_mounts;
}

struct room {
	char *at, *end;
	bool full;
};

static void *take(struct room *r, const void *from, size_t n)
{
	size_t whole = (n + 15) & ~(size_t)15;
	char *p = r->at;

	if (r->full || whole > (size_t)(r->end - p)) {
		r->full = true;
		return NULL;
	}
	r->at += whole;
	return n ? memcpy(p, from, n) : p;
}

static char *take_string(struct room *r, const char *s)
{
	return s ? take(r, s, strlen(s) + 1) : NULL;
}

static char **take_strings(struct room *r, char *const *v, size_t n)
{
	char **copy = take(r, v, n * sizeof(*v));

	for (size_t i = 0; copy && i < n; i++)
		copy[i] = take_string(r, v[i]);
	return copy;
}

const struct view *view_copy(const struct view *v, void *mem, size_t size)
{
	struct room r = { mem, (char *)mem + size, false };
	struct view *c = take(&r, v, sizeof(*v));

	if (!c)
		return NULL;
	c->workspace = take_string(&r, v->workspace);
	c->home = take_string(&r, v->home);
	c->cwd = take_string(&r, v->cwd);
	c->stage = take_string(&r, v->stage);
	c->hidden = take_strings(&r, v->hidden, v->nhidden);
	c->closed = take_strings(&r, v->closed, v->nclosed);
	c->through = take_strings(&r, v->through, v->nthrough);
	c->sockets = take_strings(&r, v->sockets, v->nsockets);
	c->steps = take(&r, v->steps, v->nsteps * sizeof(*v->steps));
	for (size_t i = 0; c->steps && i < v->nsteps; i++) {
		c->steps[i].target = take_string(&r, v->steps[i].target);
		c->steps[i].source = take_string(&r, v->steps[i].source);
	}
	c->layers = take(&r, v->layers, v->nlayers * sizeof(*v->layers));
	for (size_t i = 0; c->layers && i < v->nlayers; i++) {
		c->layers[i].host = take_string(&r, v->layers[i].host);
		c->layers[i].store = take_string(&r, v->layers[i].store);
		c->layers[i].dir = take_string(&r, v->layers[i].dir);
	}
	return r.full ? NULL : c;
}
