/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/judge.h"
#include "policy/tool.h"
#include "session/judge.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "gate/caller_side.h"
#include "session/asking.h"
#include "timeline/timeline.h"
#include "txn/home.h"

enum { COMMAND_MAX = 4096 };
/* A question that was answered with no is not put again so soon. */
enum { AGAIN_MS = 3000 };

/*
 * How much a call says about what comes after it. Agents have a shell do what they are told to, and
 * start other programs (git rev-parse, rg) to look around for themselves.
 */
enum rank { RANK_PROGRAM, RANK_TEXT, RANK_RULE };

static bool is_text(const struct exec_facts *f)
{
	const char *slash = f->exe ? strrchr(f->exe, '/') : NULL;
	const char *name = slash ? slash + 1 : f->exe;
	size_t len;

	if (!name || f->argc < 3 || !(policy_runs(policy_builtin(), name) & RUNS_TEXT))
		return false;
	/* -c, -lc; a hook that tells us of a call is not that call. */
	len = strlen(f->argv[1]);
	return f->argv[1][0] == '-' && f->argv[1][len - 1] == 'c' &&
	       !strstr(f->argv[2], "stet checkpoint");
}

/* In PID 1 of the sandbox: nothing but memory is to be had. */
static int judge(void *arg, const struct exec_facts *f, struct verdict *v)
{
	struct judge *j = arg;

	policy_judge_exec(j->policy, f, v);
	if (v->kind == VERDICT_CHECKPOINT && j->points == POINTS_NONE)
		v->kind = VERDICT_ALLOW;
	if (v->kind < VERDICT_CHECKPOINT && j->points == POINTS_CALLS &&
	    f->flags & EXE_CALL &&
	    checkpoint_rate_keeps(&j->pace, clock_ms(CLOCK_MONOTONIC), is_text(f)))
		*v = (struct verdict){ .kind = VERDICT_CHECKPOINT };
	return 0;
}

static char *command_of(const struct exec_facts *f)
{
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < f->argc && b.len < COMMAND_MAX; i++)
		buf_addf(&b, "%s%s", i ? " " : "", f->argv[i]);
	if (b.len > COMMAND_MAX)
		buf_truncate(&b, COMMAND_MAX);
	return buf_take(&b);
}

/* Nothing was changed yet: not even a directory is to be made for it. */
static bool untouched(const struct txn_record *r)
{
	for (size_t i = 0; i < r->nlayers; i++) {
		AUTO_FREE char *up = xasprintf("%s/up", r->layers[i].dir);
		AUTO_CLOSEDIR DIR *d = r->layers[i].kind == LAYER_OVERLAY ? opendir(up)
									  : NULL;
		struct dirent *de;

		while (d && (de = readdir(d)))
			if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
				return false;
	}
	return true;
}

/*
 * Checkpoints of calls may take a fiftieth of the time. What is not used is saved up, so that an
 * agent that thinks between its calls has one for each, dear as it may be, and a build has not.
 */
static bool has_credit(struct judge *j)
{
	enum { SHARE = 50, FIRST_MS = 150, MOST_MS = 3000 };
	int64_t now = clock_ms(CLOCK_MONOTONIC);

	if (!j->at)
		j->credit = FIRST_MS;
	else
		j->credit += (now - j->at) / SHARE;
	if (j->credit > MOST_MS)
		j->credit = MOST_MS;
	j->at = now;
	return j->credit > 0;
}

static void note_label(struct judge *j, int64_t seq, int rank, bool text)
{
	j->label_of = seq;
	j->label_rank = rank;
	j->label_text = text;
}

/*
 * Nothing has changed since the last checkpoint: it is the state before this call as well, and
 * named by what says more; of two that say as much, by the one that comes nearer to the change.
 */
static int label(struct judge *j, struct timeline *c, const struct exec_facts *f,
		 const struct ckpt_wish *w, int rank, struct err *e)
{
	const struct ckpt_records *all = timeline_all(c);
	const struct ckpt_record *last = all->n ? &all->v[all->n - 1] : NULL;
	struct ckpt_wish name = *w;
	bool text = is_text(f);

	if (!last || last->named || rank == RANK_PROGRAM)
		return 0;
	if (last->seq != j->label_of) {
		/* The agent has asked for it in its own words: this is what it meant. */
		if (strcmp(last->cause, "agent") != 0 || last->command)
			return 0;
		name.cause = last->cause;
	} else if (rank < j->label_rank) {
		return 0;
	} else if (!(f->flags & EXE_CALL) && j->label_text) {
		/* A part of the call: that says what it is for. */
		name.command = last->command;
		text = true;
	}
	note_label(j, last->seq, rank, text);
	return timeline_label(c, &name, e);
}

/*
 * For want of room the command goes on: it may be the one that makes room, and what it does is
 * captured all the same. Only the state before it cannot be had again, and that is said. For any
 * other reason it is denied, and that is said, too: the rule's own words would be misleading.
 */
static void tell_why(struct judge *j, const struct err *e)
{
	const struct audit_op o = { .event = "no-checkpoint",
				    .txn = j->rec->id,
				    .reason = e->msg };

	if (*j->no_point)
		return;
	snprintf(j->no_point, sizeof(j->no_point), "%s", e->msg);
	audit_op(home_books(&j->ctx->home), &o);
}

/* In our own process; the one that is to run is stopped. What a rule wants is made, if there is
 * room for it. */
static int before_call(void *arg, const struct exec_facts *f, const struct verdict *v)
{
	struct judge *j = arg;
	struct txn t = { .rec = *j->rec, .lock = -1 };
	AUTO_FREE char *command = command_of(f);
	const struct ckpt_wish w = { .cause = v->rule ? "risky" : "call",
				     .command = command,
				     .note = v->rule ? v->why : NULL };
	const struct ckpt_record *made;
	struct timeline *c = NULL;
	const int rank = v->rule ? RANK_RULE : is_text(f) ? RANK_TEXT : RANK_PROGRAM;
	struct home *h;
	struct err e;
	int r;

	if (untouched(j->rec) || (!has_credit(j) && !v->rule))
		return 0;
	r = op_ctx_look(j->ctx, &h, &e);
	if (r == 0)
		r = timeline_open(h, &t, true, &c, &e);
	if (r == 0)
		r = timeline_take(c, &w, &made, &e);
	if (r == 0 && made)
		note_label(j, made->seq, rank, is_text(f));
	else if (r == 0)
		label(j, c, f, &w, rank, &e);
	timeline_close(c);
	j->credit -= clock_ms(CLOCK_MONOTONIC) - j->at;
	if (r == 0)
		return 0;
	log_debug("no checkpoint: %s", e.msg);
	if (v->rule)
		tell_why(j, &e);
	return v->rule && e.sys != ENOSPC && e.sys != EDQUOT ? -1 : 0;
}

static bool agreed(const struct judge *j, const char *rule)
{
	for (size_t i = 0; rule && j->always && j->always[i]; i++)
		if (strcmp(j->always[i], rule) == 0)
			return true;
	return false;
}

static bool ask(void *arg, const struct exec_facts *f, const struct verdict *v,
		const struct ask_wait *w)
{
	struct judge *j = arg;
	const struct consent_question q = { f, v, j->rec->id, w->until };
	AUTO_FREE char *command = command_of(f);
	enum consent answer;

	if (agreed(j, v->rule))
		return true;
	/* A shell tries the next directory of PATH: the same command once more. */
	if (j->refused && strcmp(j->refused, command) == 0 &&
	    clock_ms(CLOCK_MONOTONIC) - j->refused_at < AGAIN_MS)
		return false;
	answer = j->by_socket ? asking_wait(j->rec->dir, &q, w)
			      : j->ctx->consent(j->ctx->consent_arg, &q);
	if (answer == CONSENT_ALWAYS && v->rule)
		strv_push(&j->always, xstrdup(v->rule));
	if (answer != CONSENT_NO)
		return true;
	free(j->refused);
	j->refused = TAKE_PTR(command);
	j->refused_at = clock_ms(CLOCK_MONOTONIC);
	return false;
}

enum { SEEN_MAX = 100 };

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void keep(struct judge *j, const struct exec_event *ev)
{
	struct redact red = { 0 };
	struct judged *k;

	if (j->nseen == SEEN_MAX) {
		j->more++;
		return;
	}
	j->seen = xrealloc(j->seen, (j->nseen + 1) * sizeof(*j->seen));
	k = &j->seen[j->nseen++];
	*k = (struct judged){ .verdict = ev->verdict->kind,
			      .outcome = ev->outcome,
			      .rule = copy(ev->verdict->rule),
			      .why = copy(ev->verdict->why),
			      .hint = copy(ev->verdict->hint) };
	for (size_t i = 0; i < ev->facts->argc; i++) {
		struct buf b = BUF_INIT;

		redact_word(&red, ev->facts->argv[i], strlen(ev->facts->argv[i]), &b);
		strv_push(&k->argv, xstrdup(buf_str(&b)));
		buf_free(&b);
	}
}

/* In our own process, after the fact: the command does not wait for it. */
static void observe(void *arg, const struct exec_event *ev)
{
	struct judge *j = arg;
	const struct exec_facts *f = ev->facts;
	const struct audit_exec x = {
		.txn = j->rec->id,
		.pid = ev->pid,
		.ppid = ev->ppid,
		.exe = f->exe,
		.cwd = f->cwd,
		.argv = f->argv,
		.argc = f->argc,
		.argc_all = ev->argc,
		.verdict = verdict_name(ev->verdict->kind),
		.rule = ev->verdict->rule,
		.outcome = exec_outcome_name(ev->outcome),
	};

	audit_exec(home_books(&j->ctx->home), &x);
	j->execs++;
	if (ev->verdict->kind != VERDICT_ALLOW || ev->outcome == EXEC_UNVERIFIED)
		keep(j, ev);
}

static void gather(void *arg, bool begin)
{
	struct judge *j = arg;

	audit_gather(home_books(&j->ctx->home), begin);
}

static void ended(void *arg, pid_t pid, int status)
{
	struct judge *j = arg;

	audit_exit(home_books(&j->ctx->home), j->rec->id, pid, status);
}

void judged_free(struct judged *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].rule);
		free(v[i].why);
		free(v[i].hint);
		strv_free(v[i].argv);
	}
	free(v);
}

void judge_open(struct judge *j, struct op_ctx *ctx, const struct policy *p,
		const struct txn_record *rec)
{
	*j = (struct judge){
		.ctx = ctx,
		.policy = p,
		.rec = rec,
		.calls = { .ctx = j,
			   .judge = judge,
			   .before_call = before_call,
			   .ask = ctx->consent ? ask : NULL,
			   .gather = gather,
			   .observe = observe,
			   .ended = ended },
	};
}

void judge_close(struct judge *j)
{
	strv_free(j->always);
	j->always = NULL;
	free(j->refused);
	j->refused = NULL;
	judged_free(j->seen, j->nseen);
	j->seen = NULL;
	j->nseen = 0;
}

void judge_by_socket(struct judge *j)
{
	j->by_socket = true;
	j->calls.ask = ask;
}

void judge_headless(struct judge *j)
{
	j->calls.ask = NULL;
}

void judge_attach(struct judge *j, struct run_spec *spec)
{
	if (j->policy)
		spec->gate = &j->calls;
}
