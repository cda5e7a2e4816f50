/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "limits/cgroup.h"
#include "limits/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "limits/limits.h"
#include "limits/scan.h"
#include "sys/ns.h"
#include "sys/packet.h"

/*
 * How often it looks: this often, but a look may cost only a small part of the time between
 * two of them, so that thousands of processes or files do not make it a load of its own.
 */
enum {
	PROC_EVERY_US = 25000,
	PROC_EVERY_MAX_US = 400000,
	DISK_EVERY_US = 100000,
	DISK_EVERY_MAX_US = 800000,
	COST_SHARE = 15,
	QUICK_ENTRIES = 2000, /* looked at in our own process rather than in a new one */
	NPROC_SLACK = 16,     /* above the limit, so that passing it is seen and named */
	LAST_LOOK_MS = 30000,
};

const char *run_limit_name(enum run_limit l)
{
	static const char *const names[] = {
		[LIMIT_NONE] = "none",	   [LIMIT_CPU] = "cpu",
		[LIMIT_MEMORY] = "memory", [LIMIT_PIDS] = "pids",
		[LIMIT_DISK] = "disk",	   [LIMIT_FILE] = "file",
		[LIMIT_OUTPUT] = "output", [LIMIT_FILES] = "files",
	};

	return names[l];
}

/* Lowers a limit; what is lower already stays. */
static void lower(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)resource, &l) < 0)
		return;
	if (l.rlim_max > hard)
		l.rlim_max = hard;
	if (l.rlim_cur > soft)
		l.rlim_cur = soft;
	if (l.rlim_cur > l.rlim_max)
		l.rlim_cur = l.rlim_max;
	setrlimit((__rlimit_resource_t)resource, &l);
}

/*
 * The kernel lets a file grow to this and no further: one byte more than is allowed, so that who
 * tries is seen even if his shell goes on. What was larger before has another size.
 */
static uint64_t file_mark(const struct run_limits *l)
{
	return l->file && l->file < RLIM_INFINITY - 1 ? l->file + 1 : 0;
}

void limits_apply(const struct run_limits *l, bool root)
{
	uint64_t file = l->file ? file_mark(l) : 0, s;

	/*
	 * A single file may exceed the limit on all files a little, so that the watcher sees
	 * that the limit was exceeded.
	 */
	if (l->disk && (!file || l->disk + (1 << 20) < file))
		file = l->disk + (1 << 20);
	if (file)
		lower(RLIMIT_FSIZE, file, file);
	if (l->cpu_ms) {
		s = (uint64_t)l->cpu_ms / 1000 + 2;
		lower(RLIMIT_CPU, s, s + 1);
	}
	/* Counted within the user namespace that was just made; never held against root. */
	if (l->pids && !root)
		lower(RLIMIT_NPROC, (uint64_t)l->pids + NPROC_SLACK,
		      (uint64_t)l->pids + NPROC_SLACK);
	if (l->memory) {
		AUTO_CLOSE int fd = open("/proc/self/oom_score_adj",
					 O_WRONLY | O_CLOEXEC);

		/* Should the machine run out of memory between two looks: these first. */
		if (fd >= 0 && write(fd, "1000", 4) < 0)
			return;
	}
}

struct watch {
	const struct run_limits *l;
	const struct cgroup *g;
	const struct watch_dirs *dirs;
	int sock;   /* to the watcher; -1: it does not run */
	int victim; /* pidfd of PID 1; the caller's */
	/* Directories of the sandbox; -1: none, or not any more. Two lie in memory: /dev/shm,
	 * and the stage, a tmpfs of which /dev and the private /run are parts. */
	int proc, shm, stage;
	uint64_t memory_files; /* in these two before anything ran */
	uint64_t stage_bytes;  /* in the stage, at the same time */
	pid_t pid;
};

struct watch *watch_new(const struct run_limits *l, const struct cgroup *g,
			const struct watch_dirs *dirs)
{
	struct watch *w;

	if (!l->cpu_ms && !l->memory && !l->disk && !l->files && !l->pids && !l->file)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	*w = (struct watch){ .l = l,
			     .g = g,
			     .dirs = dirs,
			     .sock = -1,
			     .victim = -1,
			     .proc = -1,
			     .shm = -1,
			     .stage = -1 };
	return w;
}

static void forget_sandbox(struct watch *w)
{
	cleanup_close(&w->proc);
	cleanup_close(&w->shm);
	cleanup_close(&w->stage);
	w->proc = w->shm = w->stage = -1;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	forget_sandbox(w);
	cleanup_close(&w->sock);
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(w);
}

/* --- in the watcher --- */

/* A filesystem that holds layers, and how many inodes it had in use at the last look at all. */
enum { VOLUMES_MAX = 16 };
struct volume {
	int dir;
	uint64_t inodes;
};

struct looker {
	const struct watch *w;
	struct cgroup g;
	int sock, shm, stage, victim;
	struct proc_scan *procs;
	int64_t procs_at, disk_at, flood_at; /* µs */
	struct disk_use disk;
	struct volume volumes[VOLUMES_MAX];
	size_t nvolumes;
};

static int64_t next_look(int64_t began, int64_t least, int64_t most)
{
	int64_t now = clock_us(CLOCK_MONOTONIC), wait = (now - began) * COST_SHARE;

	return now + (wait < least ? least : wait > most ? most : wait);
}

static bool pass(struct limit_hit *hit, enum run_limit what, uint64_t used,
		 uint64_t allowed)
{
	if (!allowed || used <= allowed)
		return false;
	*hit = (struct limit_hit){ what, used, allowed };
	return true;
}

static uint64_t bytes_of(int dir)
{
	struct statvfs v;

	if (dir < 0 || fstatvfs(dir, &v) < 0 || v.f_blocks < v.f_bfree)
		return 0;
	return (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
}

/* Bytes of files in memory that have names. */
static uint64_t memory_bytes(const struct looker *k)
{
	uint64_t stage = bytes_of(k->stage), before = k->w->stage_bytes;

	return bytes_of(k->shm) + (stage > before ? stage - before : 0);
}

static bool look_at_procs(struct looker *k, struct limit_hit *hit)
{
	const struct run_limits *l = k->w->l;
	const struct cgroup *g = &k->g;
	uint64_t files;
	struct proc_use u;

	if (cgroup_hit(g, l, hit))
		return true;
	if (!k->procs || proc_scan_look(k->procs, &u) < 0)
		return false;
	if (pass(hit, LIMIT_PIDS, u.pids, (uint64_t)l->pids) ||
	    pass(hit, LIMIT_CPU, u.ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK),
		 (uint64_t)l->cpu_ms))
		return true;
	if (!l->memory || (g->path && g->memory))
		return false;
	/* The sum counts shared pages several times: cheap, and enough if it is low. */
	files = memory_bytes(k);
	if (u.rss + files <= l->memory)
		return false;
	return pass(hit, LIMIT_MEMORY, proc_scan_memory(k->procs, files), l->memory);
}

/* 0 where the filesystem makes them as they are needed, and does not tell. */
static uint64_t inodes_of(int dir)
{
	struct statvfs v;

	return dir < 0 || fstatvfs(dir, &v) < 0 || v.f_files < v.f_ffree
		       ? 0
		       : v.f_files - v.f_ffree;
}

static uint64_t memory_files(const struct looker *k)
{
	return inodes_of(k->shm) + inodes_of(k->stage);
}

static void measure_all(const struct watch *w, uint64_t max, struct disk_use *u)
{
	const struct watch_dirs *dirs = w->dirs;

	*u = (struct disk_use){ .mark = file_mark(w->l), .most = w->l->files };
	for (size_t i = 0; i < dirs->n && !u->cut && !disk_is_full(u); i++) {
		if (i + dirs->ncopies == dirs->n)
			u->mark = 0;
		disk_measure(dirs->v[i], max, u);
	}
}

static bool judge_disk(const struct run_limits *l, const struct disk_use *u,
		       struct limit_hit *hit)
{
	if (u->marked)
		return pass(hit, LIMIT_FILE, file_mark(l), l->file);
	/* Deeper than anybody builds: made to keep us from counting. */
	if (u->cut && (l->disk || l->files)) {
		*hit = (struct limit_hit){ l->disk ? LIMIT_DISK : LIMIT_FILES, UINT64_MAX,
					   l->disk ? l->disk : l->files };
		return true;
	}
	return pass(hit, LIMIT_FILES, u->entries, l->files) ||
	       pass(hit, LIMIT_DISK, u->bytes, l->disk);
}

static void open_volumes(struct looker *k)
{
	const struct watch_dirs *dirs = k->w->dirs;
	dev_t seen[VOLUMES_MAX];

	for (size_t i = 0; i < dirs->n && k->nvolumes < VOLUMES_MAX; i++) {
		AUTO_CLOSE int fd = open(dirs->v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct stat st;
		size_t n = 0;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		while (n < k->nvolumes && seen[n] != st.st_dev)
			n++;
		if (n < k->nvolumes || !inodes_of(fd))
			continue;
		seen[n] = st.st_dev;
		k->volumes[k->nvolumes++].dir = TAKE_FD(fd);
	}
}

static void measure(struct looker *k)
{
	struct disk_use *u = &k->disk;
	uint64_t now = memory_files(k);

	for (size_t i = 0; i < k->nvolumes; i++)
		k->volumes[i].inodes = inodes_of(k->volumes[i].dir);
	measure_all(k->w, 0, u);
	if (k->procs && !u->cut)
		proc_scan_nameless(k->procs, u);
	u->entries += now > k->w->memory_files ? now - k->w->memory_files : 0;
}

static bool look_at_disk(struct looker *k, struct limit_hit *hit)
{
	measure(k);
	/* Their owner has closed them; in this process nothing is lost by looking anyway. */
	if (k->disk.unreadable && ns_gain_override() == 0)
		measure(k);
	return judge_disk(k->w->l, &k->disk, hit);
}

/*
 * To count a hundred thousand files takes a while, and is done the less often. Whether so many
 * can have come since is told at once: all that is new on these filesystems, whoever made it.
 */
static bool is_flooded(const struct looker *k)
{
	uint64_t new = 0;

	for (size_t i = 0; i < k->nvolumes; i++) {
		uint64_t now = inodes_of(k->volumes[i].dir);

		new += now > k->volumes[i].inodes ? now - k->volumes[i].inodes : 0;
	}
	return k->disk.entries + new > k->w->l->files;
}

/* The kill comes from here: in a fork bomb our caller may wait long for its turn. */
_Noreturn static void tell(const struct looker *k, const struct limit_hit *hit)
{
	/* In this order: that it is gone must not be seen before why. */
	send(k->sock, hit, sizeof(*hit), MSG_NOSIGNAL);
	if (hit->what && k->victim >= 0)
		pidfd_send_signal(k->victim, SIGKILL, NULL, 0);
	_exit(0);
}

/* Everything has ended: says what the disk holds, and is done. */
_Noreturn static void answer_last(struct looker *k)
{
	struct limit_hit hit = { 0 };

	look_at_disk(k, &hit);
	tell(k, &hit);
}

static void wait_for_time(struct looker *k)
{
	int64_t at = k->procs_at < k->disk_at ? k->procs_at : k->disk_at;
	int64_t left = (at - clock_us(CLOCK_MONOTONIC) + 999) / 1000;
	struct pollfd p = { .fd = k->sock, .events = POLLIN };
	char c;

	if (at == INT64_MAX)
		left = -1;
	else if (left < 0)
		left = 0;
	if (poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left) <= 0)
		return;
	if (packet_recv(k->sock, &c, 1, 0) == 1)
		answer_last(k);
	_exit(0); /* nobody is there any more */
}

/* Nothing of the host's but these: its locks and pipes are not ours to keep. */
static void close_others(int *const keep[], int n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < n; i++)
		if (*keep[i] >= 0)
			*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, 64);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	for (int i = 0; i < n; i++)
		*keep[i] = *keep[i] < 0 ? -1 : dup2(*keep[i], 3 + i);
	close_range(3 + (unsigned)n, ~0U, 0);
}

_Noreturn static void watch_main(const struct watch *w, int sock)
{
	struct looker k = { .w = w,
			    .g = *w->g,
			    .sock = sock,
			    .shm = w->shm,
			    .stage = w->stage,
			    .victim = w->victim };
	int proc = w->proc;
	int *const keep[] = { &k.sock, &proc, &k.shm, &k.stage, &k.g.dir, &k.victim };
	struct limit_hit hit;
	struct rlimit files;
	int64_t began;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Before all that it watches, where that is ours to decide. */
	if (sched_setscheduler(0, SCHED_RR,
			       &(struct sched_param){ .sched_priority = 1 }) < 0)
		setpriority(PRIO_PROCESS, 0, -20);
	close_others(keep, ARRAY_SIZE(keep));
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (proc >= 0)
		k.procs = proc_scan_new(proc);
	k.procs_at = proc < 0 ? INT64_MAX : 0;
	k.disk_at = INT64_MAX;
	if ((w->l->disk || w->l->files || w->l->file) && proc >= 0)
		k.disk_at = 0;
	if (w->l->files && proc >= 0)
		open_volumes(&k);
	for (;;) {
		began = clock_us(CLOCK_MONOTONIC);
		if (began >= k.procs_at) {
			if (look_at_procs(&k, &hit))
				tell(&k, &hit);
			k.procs_at = next_look(began, PROC_EVERY_US, PROC_EVERY_MAX_US);
		}
		began = clock_us(CLOCK_MONOTONIC);
		if (k.nvolumes && began < k.disk_at && began >= k.flood_at &&
		    is_flooded(&k))
			k.disk_at = began;
		if (began >= k.disk_at) {
			if (look_at_disk(&k, &hit))
				tell(&k, &hit);
			k.disk_at = next_look(began, DISK_EVERY_US, DISK_EVERY_MAX_US);
			/* Other processes may be making the files there. */
			k.flood_at = clock_us(CLOCK_MONOTONIC) +
				     (clock_us(CLOCK_MONOTONIC) - began);
		}
		wait_for_time(&k);
	}
}

/* --- in the caller --- */

static void forget_stage(struct watch *w)
{
	cleanup_close(&w->stage);
	w->stage = -1;
}

int watch_sandbox(struct watch *w, int root)
{
	struct statfs fs;

	forget_sandbox(w);
	w->proc = openat(root, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->proc < 0)
		return -errno;
	w->shm = openat(root, "dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->stage = openat(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fstatfs(w->stage, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		forget_stage(w);
	w->memory_files = inodes_of(w->shm) + inodes_of(w->stage);
	w->stage_bytes = bytes_of(w->stage);
	return 0;
}

int watch_start(struct watch *w)
{
	int fds[2];

	if (w->sock >= 0 || w->pid > 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	w->pid = fork();
	if (w->pid < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	if (w->pid == 0)
		watch_main(w, fds[1]);
	close(fds[1]);
	w->sock = fds[0];
	return 0;
}

void watch_victim(struct watch *w, int pidfd)
{
	if (w)
		w->victim = pidfd;
}

bool watch_urgent(const struct watch *w)
{
	return w->l->pids && geteuid() == 0 && !(w->g->path && w->g->pids);
}

int watch_fd(const struct watch *w)
{
	return w ? w->sock : -1;
}

static void gone(struct watch *w)
{
	cleanup_close(&w->sock);
	w->sock = -1;
}

bool watch_read(struct watch *w, struct limit_hit *hit, int *error)
{
	ssize_t n = packet_recv(w->sock, hit, sizeof(*hit), MSG_DONTWAIT);

	*error = 0;
	if (n == sizeof(*hit))
		return true;
	if (n == -EAGAIN)
		return false;
	*error = n < 0 ? (int)n : -ECHILD;
	gone(w);
	return false;
}

/* Asks a watcher, started if need be, for its last look at the disk. */
static bool ask_last(struct watch *w, struct limit_hit *hit)
{
	struct pollfd p;
	ssize_t n;

	/* Of the sandbox there is nothing left to look at. */
	forget_sandbox(w);
	if (w->sock < 0 && (w->pid > 0 || watch_start(w) < 0))
		return false;
	send(w->sock, "l", 1, MSG_NOSIGNAL);
	p = (struct pollfd){ .fd = w->sock, .events = POLLIN };
	while (poll(&p, 1, LAST_LOOK_MS) < 0 && errno == EINTR)
		;
	n = packet_recv(w->sock, hit, sizeof(*hit), MSG_DONTWAIT);
	gone(w);
	return n == sizeof(*hit);
}

static bool last_disk(struct watch *w, struct limit_hit *hit)
{
	const struct run_limits *l = w->l;
	struct disk_use u;

	measure_all(w, QUICK_ENTRIES, &u);
	if (!u.cut && !u.unreadable)
		return judge_disk(l, &u, hit);
	/* Nobody could look: then it does not count as kept. */
	if (!ask_last(w, hit))
		*hit = l->disk ? (struct limit_hit){ LIMIT_DISK, UINT64_MAX, l->disk }
		       : l->files
			       ? (struct limit_hit){ LIMIT_FILES, UINT64_MAX, l->files }
			       : (struct limit_hit){ LIMIT_FILE, UINT64_MAX, l->file };
	return hit->what != 0;
}

bool watch_last(struct watch *w, struct limit_hit *hit)
{
	if (cgroup_hit(w->g, w->l, hit))
		return true;
	return (w->l->disk || w->l->files || w->l->file) && last_disk(w, hit);
}
