/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "ctl/control.h"
#include "ctl/ctl.h"
#include "ctl/inside_socket.h"
#include "emulate/notify.h"
#include "limits/limits.h"
#include "runner/build.h"
#include "runner/descriptors.h"
#include "sys/landlock.h"
#include "sys/ns.h"

/*
 * The cgroup allows this many tasks above the limit, so that passing the limit is seen and
 * named.
 */
enum { PIDS_SLACK = 32 };

/* A command that has run longer than this leaves its layer to unmount_later(). */
enum { LONG_MS = 5 };

/* If the caller has not taken our last records after this time, they are dropped. */
enum { REST_MS = 5000 };

/* Descriptors of PID 1 that close_host() keeps; the others belong to the host. */
enum { FD_CTL = 3, FD_STDIO = 4, FD_GATE = 7, FD_DOOR = 8, FD_FIRST_FREE = 9 };

struct init {
	const struct init_args *a;
	int pty;    /* the slave, or -1 */
	int child;  /* the command */
	int sysctl; /* the host's /proc/sys/user; for the command's process alone */
	int sigfd;
	int hand;      /* the command's socket until it has been executed; -1 after */
	int main;      /* the mount that the command works in (build.h), or -1 */
	int64_t go_ns; /* when it was let go */
	struct notify notify;
	struct control control;
	struct idle_layers far;
};

_Noreturn static void fail_to(int ctl, const struct err *e)
{
	struct ctl_msg m = { .type = CTL_ERROR, .err = *e };

	ctl_send(ctl, &m, -1, 0);
	_exit(1);
}

_Noreturn static void fail(const struct err *e)
{
	fail_to(FD_CTL, e);
}

/* Waits for a message of @type; returns its `extra`. */
static uint64_t await(int sock, enum ctl_type type)
{
	struct ctl_msg m;
	int fd;

	if (ctl_recv(sock, &m, &fd, 0) != 1 || m.type != (uint32_t)type)
		_exit(1);
	return m.extra;
}

/*
 * The inside must not find a descriptor of the host, not even in PID 1. Only the control
 * socket, the streams of the command, and stderr for --debug stay open.
 */
static int close_host(const struct init_args *a)
{
	int high[] = { a->ctl, a->stdio[0], a->stdio[1], a->stdio[2], a->gate, a->door };

	for (size_t i = 0; i < ARRAY_SIZE(high); i++) {
		if (high[i] < 0)
			continue;
		high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, FD_FIRST_FREE);
		if (high[i] < 0)
			return errno == EINVAL ? -EMFILE : -errno;
	}
	close(FD_CTL);
	for (int i = 0; i < (int)ARRAY_SIZE(high); i++) {
		close(FD_CTL + i);
		if (high[i] >= 0)
			dup3(high[i], FD_CTL + i, O_CLOEXEC);
	}
	close_range(FD_FIRST_FREE, ~0U, 0);
	return 0;
}

static int enter(struct init *in, struct err *e)
{
	const struct init_args *a = in->a;
	int r;

	/* If the caller dies, so do all processes in here. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!a->root) {
		r = ns_map_self(a->uid, a->gid);
		if (r < 0)
			return err_sys(e, r, "cannot map the user into the sandbox");
	}
	/*
	 * /proc/sys of the sandbox may be read-only; this descriptor is of the host's, and for
	 * us alone.
	 */
	in->sysctl = open("/proc/sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->sysctl < 0)
		return err_sys(e, errno, "cannot open /proc/sys/user");
	/*
	 * A fork bomb is faster than the watcher that counts; without the cgroup the watcher
	 * still counts.
	 */
	if (a->spec->limits.pids)
		ns_limit_pids((uint64_t)a->spec->limits.pids + PIDS_SLACK);
	r = ns_new_keyring();
	if (r < 0)
		return err_sys(e, r, "cannot leave the session keyring");
	r = a->spec->offline ? ns_loopback_up() : 0;
	if (r < 0)
		return err_sys(e, r, "cannot make a loopback of the sandbox's own");
	log_debug("in the first namespaces");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, errno, "cannot make the mounts private");
	return 0;
}

/* A terminal of the sandbox's own. PID 1 leads its session, so that job control works. */
static int open_pty(struct init *in, struct err *e)
{
	struct ctl_msg m = { .type = CTL_PTY };
	AUTO_CLOSE int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int zero = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &zero) < 0)
		return err_sys(e, errno, "cannot make a terminal");
	relay_pty_init(in->a->relay, master);
	in->pty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (in->pty < 0 || ioctl(in->pty, TIOCSCTTY, 0) < 0)
		return err_sys(e, errno, "cannot open the terminal");
	return ctl_send(FD_CTL, &m, master, 0) < 0
		       ? err_set(e, ERR_SYSTEM, "cannot hand over the terminal")
		       : 0;
}

/* --- the command's side; @sock is its end of a pair shared with PID 1 --- */

_Noreturn static void give_up(int sock, const char *what, int err)
{
	struct ctl_msg m = { .type = CTL_ERROR };

	err_sys(&m.err, err, "%s", what);
	ctl_send(sock, &m, -1, 0);
	_exit(1);
}

/* The transaction was recorded meanwhile: now its number is known. */
static void name_txn(char *const *envp, uint64_t id)
{
	static const char var[] = "STET_TXN=t";

	for (; id && *envp; envp++)
		if (strncmp(*envp, var, sizeof(var) - 1) == 0)
			snprintf(*envp + sizeof(var) - 1, 21, "%llu",
				 (unsigned long long)id);
}

static void take_streams(const struct init *in, int sock)
{
	int from;

	for (int i = 0; i < 3; i++) {
		from = in->a->stdio[i] >= 0 ? FD_STDIO + i : in->pty;
		if (from >= 0 && dup2(from, i) >= 0)
			continue;
		/* The stream was closed outside, too: the command gets an empty one. */
		from = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (from < 0 || dup2(from, i) < 0)
			give_up(sock, "cannot set up the standard streams", errno);
	}
}

/*
 * The mount namespace that PID 1 built belongs to the first user namespace. From the second
 * one nothing in it can be unmounted, remounted or moved, and all mounts are locked in every
 * mount namespace that is made there. Root inside gets such a namespace at once, to mount
 * something of its own; others would have to make one anyway.
 */
static void lock_in(const struct init *in, int sock)
{
	struct rlimit core = { 1, 1 };
	int r;

	if (unshare(CLONE_NEWUSER | (in->a->root ? CLONE_NEWNS : 0)) < 0)
		give_up(sock, "cannot enter the inner namespaces", errno);
	if (in->a->root) {
		ctl_send_value(sock, CTL_GO, 0, 0);
		await(sock, CTL_GO);
	} else {
		r = ns_map_self(in->a->uid, in->a->gid);
		if (r < 0)
			give_up(sock, "cannot map the user inside", r);
	}
	r = ns_forbid_cgroup(in->sysctl);
	if (r < 0)
		give_up(sock, "cannot forbid cgroup namespaces inside", r);
	/* A limit of 1, not 0, keeps the core dump handler of the host from running. */
	setrlimit(RLIMIT_CORE, &core);
	limits_apply(&in->a->spec->limits, in->a->root);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		give_up(sock, "cannot give up privileges", errno);
	r = landlock_scope();
	if (r < 0 && r != -EOPNOTSUPP)
		give_up(sock, "cannot keep out of the host's sockets and processes", r);
}

/*
 * Finds the first @name in PATH that @mode allows, or NULL. By hand, since an execvp() would
 * ask the gate for every directory in PATH.
 */
static char *find_command(const char *name, int mode)
{
	const char *p = getenv("PATH");
	struct stat st;

	while (p && *p && !strchr(name, '/')) {
		size_t n = strcspn(p, ":");
		AUTO_FREE char *path = xasprintf("%.*s/%s", n ? (int)n : 1, n ? p : ".",
						 name);

		if (access(path, mode) == 0 && stat(path, &st) == 0 &&
		    S_ISREG(st.st_mode))
			return TAKE_PTR(path);
		p += n + (p[n] == ':');
	}
	return NULL;
}

/* Executes the command; returns the errno of the failure. */
static int execute(char *const *argv)
{
	AUTO_FREE char *path = find_command(argv[0], X_OK);
	AUTO_FREE char *any = NULL;

	execvp(path ? path : argv[0], argv);
	if (path || errno != EACCES || strchr(argv[0], '/'))
		return errno;
	/*
	 * A directory in PATH without search permission does not make the command "not
	 * executable".
	 */
	any = find_command(argv[0], F_OK);
	return any ? EACCES : ENOENT;
}

_Noreturn static void not_executed(int sock, int err, bool cwd)
{
	struct ctl_msg m = { .type = CTL_EXEC_FAILED, .value = err, .extra = cwd };

	ctl_send(sock, &m, -1, 0);
	_exit(err == ENOENT ? 127 : 126);
}

/* The root can always be entered. */
static void enter_above(const char *cwd)
{
	AUTO_FREE char *dir = xstrdup(cwd);

	do
		dir[MAX(strrchr(dir, '/') - dir, 1)] = '\0';
	while (chdir(dir) < 0 && dir[1]);
}

/* An earlier command in the same layers may have removed the directory. */
static void enter_cwd(const struct init *in, int sock)
{
	const char *cwd = in->a->site->cwd;

	if (chdir(cwd) == 0)
		return;
	switch (in->a->spec->cwd_rule) {
	case CWD_NEEDED:
		give_up(sock, "cannot enter the working directory", errno);
	case CWD_OR_NOT_RUN:
		not_executed(sock, errno, true);
	case CWD_OR_ABOVE:
		enter_above(cwd);
	}
}

_Noreturn static void command_main(const struct init *in, int sock)
{
	const struct run_spec *spec = in->a->spec;
	struct ctl_msg m = { .type = CTL_GO };
	int listener, r;

	setpgid(0, 0);
	if (in->pty >= 0)
		tcsetpgrp(in->pty, getpid());
	lock_in(in, sock);
	listener = notify_install(in->a->gate >= 0, !in->a->root);
	if (listener < 0)
		give_up(sock, "cannot install the system call filter", listener);
	log_debug("in the second namespaces, filter installed");
	ctl_send(sock, &m, listener, 0);
	close(listener);
	name_txn(spec->envp, await(sock, CTL_GO));
	/* From here on the site is filled in. */
	r = view_pins_host(in->a->site->view) ? notify_pin() : 0;
	if (r < 0)
		give_up(sock, "cannot install the filter of mounts", r);
	cpu_anywhere(&in->a->site->apart);
	/* At this point the root is the sandbox's in any case. */
	enter_cwd(in, sock);
	take_streams(in, sock);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &in->a->mask, NULL);
	umask(spec->umask);
	environ = (char **)(uintptr_t)spec->envp;
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		give_up(sock, "cannot part with the host's descriptors", errno);
	not_executed(sock, execute(spec->argv), false);
}

/* --- PID 1's side --- */

static void make_gate(struct init *in)
{
	const struct site *site = in->a->site;
	const struct gate_setup s = { .calls = in->a->spec->gate,
				      .workspace = site->view->workspace,
				      .home = site->view->home,
				      .since = site->since,
				      .root = in->a->root,
				      .listener = &in->notify.u,
				      .sock = FD_GATE };

	if (in->a->gate >= 0)
		in->notify.gate = gate_new(&s);
}

/* Follows the command up to its exec; on 0 we have the listener. */
static int shake_hands(struct init *in, int sock, struct err *e)
{
	struct ctl_msg m;
	int fd, r;

	for (;;) {
		r = ctl_recv(sock, &m, &fd, 0);
		if (r != 1)
			return err_set(e, ERR_SYSTEM,
				       "the command died while it was set up");
		if (m.type == CTL_ERROR) {
			*e = m.err;
			return -1;
		}
		if (fd >= 0)
			break;
		r = ns_map_all(in->child);
		if (r < 0)
			return err_sys(e, r, "cannot map the users inside");
		ctl_send_value(sock, CTL_GO, 0, 0);
	}
	clock_gettime(CLOCK_REALTIME_COARSE, &in->notify.began);
	r = unotify_open(&in->notify.u, fd);
	if (r < 0)
		return err_sys(e, r, "cannot listen to the system call filter");
	in->notify.turn = memfd_create("turn", MFD_CLOEXEC);
	if (in->notify.turn < 0)
		return err_sys(e, errno, "cannot keep renames in order");
	make_gate(in);
	return 0;
}

static int64_t elapsed_us(int64_t since_ns)
{
	return (clock_ns(CLOCK_MONOTONIC) - since_ns) / 1000;
}

/*
 * Makes the command's process before the sandbox is built, where that is possible: both work
 * at the same time. When the root changes, the root of that process changes, too.
 */
static bool forks_early(const struct init_args *a)
{
	return !a->pty && !a->root;
}

static int fork_command(struct init *in, struct err *e)
{
	int sock[2];

	if (ctl_pair(sock) < 0)
		return err_sys(e, errno, "cannot make a socket");
	in->child = fork();
	if (in->child < 0)
		return err_sys(e, errno, "cannot fork");
	if (in->child == 0)
		command_main(in, sock[1]);
	close(sock[1]);
	in->hand = sock[0];
	/* Both the child and we do this: whichever comes first. */
	setpgid(in->child, in->child);
	return 0;
}

/* Without the socket the view is one from which no request comes. */
static void open_door(const struct init_args *a)
{
	int r = a->door >= 0 ? inside_socket_bind(FD_DOOR) : 0;

	if (r < 0)
		log_debug("no door: %s", strerror(-r));
	if (a->door >= 0)
		close(FD_DOOR);
}

/* Builds the view, and starts the command up to the moment before its exec. */
static int furnish(struct init *in, struct err *e)
{
	const struct site *site = in->a->site;
	bool early = forks_early(in->a);
	int r = 0, root;

	if (early && fork_command(in, e) < 0)
		return -1;
	if (in->a->wait)
		await(FD_CTL, CTL_PLAN);
	if (*site->control)
		r = control_open(&in->control, site->control);
	if (r < 0)
		return err_sys(e, r, "cannot make the control socket");
	root = build_view(site->view, &in->main, &in->far, e);
	if (root < 0 || (early && shake_hands(in, in->hand, e) < 0) ||
	    build_enter(root, e) < 0)
		return -1;
	open_door(in->a);
	cpu_anywhere(&site->apart);
	if (early)
		return 0;
	if (in->a->pty && open_pty(in, e) < 0)
		return -1;
	return fork_command(in, e) < 0 ? -1 : shake_hands(in, in->hand, e);
}

/* Before the command runs: closes every descriptor that leads out of the view. */
static int part_with_host(struct init *in, struct err *e)
{
	const struct init_args *a = in->a;
	const struct control *c = &in->control;
	struct held v[IDLE_LAYERS_MAX + 24] = { { 0 } };
	const int plain[] = { FD_CTL,	       in->pty,		in->sigfd, in->hand,
			      in->notify.u.fd, in->notify.turn, c->listen };
	size_t n = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		v[n++] = (struct held){ plain[i], HOLD_PLAIN };
	for (int i = 0; i < 3; i++)
		v[n++] = (struct held){ a->stdio[i] < 0 ? -1 : FD_STDIO + i, HOLD_PLAIN };
	if (in->notify.gate) {
		v[n++] = (struct held){ FD_GATE, HOLD_PLAIN };
		v[n++] = (struct held){ gate_holds(in->notify.gate), HOLD_PLAIN };
	}
	v[n++] = (struct held){ in->main, HOLD_INSIDE };
	v[n++] = (struct held){ in->notify.mounts.root, HOLD_INSIDE };
	for (size_t i = 0; i < in->far.n; i++)
		v[n++] = (struct held){ in->far.v[i].upper, HOLD_APART };
	r = descriptors_keep_only(&in->notify.mounts, v, n);
	return r < 0 ? err_sys(e, r, "cannot part with the host's descriptors") : 0;
}

static int start(struct init *in, struct err *e)
{
	AUTO_CLOSE int root = -1;
	struct ctl_msg m, go = { .type = CTL_GO };
	int r;

	if (furnish(in, e) < 0)
		return -1;
	r = viewmounts_note(&in->notify.mounts, in->child);
	if (r < 0)
		return err_sys(e, r, "cannot see what the command sees");
	if (part_with_host(in, e) < 0)
		return -1;
	prctl(PR_SET_DUMPABLE, 0);
	/*
	 * The caller and PID 1 both have work before the command starts: the first one waits
	 * for the other.
	 */
	m = (struct ctl_msg){ .type = CTL_STARTED,
			      .value = (int32_t)elapsed_us(in->a->started_ns) };
	if (in->a->watched)
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ctl_send(FD_CTL, &m, root, 0);
	go.extra = await(FD_CTL, CTL_GO);
	ctl_send(in->hand, &go, -1, 0);
	in->go_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

/* End of file: the exec has closed the socket. A message: there was no exec, or it failed. */
static void hear_command(struct init *in)
{
	struct ctl_msg m;
	int fd;
	bool failed = ctl_recv(in->hand, &m, &fd, 0) == 1 &&
		      (m.type == CTL_EXEC_FAILED || m.type == CTL_ERROR);

	if (in->notify.gate)
		gate_begun(in->notify.gate, !failed);
	if (failed)
		ctl_send(FD_CTL, &m, -1, 0);
	close(TAKE_FD(in->hand));
}

static void signal_command(const struct init *in, int sig)
{
	if (kill(-in->child, sig) < 0)
		kill(in->child, sig);
}

/*
 * When PID 1 exits all processes are killed, but the kernel closes our descriptors first: a
 * call that the listener holds would go on with an error for a moment. So all others are
 * killed before.
 */
_Noreturn static void end_with_all(int status)
{
	kill(-1, SIGKILL);
	_exit(status);
}

/* Kills all others, and notes what the caller cannot see once we are gone. */
static void end_others(struct init *in)
{
	kill(-1, SIGKILL);
	while (in->far.n && (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR))
		;
	in->a->site->untouched = idle_layers_untouched(&in->far);
}

static void command_from_above(struct init *in)
{
	struct ctl_msg m;
	int fd = -1;
	int r = ctl_recv(FD_CTL, &m, &fd, MSG_DONTWAIT);

	if (r == 0)
		end_with_all(1); /* nobody is there any more */
	if (r != 1)
		return;
	cleanup_close(&fd);
	if (m.type == CTL_SIGNAL)
		signal_command(in, m.value);
	if (m.type == CTL_END) {
		end_others(in);
		_exit(1);
	}
	if (m.type == CTL_CONT) {
		if (in->pty >= 0)
			tcsetpgrp(in->pty, in->child);
		signal_command(in, SIGCONT);
	}
}

/* Sends the last records of the gate, unless the caller is gone. */
static void send_rest(struct gate *g)
{
	struct pollfd p = { .fd = FD_GATE, .events = POLLOUT };

	while (!gate_idle(g) && poll(&p, 1, REST_MS) > 0 && !(p.revents & POLLHUP))
		gate_flush(g);
}

/* When the command dies the sandbox ends. */
_Noreturn static void end_with_command(struct init *in, int status)
{
	struct ctl_msg m = { .type = CTL_EXITED,
			     .value = status,
			     .extra = in->notify.renames };

	/* Its last message comes first. */
	if (in->hand >= 0)
		hear_command(in);
	if (in->notify.gate) {
		send_rest(in->notify.gate);
		gate_exits(in->notify.gate);
		send_rest(in->notify.gate);
	}
	/*
	 * A command that ran for less time has not looked up enough that unmounting takes
	 * long.
	 */
	ctl_send(FD_CTL, &m, elapsed_us(in->go_ns) > LONG_MS * 1000 ? in->main : -1, 0);
	end_others(in);
	_exit(0);
}

/* Reaps one process that has died or stopped; false if there is none. */
static bool reap_one(struct init *in)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);

	if (pid <= 0)
		return false;
	if (in->notify.gate && gate_waited(in->notify.gate, pid, status))
		return true;
	notify_reaped(&in->notify, pid, status);
	if (WIFSTOPPED(status) && freeze_has(&in->control.freeze, pid))
		return true;
	if (control_reaped(&in->control, pid, status) || pid != in->child)
		return true;
	if (!WIFSTOPPED(status))
		end_with_command(in, status);
	ctl_send_value(FD_CTL, CTL_STOPPED, WSTOPSIG(status), 0);
	return true;
}

static void reap(struct init *in)
{
	while (reap_one(in))
		;
}

/* First processes that may be waiting for us, then the signal, then earlier messages. */
static void on_signal(struct init *in)
{
	struct signalfd_siginfo si;

	reap_one(in);
	if (read(in->sigfd, &si, sizeof(si)) > 0)
		reap(in);
}

/* A verdict ends the run; the caller is told. */
_Noreturn static void end_all(struct init *in)
{
	end_others(in);
	send_rest(in->notify.gate);
	_exit(1);
}

static void on_gate(struct gate *g, short revents)
{
	if (revents & POLLOUT)
		gate_flush(g);
	if (revents & ~POLLOUT && !gate_answered(g))
		end_with_all(1); /* nobody is there to ask any more */
}

enum {
	POLL_LISTENER,
	POLL_SIGNAL,
	POLL_CTL,
	POLL_HAND,
	POLL_GATE,
	POLL_EXITS,
	POLL_CONTROL,
	POLL_COUNT = POLL_CONTROL + CONTROL_POLLS
};

/* The shorter of two waits in milliseconds; -1 is for ever. */
static int sooner(int a, int b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

_Noreturn static void supervise(struct init *in)
{
	struct pollfd p[POLL_COUNT] = {
		[POLL_LISTENER] = { .fd = in->notify.u.fd },
		[POLL_SIGNAL] = { .fd = in->sigfd, .events = POLLIN },
		[POLL_CTL] = { .fd = FD_CTL, .events = POLLIN },
		[POLL_HAND] = { .events = POLLIN },
		[POLL_GATE] = { .fd = in->notify.gate ? FD_GATE : -1 },
		[POLL_EXITS] = { .fd = -1, .events = POLLIN },
	};
	struct gate *g = in->notify.gate;
	bool ready;

	in->control.child = in->child;
	in->control.helpers = &in->notify.helpers;
	in->control.far = &in->far;
	reap(in);
	for (;;) {
		ready = !g || gate_ready(g);
		/* While all processes are stopped no held call is answered. */
		p[POLL_LISTENER].events = ready && !in->control.frozen ? POLLIN : 0;
		p[POLL_GATE].events = ready ? POLLIN : POLLIN | POLLOUT;
		p[POLL_HAND].fd = in->hand;
		if (g)
			p[POLL_EXITS].fd = gate_exits_fd(g);
		control_poll(&in->control, p + POLL_CONTROL);
		if (poll(p, POLL_COUNT,
			 sooner(g ? gate_wait_ms(g) : -1,
				control_wait_ms(&in->control))) < 0) {
			if (errno != EINTR)
				_exit(1);
			continue;
		}
		if (p[POLL_SIGNAL].revents)
			on_signal(in);
		/* The command has ended before it could make a call. */
		if (p[POLL_HAND].revents && in->hand >= 0)
			hear_command(in);
		if (p[POLL_LISTENER].revents & POLLIN) {
			if (notify_serve(&in->notify) < 0)
				p[POLL_LISTENER].fd = -1;
		} else if (p[POLL_LISTENER].revents) {
			p[POLL_LISTENER].fd = -1; /* no filtered process is left */
		}
		if (p[POLL_CTL].revents)
			command_from_above(in);
		if (p[POLL_GATE].revents)
			on_gate(g, p[POLL_GATE].revents);
		if (p[POLL_EXITS].revents)
			gate_exits(g);
		if (g && gate_killed(g))
			end_all(in);
		if (g)
			gate_tick(g);
		control_serve(&in->control, p + POLL_CONTROL);
	}
}

_Noreturn void init_main(const struct init_args *a)
{
	struct init in = { .a = a,
			   .pty = -1,
			   .hand = -1,
			   .main = -1,
			   .notify.u.fd = -1,
			   .control = { .listen = -1, .client = -1, .mark = -1 } };
	struct err e = { 0 };
	sigset_t chld;
	int r;

	r = close_host(a);
	if (r < 0) {
		err_sys(&e, r, "cannot part with the host's descriptors");
		fail_to(a->ctl, &e);
	}
	if (a->wait)
		await(FD_CTL, CTL_BEGIN);
	setsid();
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigaddset(&chld, SIGTTOU);
	sigprocmask(SIG_SETMASK, &chld, NULL);
	sigdelset(&chld, SIGTTOU);
	in.sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (in.sigfd < 0) {
		err_sys(&e, errno, "cannot watch for signals");
		fail(&e);
	}
	if (enter(&in, &e) < 0 || start(&in, &e) < 0)
		fail(&e);
	signal(SIGPIPE, SIG_IGN);
	supervise(&in);
}
