/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "commit/commit.h"
#include "commit/recover.h"
#include "commit/undo.h"
#include "commit/verify.h"
#include "host/after_commit.h"
#include "host/base.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "snap/store.h"
#include "sys/mountinfo.h"
#include "timeline/timeline.h"
#include "torture.h"
#include "txn/begin.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/home.h"
#include "txn/marks.h"
#include "txn/prune.h"

void die(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	fputs("torture: ", stderr);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, " (errno %d: %s)\n", saved, strerror(saved));
	va_end(ap);
	exit(2);
}

/* --- what a child does --- */

/*
 * What was made before must be older than the transaction by the coarse clock, which lags
 * behind the fine one that the kernel may stamp with.
 */
static void next_tick(void)
{
	struct timespec fine, coarse;

	clock_gettime(CLOCK_REALTIME, &fine);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
	while (coarse.tv_sec < fine.tv_sec ||
	       (coarse.tv_sec == fine.tv_sec && coarse.tv_nsec <= fine.tv_nsec));
}

int act_view(struct home *h, const struct site *s, enum action a, struct view *v,
	     struct err *e)
{
	struct view_layer *layers = xcalloc(HOSTS + 1, sizeof(*layers));
	struct mountinfo mi;

	*v = (struct view){ .workspace = xstrdup(s->host[0]),
			    .layers = layers,
			    .nlayers = HOSTS + 1 };
	if (mountinfo_read(&mi) < 0)
		die("no mount table");
	for (size_t i = 0; i < HOSTS; i++) {
		layers[i] = (struct view_layer){ .kind = LAYER_OVERLAY,
						 .host = xstrdup(s->host[i]),
						 .lax_owner = a == ACT_BEGIN_FOREIGN };
		if (a == ACT_BEGIN_CROSS)
			layers[i].store = xstrdup(s->other);
		else if (store_for(&mi, h->dir, s->host[i], &layers[i].store, e) < 0)
			return -1;
	}
	layers[HOSTS] = (struct view_layer){ .kind = LAYER_SCRATCH,
					     .host = xstrdup("/tmp"),
					     .store = xstrdup(layers[0].store) };
	return 0;
}

static int do_begin(struct home *h, const struct site *s, enum action a, struct txn *t,
		    struct err *e)
{
	char word[] = "command";
	char *const argv[] = { word, NULL };
	struct view v;

	next_tick();
	if (act_view(h, s, a, &v, e) < 0 ||
	    txn_prepare(h, &v, NULL, argv, "{}", t, e) < 0)
		return -1;
	if (timeline_record(h, t, e) == 0)
		return 0;
	txn_close(t);
	return -1;
}

static int do_another(struct home *h, const struct site *s, struct err *e)
{
	struct txn t = { .lock = -1 };

	if (do_begin(h, s, ACT_BEGIN, &t, e) < 0)
		return -1;
	return txn_end(h, &t, 0, "exit", e) < 0 ? -1 : txn_rollback(h, &t, e);
}

static int do_resume(struct home *h, const struct site *s, struct txn *t, struct err *e)
{
	struct view v;

	if (act_view(h, s, ACT_RESUME, &v, e) < 0)
		return -1;
	for (size_t i = 0; i < t->rec.nlayers; i++)
		v.layers[i].dir = xstrdup(t->rec.layers[i].dir);
	return txn_resume(h, &v, t, e);
}

static int do_fill(struct txn *t, enum tree_size size)
{
	char *up[HOSTS];

	for (size_t i = 0; i < HOSTS; i++)
		up[i] = xasprintf("%s/up", t->rec.layers[i].dir);
	tree_upper(up, size);
	return 0;
}

static int do_more(struct txn *t, enum action a)
{
	AUTO_FREE char *up = xasprintf("%s/up", t->rec.layers[0].dir);

	if (a == ACT_NEWER)
		tree_newer(up);
	else
		tree_more(up, a == ACT_MORE ? 1 : 2);
	return 0;
}

static int do_to_disk(const struct txn *t)
{
	AUTO_CLOSE int ticket = txn_to_disk_begin(&t->rec);

	txn_to_disk(&t->rec, ticket);
	return txn_on_disk(&t->rec) ? 0 : -1;
}

static int find_commit(void *id, struct op_record *r, struct err *e)
{
	(void)e;
	if (r->kind == OP_COMMIT)
		*(int64_t *)id = r->id;
	return r->kind == OP_COMMIT;
}

static int do_touch(struct home *h, const struct site *s, const struct txn *t,
		    struct err *e)
{
	int64_t op = 0;

	if (journal_op_each(h->journal, t->rec.id, find_commit, &op, e) < 0 ||
	    after_commit_note(h, t, op, e) < 0)
		return -1;
	tree_touch(s);
	return 0;
}

static int do_end(struct home *h, struct txn *t, struct err *e)
{
	return txn_end(h, t, 0, "exit", e) < 0
		       ? -1
		       : txn_note_base(t, &(struct base_wish){ 0 }, e);
}

static int do_operate(struct home *h, const struct site *s, struct txn *t, enum action a,
		      struct result *r)
{
	static const char *const chosen[] = { "plain/modified", "plain/deleted",
					      "new/file",	"plain/chm*",
					      "deep-new/level", "ro",
					      "opaque/new",	"dir-file",
					      "anchor*",	"full-deleted/sub",
					      "pair-new1",	"file-dir/in",
					      "over-exact",	NULL };
	const char *paths[ARRAY_SIZE(chosen)] = { 0 };
	const char *const all[] = { s->host[0], NULL };
	struct commit_wish w = { .accept_risky = true };
	struct commit_result res = { 0 };
	struct err *e = &r->e;
	int x;

	for (size_t i = 0; chosen[i]; i++)
		paths[i] = xasprintf("%s/%s", s->host[0], chosen[i]);
	if (a == ACT_UNDO_PART || a == ACT_COMMIT_MERGE_PART)
		paths[2] = NULL;
	if (a == ACT_COMMIT_PART || a == ACT_UNDO_PART || a == ACT_COMMIT_MERGE_PART)
		w.paths = paths;
	w.merge = a == ACT_COMMIT_MERGE || a == ACT_COMMIT_MERGE_PART;
	if (a == ACT_COMMIT_OURS || a == ACT_UNDO_OURS || a == ACT_REDO_OURS)
		w.ours = all;
	if (a == ACT_UNDO_THEIRS)
		w.theirs = all;
	if (a == ACT_REDO || a == ACT_REDO_OURS)
		x = txn_redo(h, t, &w, &res, e);
	else if (a == ACT_UNDO || a == ACT_UNDO_PART || a == ACT_UNDO_OURS ||
		 a == ACT_UNDO_THEIRS)
		x = txn_undo(h, t, 0, &w, &res, e);
	else
		x = txn_commit(h, t, &w, &res, e);
	r->steps = res.changes;
	if (x < 0 && res.conflicts.n)
		err_hint(e, "%s: %s", res.conflicts.v[0].path, res.conflicts.v[0].what);
	return x;
}

static void complain(void *arg, const char *what)
{
	struct result *r = arg;

	if (strstr(what, "to no transaction"))
		r->orphans++;
	else if (!r->complaint[0])
		snprintf(r->complaint, sizeof(r->complaint), "%s", what);
}

static int do_look(struct home *h, const struct site *s, struct result *r)
{
	struct txn t = { .lock = -1 };
	unsigned checked;

	r->state = -1;
	if (journal_txn_get(h->journal, s->watch, &t.rec, &r->e) == 0) {
		r->state = (int)t.rec.state;
		check_look(h, &t, r);
	} else if (r->e.kind != ERR_USAGE) {
		return -1;
	}
	return txn_verify(h, complain, r, &checked, &r->e);
}

static int child(const struct site *s, enum action a, struct result *r)
{
	struct txn t = { .lock = -1 };
	struct prune_result pr;
	struct home h;

	if (home_open(&h, &r->e) < 0)
		return -1;
	if (a == ACT_BEGIN || a == ACT_BEGIN_FOREIGN || a == ACT_BEGIN_CROSS)
		return do_begin(&h, s, a, &t, &r->e);
	if (a == ACT_RECOVER)
		return txn_recover(&h, &r->recovered, &r->e);
	if (a == ACT_ANOTHER)
		return do_another(&h, s, &r->e);
	if (a == ACT_PRUNE)
		return txn_prune(&h, 0, false, &pr, &r->e);
	if (a == ACT_LOOK)
		return do_look(&h, s, r);
	if (txn_find(&h, "1", "/", &t, &r->e) < 0)
		return -1;
	switch (a) {
	case ACT_FILL:
		return do_fill(&t, TREE_FULL);
	case ACT_FILL_SMALL:
		return do_fill(&t, TREE_SMALL);
	case ACT_FILL_WIDE:
		return do_fill(&t, TREE_WIDE);
	case ACT_FILL_GROUP:
		return do_fill(&t, TREE_GROUP);
	case ACT_EDIT_AGAIN:
		tree_edit_again(s);
		return 0;
	case ACT_EDIT:
		tree_edit(s);
		return 0;
	case ACT_TOUCH:
		return do_touch(&h, s, &t, &r->e);
	case ACT_END:
		return do_end(&h, &t, &r->e);
	case ACT_TO_DISK:
		return do_to_disk(&t);
	case ACT_ROLLBACK:
		return txn_rollback(&h, &t, &r->e);
	case ACT_DISCARD:
		return txn_discard(&h, &t, 0, "exit", &r->e);
	case ACT_RESUME:
		return do_resume(&h, s, &t, &r->e);
	case ACT_MORE:
	case ACT_MORE2:
	case ACT_NEWER:
		return do_more(&t, a);
	case ACT_CHECKPOINT:
	case ACT_CHECKPOINT_THIN:
	case ACT_GO:
	case ACT_GO2:
	case ACT_RESTORE:
	case ACT_FORK:
		return check_act(&h, s, &t, a, &r->e);
	default:
		return do_operate(&h, s, &t, a, r);
	}
}

/* --- the child --- */

static int log_fd = -1;
static char last_point[64];
static struct buf
	passed; /* the names that the last child has passed, one after the other */
static struct buf all_points;

/* How many lines the log has; keeps the names. */
static unsigned long read_log(void)
{
	AUTO_BUF struct buf text = BUF_INIT;
	unsigned long n = 0;
	char chunk[65536];
	ssize_t got;

	last_point[0] = '\0';
	buf_reset(&passed);
	lseek(log_fd, 0, SEEK_SET);
	while ((got = read(log_fd, chunk, sizeof(chunk))) > 0)
		buf_add(&text, chunk, (size_t)got);
	if (!text.len)
		return 0;
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) && *line; n++) {
		AUTO_FREE char *known = NULL;
		const char *name = strchr(line, ' ') + 1;

		buf_add(&passed, name, strlen(name) + 1);
		if (strcmp(name, last_point) == 0)
			continue;
		snprintf(last_point, sizeof(last_point), "%s", name);
		known = xasprintf("\n%s\n", name);
		if (!strstr(buf_str(&all_points), known))
			buf_addf(&all_points, "%s%s\n", all_points.len ? "" : "\n", name);
	}
	return n;
}

void act_points(struct buf *out)
{
	if (all_points.len)
		buf_adds(out, buf_str(&all_points) + 1);
}

const char *act_point(unsigned long n)
{
	const char *p = buf_str(&passed), *end = p + passed.len;

	while (p < end && --n)
		p += strlen(p) + 1;
	return p < end ? p : "";
}

const char *act_last_point(void)
{
	return last_point;
}

static void set_environment(const struct site *s, const char *fault, const char *skip)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", log_fd);
	setenv("STET_STATE_DIR", s->state, 1);
	setenv("STET_FAULT_LOG", number, 1);
	if (fault)
		setenv("STET_FAULT", fault, 1);
	if (skip)
		setenv("STET_FAULT_SKIP", skip, 1);
}

unsigned long act(const struct site *s, enum action a, const char *fault,
		  const char *skip, struct result *r, bool *killed)
{
	static struct result *shared;
	int status;
	pid_t pid;

	if (!shared) {
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		log_fd = memfd_create("points", MFD_CLOEXEC);
		if (shared == MAP_FAILED || log_fd < 0)
			die("no memory");
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		fcntl(log_fd, F_SETFL, O_APPEND);
	}
	*shared = (struct result){ 0 };
	if (ftruncate(log_fd, 0) < 0)
		die("no log");
	pid = fork();
	if (pid == 0) {
		set_environment(s, fault, skip);
		alarm(60);
		shared->rc = child(s, a, shared);
		shared->ran = true;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die("no child");
	/* What it has started itself must not outlive it, or recovery would find it at work. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	*r = *shared;
	*killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (!*killed && (!WIFEXITED(status) || WEXITSTATUS(status) || !r->ran)) {
		r->rc = -1;
		r->ran = false;
		r->crashed = status;
	}
	return read_log();
}
