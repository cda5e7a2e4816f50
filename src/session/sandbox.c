/* SPDX-License-Identifier: Apache-2.0 */
#include "session/sandbox.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "call/json.h"
#include "inplace/inplace.h"
#include "runner/detach.h"
#include "sys/mountinfo.h"
#include "txn/begin.h"
#include "txn/end.h"
#include "txn/marks.h"
#include "txn/state.h"

/* As names for what --allow-socket opens. */
#define SSH_AGENT "ssh-agent"
#define GPG_AGENT "gpg-agent"

void sandbox_wish_free(struct sandbox_wish *w)
{
	free(w->cwd);
	strv_free(w->read_only);
	strv_free(w->write_through);
	strv_free(w->hide);
	strv_free(w->sockets);
	memset(w, 0, sizeof(*w));
}

static json_t *encode_list(char *const *v)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; v && v[i]; i++)
		json_array_append_new(a, json_pack_bytes(v[i]));
	return a;
}

char *sandbox_wish_encode(const struct sandbox_wish *w)
{
	json_t *o = json_object();
	char *text;

	json_object_set_new(o, "cwd", json_pack_bytes(w->cwd));
	json_object_set_new(o, "tmp", json_string(w->host_tmp ? "host" : "private"));
	json_object_set_new(o, "network", json_string(w->offline ? "none" : "host"));
	json_object_set_new(o, "read_only", encode_list(w->read_only));
	json_object_set_new(o, "write_through", encode_list(w->write_through));
	json_object_set_new(o, "hide", encode_list(w->hide));
	json_object_set_new(o, "sockets", encode_list(w->sockets));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!text)
		abort();
	return text;
}

static int decode_list(const json_t *a, char ***v)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(a))
		return -1;
	json_array_foreach(a, i, item)
	{
		char *s = json_unpack_bytes(item);

		if (!s)
			return -1;
		strv_push(v, s);
	}
	return 0;
}

int sandbox_wish_decode(const char *text, struct sandbox_wish *w, struct err *e)
{
	json_t *o = json_loads(text ? text : "", 0, NULL);
	const char *tmp = json_string_value(json_object_get(o, "tmp"));
	/* Older records have none: they had the host's. */
	const char *net = json_string_value(json_object_get(o, "network"));
	const json_t *sockets = json_object_get(o, "sockets"); /* nor had they this */
	bool bad;

	memset(w, 0, sizeof(*w));
	w->cwd = json_unpack_bytes(json_object_get(o, "cwd"));
	bad = !w->cwd || !tmp ||
	      decode_list(json_object_get(o, "read_only"), &w->read_only) ||
	      decode_list(json_object_get(o, "write_through"), &w->write_through) ||
	      decode_list(json_object_get(o, "hide"), &w->hide) ||
	      (sockets && decode_list(sockets, &w->sockets));
	w->host_tmp = tmp && strcmp(tmp, "host") == 0;
	w->offline = net && strcmp(net, "none") == 0;
	json_decref(o);
	if (!bad)
		return 0;
	sandbox_wish_free(w);
	return err_set(e, ERR_CORRUPT, "recorded options cannot be read");
}

/* Does "NAME=…" @entry belong into a clean environment? */
static bool is_basic(const char *entry)
{
	static const char *const names[] = { "HOME",  "USER", "LOGNAME", "PATH",
					     "SHELL", "TERM", "LANG",	 "TZ" };
	size_t n = strcspn(entry, "="), i;

	if (strncmp(entry, "LC_", 3) == 0)
		return true;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == n && strncmp(entry, names[i], n) == 0)
			return true;
	return false;
}

/* Sets an entry "NAME=VALUE", replacing an older one; takes it over. */
static void env_put(char ***env, char *entry, bool replace)
{
	size_t n = strcspn(entry, "=") + 1, i;

	for (i = 0; *env && (*env)[i]; i++) {
		if (strncmp((*env)[i], entry, n) != 0)
			continue;
		if (replace) {
			free((*env)[i]);
			(*env)[i] = entry;
		} else {
			free(entry);
		}
		return;
	}
	strv_push(env, entry);
}

static void env_add(const struct op_ctx *ctx, char ***env, const char *add)
{
	size_t n = strcspn(add, "="), i;

	if (add[n]) {
		env_put(env, xstrdup(add), true);
		return;
	}
	for (i = 0; ctx->env && ctx->env[i]; i++)
		if (strncmp(ctx->env[i], add, n) == 0 && ctx->env[i][n] == '=')
			env_put(env, xstrdup(ctx->env[i]), true);
}

int sandbox_env_check(char *const *add, struct err *e)
{
	size_t i;

	for (i = 0; add && add[i]; i++) {
		if (strcspn(add[i], "=") == 0) {
			err_set(e, ERR_USAGE, "--env '%s': no name", add[i]);
			return err_hint(e, "write --env NAME=VALUE, or --env NAME");
		}
	}
	return 0;
}

/*
 * A variable that was not asked for by name is seen inside only if the lists of the policy
 * have it.
 */
static bool may_pass(const struct policy *p, const char *var)
{
	AUTO_FREE char *name = xstrndup(var, strcspn(var, "="));

	return !p || policy_env_allows(p, name);
}

char **sandbox_env(const struct op_ctx *ctx, const struct policy *p,
		   const struct sandbox_opts *o, int64_t id)
{
	char *const *add = o ? o->env : NULL;
	char **env = NULL;
	size_t i;

	for (i = 0; ctx->env && ctx->env[i]; i++)
		if ((!o || !o->clean_env || is_basic(ctx->env[i])) &&
		    may_pass(p, ctx->env[i]))
			strv_push(&env, xstrdup(ctx->env[i]));
	/* Every overlay is a filesystem of its own: git stops its search at their edges. */
	env_put(&env, xstrdup("GIT_DISCOVERY_ACROSS_FILESYSTEM=1"), false);
	/* A command that may talk to the agent has to know its address. */
	for (i = 0; o && o->sockets && o->sockets[i]; i++)
		if (strcmp(o->sockets[i], SSH_AGENT) == 0)
			env_add(ctx, &env, "SSH_AUTH_SOCK");
	for (i = 0; add && add[i]; i++)
		env_add(ctx, &env, add[i]);
	env_put(&env, xasprintf("STET_TXN=t%lld", (long long)id), true);
	return env;
}

static int resolve_list(struct op_ctx *ctx, const char *option, char *const *in,
			char ***out, struct err *e)
{
	size_t i;
	char *s;

	for (i = 0; in && in[i]; i++) {
		if (op_ctx_realpath(ctx, in[i], &s, e) < 0)
			return err_wrap(e, "--%s", option);
		strv_push(out, s);
	}
	return 0;
}

/*
 * The socket of gpg-agent for a user without a directory for it; else the one in that
 * directory.
 */
static char *gpg_agent(const struct op_ctx *ctx)
{
	const char *own = op_ctx_env(ctx, "GNUPGHOME"), *home = op_ctx_env(ctx, "HOME");
	char *path = xasprintf("/run/user/%u/gnupg/S.gpg-agent", (unsigned)geteuid());

	if (!own && access(path, F_OK) == 0)
		return path;
	free(path);
	return own ? xasprintf("%s/S.gpg-agent", own)
		   : xasprintf("%s/.gnupg/S.gpg-agent", home ? home : "");
}

static int resolve_socket(struct op_ctx *ctx, const char *name, char **out, struct err *e)
{
	const char *ssh = op_ctx_env(ctx, "SSH_AUTH_SOCK");
	AUTO_FREE char *path = NULL;
	struct stat st;

	if (strcmp(name, SSH_AGENT) == 0 && !ssh) {
		err_set(e, ERR_USAGE, "--allow-socket %s: SSH_AUTH_SOCK is not set",
			name);
		return err_hint(e, "start one: eval \"$(ssh-agent)\"");
	}
	if (strcmp(name, SSH_AGENT) == 0)
		path = xstrdup(ssh);
	else
		path = strcmp(name, GPG_AGENT) == 0 ? gpg_agent(ctx) : xstrdup(name);
	if (op_ctx_realpath(ctx, path, out, e) == 0) {
		if (stat(*out, &st) == 0 && S_ISSOCK(st.st_mode))
			return 0;
		err_set(e, ERR_USAGE, "%s is not a socket", *out);
		free(*out);
		*out = NULL;
	}
	err_wrap(e, "--allow-socket");
	return strcmp(name, GPG_AGENT) == 0
		       ? err_hint(e, "gpgconf --list-dirs agent-socket says where it is: "
				     "--allow-socket PATH")
		       : err_hint(e, "ss -lx lists those that are listened at");
}

int sandbox_sockets(struct op_ctx *ctx, char *const *names, char ***out, struct err *e)
{
	for (char *const *in = names; in && *in; in++) {
		char *s;

		if (resolve_socket(ctx, *in, &s, e) < 0)
			return -1;
		strv_push(out, s);
	}
	return 0;
}

static int resolve_workspace(struct op_ctx *ctx, const char *dir, char **out,
			     struct err *e)
{
	const char *cwd;
	struct stat st;

	if (op_ctx_cwd(ctx, &cwd, e) < 0)
		return -1;
	/* The current directory is resolved as it is. */
	if (!dir)
		*out = xstrdup(cwd);
	else if (op_ctx_realpath(ctx, dir, out, e) < 0)
		return err_wrap(e, "workspace");
	if (stat(*out, &st) == 0 && !S_ISDIR(st.st_mode)) {
		err_set(e, ERR_USAGE, "workspace %s: not a directory", *out);
		return err_hint(e, "give a directory to --workspace");
	}
	if (access(*out, R_OK | X_OK) < 0) {
		err_sys(e, errno, "workspace %s", *out);
		e->kind = ERR_USAGE;
		return err_hint(e, "choose a directory that you can read");
	}
	return 0;
}

static int make_wish(struct op_ctx *ctx, const struct sandbox_ask *ask,
		     struct sandbox_wish *w, struct err *e)
{
	const char *cwd;

	if (op_ctx_cwd(ctx, &cwd, e) < 0)
		return -1;
	w->cwd = xstrdup(cwd);
	w->host_tmp = ask->host_tmp;
	w->offline = ask->offline;
	if (resolve_list(ctx, "read-only", ask->read_only, &w->read_only, e) < 0 ||
	    resolve_list(ctx, "write-through", ask->write_through, &w->write_through, e) <
		    0)
		return -1;
	if (resolve_list(ctx, "hide", ask->hide, &w->hide, e) < 0)
		return -1;
	return sandbox_sockets(ctx, ask->sockets, &w->sockets, e);
}

static void start_judge(struct sandbox *s, const struct sandbox_ask *ask)
{
	judge_open(&s->judge, s->ctx, ask->no_policy ? NULL : s->policy.p, &s->t.rec);
	s->judge.points = ask->points ? (enum judge_points)(ask->points - 1)
				      : POINTS_RISKY;
	s->door.every_ms = ask->every_ms;
	if (ask->headless)
		judge_headless(&s->judge);
	if (ask->ask_socket)
		judge_by_socket(&s->judge);
}

static int prepare(struct sandbox *s, const struct sandbox_ask *ask,
		   const struct sandbox_wish *w, const char *workspace, struct err *e)
{
	const struct view_request vr = {
		.workspace = workspace,
		.cwd = w->cwd,
		.home = op_ctx_env(s->ctx, "HOME"),
		.state_dir = s->h->dir,
		.in_place = ask->in_place,
		.host_tmp = w->host_tmp,
		.read_only = w->read_only,
		.write_through = w->write_through,
		.hide = w->hide,
		.sockets = w->sockets,
	};
	AUTO_FREE char *options = sandbox_wish_encode(w);

	if (view_make(&vr, &s->v, e) < 0)
		return ask->in_place ? err_wrap(e, "--backend btrfs") : -1;
	s->v.offline = w->offline;
	if (txn_prepare(s->h, &s->v, ask->name, ask->argv, options, &s->t, e) < 0) {
		view_free(&s->v);
		return -1;
	}
	if (ask->in_place && inplace_begin(&s->t, e) < 0) {
		txn_abandon(&s->t);
		txn_close(&s->t);
		view_free(&s->v);
		return -1;
	}
	s->t.rec.atomic = ask->atomic;
	if (s->judge.policy)
		s->t.rec.policy = xstrdup(policy_hash(s->judge.policy));
	return 0;
}

static int load_policy(struct sandbox *s, const struct sandbox_ask *ask,
		       const char *workspace, struct err *e)
{
	if (ask->no_policy && ask->policy) {
		err_set(e, ERR_USAGE, "--policy and --no-policy contradict each other");
		return err_hint(e, "leave one of them out");
	}
	if (ask->no_policy)
		return 0;
	return ask->policy ? op_policy_load_file(s->ctx, ask->policy, &s->policy, e)
			   : op_policy_load(s->ctx, workspace, &s->policy, e);
}

/* The workspace as it is, not a layer over it. */
static int work_in_place(const struct home *h, const char *workspace,
			 struct sandbox_wish *w, struct err *e)
{
	if (inplace_check(workspace, w->read_only, e) < 0)
		return -1;
	if (path_within(h->dir, workspace)) {
		err_set(e, ERR_UNSUPPORTED,
			"--backend btrfs: %s holds stet's own state (%s)", workspace,
			h->dir);
		return err_hint(e, "work in a subvolume below it");
	}
	strv_push(&w->write_through, xstrdup(workspace));
	return 0;
}

int sandbox_open(struct op_ctx *ctx, const struct sandbox_ask *ask, struct sandbox *s,
		 struct err *e)
{
	*s = (struct sandbox){ .ctx = ctx, .t = { .lock = -1, .guard = -1 }, .ask = ask };
	if (resolve_workspace(ctx, ask->workspace, &s->workspace, e) < 0 ||
	    op_ctx_dir(ctx, &s->h, e) < 0 || load_policy(s, ask, s->workspace, e) < 0 ||
	    make_wish(ctx, ask, &s->wish, e) < 0 ||
	    (ask->in_place && work_in_place(s->h, s->workspace, &s->wish, e) < 0)) {
		sandbox_close(s);
		return -1;
	}
	start_judge(s, ask);
	return 0;
}

int sandbox_view_like(struct op_ctx *ctx, const struct home *h,
		      const struct txn_record *rec, struct view *v, struct err *e)
{
	struct view_request vr = { 0 };
	struct sandbox_wish w;
	int r;

	if (sandbox_wish_decode(rec->options, &w, e) < 0)
		return -1;
	vr.workspace = rec->workspace;
	vr.cwd = w.cwd;
	vr.in_place = txn_in_place(rec);
	vr.home = op_ctx_env(ctx, "HOME");
	vr.state_dir = h->dir;
	vr.host_tmp = w.host_tmp;
	vr.read_only = w.read_only;
	vr.write_through = w.write_through;
	vr.hide = w.hide;
	vr.sockets = w.sockets;
	vr.resume = rec;
	r = view_make(&vr, v, e);
	if (r == 0)
		v->offline = w.offline;
	sandbox_wish_free(&w);
	return r;
}

int sandbox_open_like(struct op_ctx *ctx, const struct txn_record *rec, const char *name,
		      char *const *argv, struct sandbox *s, struct err *e)
{
	const struct sandbox_ask ask = { .name = name, .argv = argv };

	*s = (struct sandbox){ .ctx = ctx, .t = { .lock = -1, .guard = -1 } };
	if (sandbox_wish_decode(rec->options, &s->wish, e) < 0)
		return -1;
	if (op_ctx_dir(ctx, &s->h, e) < 0 ||
	    prepare(s, &ask, &s->wish, rec->workspace, e) < 0) {
		sandbox_close(s);
		return -1;
	}
	start_judge(s, &ask);
	/* The contents of the layers were seen on the host then, not now. */
	s->t.rec.begin_ns = rec->begin_ns;
	s->t.exact = true;
	return 0;
}

int sandbox_end(struct sandbox *s, const char *reason, struct err *e)
{
	if (op_ctx_look(s->ctx, &s->h, e) < 0 || timeline_record(s->h, &s->t, e) < 0)
		return -1;
	return txn_end(s->h, &s->t, 0, reason, e);
}

/* While the sandbox is being built: the journal, and the transaction in it. */
static int record(void *arg, int64_t *id, struct err *e)
{
	struct sandbox *s = arg;

	if (op_ctx_look(s->ctx, &s->h, e) < 0 || timeline_record(s->h, &s->t, e) < 0)
		return -1;
	*id = s->t.rec.id;
	observer_begin(&s->observer, &s->t);
	return 0;
}

/* Somebody inside has a question, or an interval is over. */
static pid_t visit(void *arg, int conn)
{
	const struct sandbox *s = arg;
	char name[] = "stet", option[] = VISITOR_OPTION, id[24], sock[16] = "-";
	char *argv[] = { name, option, s->h->dir, id, sock, NULL };

	snprintf(id, sizeof(id), "%lld", (long long)s->t.rec.id);
	if (conn >= 0)
		snprintf(sock, sizeof(sock), "%d", conn);
	return serve_exec(argv, conn);
}

static void locate(struct sandbox *s, struct run_spec *spec)
{
	spec->view = &s->v;
	spec->cwd = s->v.cwd;
	spec->control = s->t.rec.dir;
	spec->since.tv_sec = s->t.rec.begin_ns / 1000000000;
	spec->since.tv_nsec = s->t.rec.begin_ns % 1000000000;
}

/* While the namespaces are being made: what is to be seen in them, and the layers. */
static int plan(void *arg, struct run_spec *spec, struct err *e)
{
	struct sandbox *s = arg;

	if (prepare(s, s->ask, &s->wish, s->workspace, e) < 0)
		return -1;
	s->ask = NULL;
	locate(s, spec);
	return 0;
}

/* A layer whose filesystem was unmounted meanwhile is missed only if it was used. */
static int run_in(struct sandbox *s, struct run_spec *spec, struct run_result *res,
		  struct err *e)
{
	int r;

	spec->report = s->ctx->report;
	r = runner_run(spec, res, e);
	if (r == 0) {
		s->ctx->mid_line = res->mid_line;
		s->untouched = res->untouched;
		txn_note_idle(&s->t.rec, s->untouched);
	}
	return r;
}

static int first_run(struct sandbox *s, struct run_spec *spec, struct run_result *res,
		     struct err *e)
{
	struct err ignored;
	int r;

	s->observer.side.fd = -1;
	r = run_in(s, spec, res, e);
	if (r < 0)
		observer_end(&s->observer);
	/* If nothing was executed, nothing is to be kept. */
	if (r < 0 && s->t.rec.id)
		txn_discard(s->h, &s->t, 125, "error", &ignored);
	else if (r < 0 && !s->ask)
		txn_abandon(&s->t);
	return r;
}

/* How often mounts may come and go while a sandbox is being built from what the table said. */
enum { TRIES = 8 };

/* Nothing was executed yet: it can be planned anew. */
static int plan_and_run(struct sandbox *s, struct run_spec *spec, struct run_result *res,
			struct err *e)
{
	const struct sandbox_ask *ask = s->ask;

	spec->plan = plan;
	spec->plan_arg = s;
	for (int left = TRIES;; left--) {
		AUTO_CLOSE int watch = mountinfo_watch();
		int r = first_run(s, spec, res, e);

		if (r == 0 || left == 1 || !mountinfo_changed(watch))
			return r;
		log_debug("%s; but a mount has come or gone: once more", e->msg);
		txn_close(&s->t);
		view_free(&s->v);
		s->t = (struct txn){ .lock = -1, .guard = -1 };
		s->ask = ask;
		*e = (struct err){ 0 };
	}
}

/* The view without the layers that are gone. */
static int view_again(struct sandbox *s, struct err *e)
{
	struct view v;

	if (sandbox_view_like(s->ctx, s->h, &s->t.rec, &v, e) < 0)
		return -1;
	v.stage = TAKE_PTR(s->v.stage);
	view_free(&s->v);
	s->v = v;
	return 0;
}

/* Runs another command in the same layers. */
static int run_again(struct sandbox *s, struct run_spec *spec, struct run_result *res,
		     struct err *e)
{
	for (int left = TRIES;; left--) {
		AUTO_CLOSE int watch = mountinfo_watch();
		int r = txn_use_again(&s->t.rec) ? view_again(s, e) : 0;

		locate(s, spec);
		if (r == 0)
			r = txn_again(&s->t.rec, &s->v, e);
		if (r == 0)
			r = run_in(s, spec, res, e);
		if (r == 0 || left == 1 || !mountinfo_changed(watch))
			return r;
		log_debug("%s; but a mount has come or gone: once more", e->msg);
		txn_note_idle(&s->t.rec, s->untouched);
		*e = (struct err){ 0 };
	}
}

int sandbox_run(struct sandbox *s, struct run_spec *spec, struct run_result *res,
		struct err *e)
{
	s->door.visit = visit;
	s->door.arg = s;
	spec->door = &s->door;
	spec->side = &s->observer.side;
	spec->offline = s->wish.offline;
	judge_attach(&s->judge, spec);
	if (s->used)
		return run_again(s, spec, res, e);
	s->used = true;
	spec->ready = record;
	spec->ready_arg = s;
	if (s->ask)
		return plan_and_run(s, spec, res, e);
	locate(s, spec);
	return first_run(s, spec, res, e);
}

void sandbox_close(struct sandbox *s)
{
	observer_end(&s->observer);
	judge_close(&s->judge);
	op_policy_free(&s->policy);
	txn_close(&s->t);
	view_free(&s->v);
	sandbox_wish_free(&s->wish);
	free(s->workspace);
}
