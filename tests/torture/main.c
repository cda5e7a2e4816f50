/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "journal/journal.h"
#include "torture.h"

/*
 * usage: torture list | torture SCENARIO KIND | torture SCENARIO #N:WHAT
 *
 * One line on stdout; what went wrong on stderr. STET_TORTURE_POINTS names a file that the
 * fault points passed are appended to; STET_TORTURE=full leaves nothing out, and
 * STET_TORTURE=quick takes two points of a kind.
 */

struct run {
	const struct scenario *sc;
	struct site site;
	char *old, *new; /* digests, without faults */
	unsigned long points, steps;
	unsigned kept; /* checkpoints there were before */
	char at[64];   /* the last point of the action */
	char hit[64];  /* the first one that a fault struck, if it was given by number */
	unsigned long runs, failed;
	bool quiet; /* the oracle itself is being tested */
};

static bool wanted(const char *how)
{
	const char *s = getenv("STET_TORTURE");

	return s && strcmp(s, how) == 0;
}

static bool full(void)
{
	return wanted("full");
}

/* --- one run --- */

/* Of the hosts, and of the uppers where they matter. */
static char *digest(const struct run *t)
{
	struct buf b = BUF_INIT;
	struct result r;
	bool killed;

	for (int i = 0; i < HOSTS; i++)
		digest_tree(t->site.host[i], &b);
	if (!t->sc->layers)
		return buf_take(&b);
	act(&t->site, ACT_LOOK, NULL, NULL, &r, &killed);
	for (int i = 0; i < HOSTS; i++)
		if (r.up[i][0])
			digest_tree(r.up[i], &b);
	return buf_take(&b);
}

/* A place on another filesystem than everything else. */
static bool make_other(struct site *s)
{
	static const char *const tops[] = { "/var/tmp", "/tmp", "/dev/shm" };
	struct stat here, there;
	char beside[260];

	/* As after the first such commit: the top of the tree keeps its time. */
	for (int i = 0; i < HOSTS; i++) {
		snprintf(beside, sizeof(beside), "%s/.stet-%u", s->host[i],
			 (unsigned)geteuid());
		if (stat(s->host[i], &here) < 0 || mkdir(beside, 0700) < 0 ||
		    utimensat(AT_FDCWD, s->host[i],
			      (struct timespec[]){ here.st_atim, here.st_mtim }, 0) < 0)
			die("cannot make %s", beside);
	}
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		if (stat(s->base, &here) < 0 || stat(tops[i], &there) < 0 ||
		    here.st_dev == there.st_dev)
			continue;
		snprintf(s->other, sizeof(s->other), "%s/stet-torture-%d", tops[i],
			 (int)getpid());
		tree_remove(s->other);
		return mkdir(s->other, 0700) == 0;
	}
	return false;
}

static bool make_site(const struct scenario *sc, struct site *s)
{
	bool good = true;

	tree_remove(s->base);
	if (mkdir(s->base, 0700) < 0)
		die("cannot make %s", s->base);
	for (int i = 0; i < HOSTS; i++) {
		snprintf(s->host[i], sizeof(s->host[i]), "%s/host%d", s->base, i);
		if (mkdir(s->host[i], 0755) < 0)
			die("cannot make %s", s->host[i]);
	}
	snprintf(s->state, sizeof(s->state), "%s/state", s->base);
	tree_host(s);
	if (sc->act == ACT_BEGIN_FOREIGN || sc->setup[0] == ACT_BEGIN_FOREIGN)
		good = tree_foreign(s);
	if (sc->setup[0] == ACT_BEGIN_CROSS)
		good = make_other(s);
	return good;
}

/* act() on a filesystem that lacks something, if the scenario says so. */
static unsigned long play(struct run *t, enum action a, const char *fault,
			  const char *skip, struct result *r, bool *killed)
{
	char both[200];

	if (!t->sc->lacks)
		return act(&t->site, a, fault, skip, r, killed);
	snprintf(both, sizeof(both), "%s%s%s", t->sc->lacks, fault ? "," : "",
		 fault ? fault : "");
	return act(&t->site, a, both, skip, r, killed);
}

/* The action itself; returns how many points it passed. */
static unsigned long attempt(struct run *t, const char *fault, const char *skip,
			     struct result *r)
{
	unsigned long n;
	bool killed;

	n = play(t, t->sc->act, fault, skip, r, &killed);
	snprintf(t->at, sizeof(t->at), "%s", act_last_point());
	snprintf(t->hit, sizeof(t->hit), "%s",
		 fault && *fault == '#' ? act_point(strtoul(fault + 1, NULL, 10)) : "");
	return n;
}

static void setup(struct run *t)
{
	struct result r;
	bool killed;

	make_site(t->sc, &t->site);
	for (size_t i = 0; t->sc->setup[i]; i++) {
		play(t, t->sc->setup[i], NULL, NULL, &r, &killed);
		if (r.rc < 0)
			die("%s: step %zu of the setup: %s", t->sc->name, i, r.e.msg);
	}
}

static bool fail(struct run *t, const char *fault, const char *why)
{
	t->failed++;
	if (!t->quiet && t->failed <= 5)
		fprintf(stderr, "%s %s at %s: %s\n", t->sc->name, fault, t->at, why);
	if (!t->quiet && getenv("STET_TORTURE_KEEP"))
		die("kept: %s", t->site.base);
	return false;
}

static bool fail_digest(struct run *t, const char *fault, const char *what,
			const char *want, const char *got)
{
	AUTO_BUF struct buf b = BUF_INIT;

	buf_addf(&b, "%s\n", what);
	digest_diff(want, got, 6, &b);
	return fail(t, fault, buf_str(&b));
}

/* Shown against the one it is nearer to. */
static bool fail_third(struct run *t, const char *fault, const char *got)
{
	AUTO_BUF struct buf a = BUF_INIT, b = BUF_INIT;
	bool old;

	digest_diff(t->old, got, 1000, &a);
	digest_diff(t->new, got, 1000, &b);
	old = a.len < b.len;
	return fail_digest(t, fault,
			   old ? "a third tree; against the old one"
			       : "a third tree; against the new one",
			   old ? t->old : t->new, got);
}

static bool step(struct run *t, const char *fault, enum action a, const char *what,
		 struct result *r)
{
	AUTO_BUF struct buf b = BUF_INIT;
	bool killed;

	play(t, a, NULL, NULL, r, &killed);
	if (r->rc == 0)
		return true;
	buf_addf(&b, "%s: %s (%s)", what, r->e.msg, r->e.hint);
	return fail(t, fault, buf_str(&b));
}

/* Takes it further: what is pending can be done, what is done can be taken back. */
static bool go_on(struct run *t, const char *fault, bool is_new)
{
	enum action next = is_new ? t->sc->back : t->sc->act;
	const char *want = is_new ? t->old : t->new;
	AUTO_FREE char *got = NULL;
	struct result r;

	if (next == ACT_NONE)
		return true;
	if (!step(t, fault, next, is_new ? "taking it back" : "doing it again", &r))
		return false;
	got = digest(t);
	if (strcmp(got, want) != 0)
		return fail_digest(t, fault,
				   is_new ? "taken back, it is not the old tree"
					  : "done again, it is not the new tree",
				   want, got);
	if (!step(t, fault, ACT_LOOK, "looking again", &r))
		return false;
	if (r.complaint[0])
		return fail(t, fault, r.complaint);
	return true;
}

/* What a crash of begin or prune left goes with the next prune. */
static bool clean_up(struct run *t, const char *fault)
{
	struct result r;

	if (!step(t, fault, ACT_PRUNE, "prune", &r) ||
	    !step(t, fault, ACT_LOOK, "looking", &r))
		return false;
	return r.orphans ? fail(t, fault, "prune left data that belongs to nobody")
			 : true;
}

/* One that was reported exists; one that was not does not, unless it was killed on the way. */
static bool judge_points(struct run *t, const char *fault, const struct result *said,
			 const struct result *r)
{
	unsigned min = t->kept, max = t->kept;
	char why[100];

	if (!t->sc->points)
		return true;
	if (!said->ran || strcmp(t->at, "journal.committed") == 0 ||
	    strcmp(t->hit, "journal.committed") == 0) {
		min = min < t->sc->points ? min : t->sc->points;
		max = max > t->sc->points ? max : t->sc->points;
	} else if (said->rc == 0) {
		min = max = t->sc->points;
	}
	max += t->sc->spare;
	if (r->points >= min && r->points <= max)
		return true;
	snprintf(why, sizeof(why), "%u checkpoints, not %u to %u", r->points, min, max);
	return fail(t, fault, why);
}

/* Is the transaction where the action leads to? A fork that did not get to its end holds all. */
static bool is_after(const struct scenario *sc, int state)
{
	return state == sc->after || (sc->act == ACT_FORK && state == TXN_ACTIVE);
}

/* Journal and tree must tell the same story. @said: what the action itself returned. */
static bool judge(struct run *t, const char *fault, const struct result *said,
		  bool recovered, const char *got)
{
	bool is_old = strcmp(got, t->old) == 0, is_new = strcmp(got, t->new) == 0;
	struct result r;
	char why[200];

	if (!is_old && !is_new)
		return fail_third(t, fault, got);
	if (!step(t, fault, ACT_LOOK, "looking", &r))
		return false;
	if (r.complaint[0])
		return fail(t, fault, r.complaint);
	/* One that was interrupted is frozen before it is committed. */
	if (r.state != t->sc->before && !is_after(t->sc, r.state) &&
	    !(t->sc->before == TXN_ACTIVE && r.state == TXN_FROZEN)) {
		snprintf(why, sizeof(why), "its state is %d", r.state);
		return fail(t, fault, why);
	}
	if (t->sc->before != t->sc->after && strcmp(t->old, t->new) != 0 &&
	    is_after(t->sc, r.state) != is_new) {
		snprintf(why, sizeof(why), "the tree is %s, but its state %d",
			 is_new ? "new" : "old", r.state);
		return fail(t, fault, why);
	}
	if (!judge_points(t, fault, said, &r))
		return false;
	if (said->ran && said->rc == 0 && !(is_new && r.state == t->sc->after))
		return fail(t, fault, "success was reported, but it is not done");
	if (said->ran && said->rc < 0 && r.state == t->sc->after &&
	    t->sc->before != t->sc->after && !recovered &&
	    !strstr(t->at, "journal.committed") && !strchr(fault, '+') && !t->quiet &&
	    getenv("STET_TORTURE_STRICT"))
		return fail(t, fault, "a failure was reported, but it is done");
	if (r.orphans && t->sc->act != ACT_PRUNE && t->sc->act != ACT_DISCARD &&
	    t->sc->before != -1)
		return fail(t, fault, "data was left that belongs to nobody");
	if (r.orphans && !clean_up(t, fault))
		return false;
	is_new = t->sc->before == t->sc->after ? is_new : is_after(t->sc, r.state);
	return go_on(t, fault, is_new);
}

/* After the fault: recover, look, recover again, go on. */
static bool oracle(struct run *t, const char *fault, const struct result *said)
{
	AUTO_FREE char *got = NULL, *again = NULL;
	struct result r;
	bool recovered;

	t->runs++;
	if (said->crashed)
		return fail(t, fault, "it crashed");
	if (!step(t, fault, ACT_RECOVER, "recovery", &r))
		return false;
	recovered = r.recovered > 0;
	got = digest(t);
	if (!step(t, fault, ACT_RECOVER, "second recovery", &r))
		return false;
	if (r.recovered)
		return fail(t, fault, "the second recovery found something to do");
	again = digest(t);
	if (strcmp(got, again) != 0)
		return fail_digest(t, fault, "the second recovery changed something", got,
				   again);
	return judge(t, fault, said, recovered, got);
}

/* --- sweeps --- */

/* Once without faults: the two trees, and how many points there are. */
static void learn(struct run *t)
{
	AUTO_FREE char *built = NULL;
	struct result r;
	bool killed;

	setup(t);
	t->old = digest(t);
	act(&t->site, ACT_LOOK, NULL, NULL, &r, &killed);
	t->kept = r.points;
	t->points = attempt(t, NULL, NULL, &r);
	if (r.rc < 0)
		die("%s: %s (%s)", t->sc->name, r.e.msg, r.e.hint);
	t->new = digest(t);
	t->steps = r.steps;
	if (!oracle(t, "none", &r))
		return;
	setup(t);
	built = digest(t);
	if (strcmp(built, t->old) != 0)
		fail_digest(t, "none", "two builds differ", t->old, built);
}

/* Returns false when the run had fewer points than @last: nothing fired. */
static bool one(struct run *t, const char *fault, unsigned long last)
{
	struct result r;

	setup(t);
	if (attempt(t, fault, NULL, &r) < last)
		return false;
	oracle(t, fault, &r);
	return true;
}

/*
 * In short: about @runs of the points, not the same ones as root and as a user, nor for
 * every kind. In full: all.
 */
static void sweep(struct run *t, const char *kind, unsigned long runs)
{
	bool dead = strcmp(kind, "dead") == 0;
	unsigned long stride = full() ? 1 : 1 + t->points / (wanted("quick") ? 2 : runs);
	unsigned long first = (strlen(kind) + (geteuid() != 0) * stride / 2) % stride;
	char fault[64];

	for (unsigned long n = 1 + first; n; n += stride) {
		snprintf(fault, sizeof(fault), dead ? "#%lu+:EIO" : "#%lu:%s", n, kind);
		if (!one(t, fault, n))
			break;
	}
}

/* The reversal of a failed operation fails in its turn, or is killed. */
static void sweep_twice(struct run *t, unsigned long stride)
{
	char fault[64];

	unsigned long n = 1 + stride / 2;

	/* The very last, too: what was done to the end and yet reported as failed. */
	for (; n < t->points + stride; n += stride)
		for (unsigned long m = 1;; m += 1 + stride / 3) {
			unsigned long at = n < t->points ? n : t->points;

			snprintf(fault, sizeof(fault), "#%lu:EIO,#%lu:%s", at, at + m,
				 (at + m) % 2 ? "EIO" : "kill");
			if (!one(t, fault, at + m))
				break;
		}
}

/* Killed, and recovery killed (or failing) at every step of its own. */
static void sweep_recover(struct run *t, unsigned long stride)
{
	char fault[64], second[64], both[140];
	struct result r;
	bool killed;

	for (unsigned long n = 1 + stride / 2; n <= t->points; n += stride)
		for (unsigned long m = 1;; m += 1 + stride / 3) {
			snprintf(fault, sizeof(fault), "#%lu:kill", n);
			snprintf(second, sizeof(second), "#%lu:%s", m,
				 m % 4 == 1 ? "EIO" : "kill");
			snprintf(both, sizeof(both), "%s then %s", fault, second);
			setup(t);
			attempt(t, fault, NULL, &r);
			if (play(t, ACT_RECOVER, second, NULL, &r, &killed) < m)
				break;
			r.ran = false; /* what recovery says is not judged */
			oracle(t, both, &r);
		}
}

static void run_kind(struct run *t, const char *kind)
{
	unsigned long many = full() ? 1 + t->points / 20 : 1 + t->points / 3;

	if (*kind == '#') /* one run, for looking into it */
		one(t, kind, 0);
	else if (strcmp(kind, "twice") == 0)
		sweep_twice(t, many);
	else if (strcmp(kind, "recover") == 0)
		sweep_recover(t, many);
	else if (strcmp(kind, "kill") == 0)
		sweep(t, kind, 75);
	else if (strcmp(kind, "EIO") == 0)
		sweep(t, kind, 40);
	else
		sweep(t, kind, 8);
}

/* --- the oracle must be able to fail --- */

/* Was it noticed, by the commit itself or by us? */
static bool broken(struct run *t, const char *fault, const char *point, unsigned long n)
{
	unsigned long before = t->failed;
	struct result r;
	char skip[64];

	snprintf(skip, sizeof(skip), "%s:%lu", point, n);
	setup(t);
	attempt(t, fault, skip, &r);
	oracle(t, skip, &r);
	return t->failed > before || (!fault && r.rc < 0);
}

/* Steps left out, records left out, a reversal left out: all must be noticed. */
static int run_broken(struct run *t)
{
	unsigned long missed = 0;
	char fault[64];

	learn(t);
	t->quiet = true;
	for (unsigned long n = 1; n <= t->steps; n += full() ? 1 : 3) {
		if (broken(t, NULL, "apply.forward", n))
			continue;
		fprintf(stderr, "step %lu left out was not noticed\n", n);
		missed++;
	}
	snprintf(fault, sizeof(fault), "#%lu:EIO", t->points - 20);
	missed += !broken(t, fault, "operate.reverse", 1);
	missed += !broken(t, fault, "apply.backward", t->steps / 2);
	/* That it begins. (That it has ended need not be recorded: recovery finds out.) */
	missed += !broken(t, NULL, "journal.commit", 1);
	printf("broken commit: %lu steps and 3 others left out, %lu not noticed\n",
	       t->steps, missed);
	return missed ? 1 : 0;
}

static void append_points(void)
{
	AUTO_BUF struct buf b = BUF_INIT;
	const char *to = getenv("STET_TORTURE_POINTS");
	AUTO_CLOSE int fd = to ? open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
			       : -1;

	act_points(&b);
	if (to && (fd < 0 || write(fd, buf_str(&b), b.len) != (ssize_t)b.len))
		die("cannot write %s", to);
}

static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < nscenarios; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	die("no scenario %s", name);
}

static int list(void)
{
	for (size_t i = 0; i < nscenarios; i++) {
		AUTO_FREE char *copy = xstrdup(scenarios[i].sweeps);
		char *rest = copy, *word;

		while ((word = strsep(&rest, " ")))
			printf("%s %s\n", scenarios[i].name, word);
	}
	puts("commit broken");
	return 0;
}

int main(int argc, char **argv)
{
	const char *where = getenv("STET_TORTURE_DIR");
	struct run t = { 0 };
	int r = 0;

	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc != 3)
		die("usage: torture list | torture SCENARIO KIND");
	t.sc = find(argv[1]);
	t.site.watch = t.sc->watch ? t.sc->watch : 1;
	snprintf(t.site.base, sizeof(t.site.base), "%s/stet-torture-%d",
		 where ? where : "/dev/shm", (int)getpid());
	umask(022);
	if (!make_site(t.sc, &t.site)) {
		printf("%s %s: impossible here: no second %s\n", argv[1], argv[2],
		       t.sc->setup[0] == ACT_BEGIN_CROSS ? "filesystem" : "group");
	} else if (strcmp(argv[2], "broken") == 0) {
		r = run_broken(&t);
	} else {
		learn(&t);
		if (!t.failed)
			run_kind(&t, argv[2]);
		printf("%s %s: %lu points, %lu runs, %lu failed\n", argv[1], argv[2],
		       t.points, t.runs, t.failed);
		r = t.failed != 0;
	}
	append_points();
	tree_remove(t.site.base);
	if (t.site.other[0])
		tree_remove(t.site.other);
	return r;
}
