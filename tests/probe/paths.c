/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths=FILE does what FILE says, a line each, its words parted by tabs:
 *
 *   begin … end                        a process of its own does what is between
 *   userns, pidns, thread              the rest of it in a user and mount namespace of our own, in
 *                                      a process namespace of our own, in another thread
 *   chroot DIR, chdir DIR, proc DIR, tmpfs DIR, bind FROM TO
 *   fd NUMBER KIND PATH                KIND: path dir link file pipe memfd socket pidfd gone
 *   symlink TARGET NAME
 *   flip memory|link|fd|cwd A B        from now on another thread changes it between A and B:
 *                                      the letter @ in paths (one of A and B, of equal length), the
 *                                      link `flip`, descriptor 50, the working directory
 *   still                              ... no longer
 *   call ID CALL FLAGS DIR PATH DIR PATH
 *
 * In a path, {pid}, {tid}, {ppid}, {child} (one that sleeps) and {map} (a name in our map_files)
 * are put in. Answers: "ID<tab>ok" or the error's name; "setup<tab>line<tab>error" for the others.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum {
	WORDS = 8,
	LONG = 2 * 4096,
	FLIPPED = 50,
	OUT_OF_SIGHT = 200,
	SECTION_SECONDS = 300
};

static char **lines;
static size_t count, at;
static pid_t child;
static char map[NAME_MAX + 1];

static int read_lines(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	char *text, *line, *save = NULL;
	struct stat st;
	size_t room = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
		return -EIO;
	close(fd);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (count == room) {
			room = room ? 2 * room : 1024;
			lines = realloc(lines, room * sizeof(*lines));
		}
		lines[count++] = line;
	}
	return 0;
}

/* Its name there is an address, which nobody knows beforehand. */
static void name_map(void)
{
	DIR *d = opendir("/proc/self/map_files");
	struct dirent *de;

	strcpy(map, "none");
	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.')
			snprintf(map, sizeof(map), "%s", de->d_name);
	if (d)
		closedir(d);
}

static void put_in(const char *in, char *out)
{
	const struct {
		const char *word;
		long value;
	} known[] = {
		{ "{pid}", getpid() },
		{ "{tid}", gettid() },
		{ "{ppid}", getppid() },
		{ "{child}", child },
	};
	char *o = out;
	size_t i;

	while (*in && o < out + LONG - 2 * NAME_MAX) {
		for (i = 0; i < 4; i++)
			if (strncmp(in, known[i].word, strlen(known[i].word)) == 0)
				break;
		if (i < 4) {
			o += sprintf(o, "%ld", known[i].value);
			in += strlen(known[i].word);
		} else if (strncmp(in, "{map}", 5) == 0) {
			o += sprintf(o, "%s", map);
			in += 5;
		} else {
			*o++ = *in++;
		}
	}
	*o = '\0';
}

/* --- what another thread changes all the time --- */

static struct {
	const char *kind;
	char a[LONG], b[LONG];
	char *memory[2]; /* where the changing part of a path begins, or NULL */
	int fds[2];
	pthread_t thread;
	atomic_int over, on;
} flip;

static void write_over(char *where, const char *text)
{
	if (where)
		for (volatile char *p = where; *text; p++, text++)
			*p = *text;
}

static void flip_once(int turn)
{
	const char *to = turn ? flip.a : flip.b;

	if (strcmp(flip.kind, "memory") == 0) {
		write_over(flip.memory[0], to);
		write_over(flip.memory[1], to);
		for (volatile int i = 0; i < 2000; i++)
			;
	} else if (strcmp(flip.kind, "link") == 0) {
		unlink("flip");
		if (symlink(to, "flip") < 0)
			return;
	} else if (strcmp(flip.kind, "fd") == 0) {
		dup2(flip.fds[turn], FLIPPED);
	} else if (chdir(to) < 0) {
		return;
	}
}

static void *flip_on(void *arg)
{
	(void)arg;
	for (int turn = 0; !flip.over; turn = !turn)
		flip_once(turn);
	return NULL;
}

static int start_flipping(char **w)
{
	flip.kind = strdup(w[1]);
	put_in(w[2], flip.a);
	put_in(w[3], flip.b);
	flip.over = 0;
	flip.memory[0] = flip.memory[1] = NULL;
	if (strcmp(flip.kind, "fd") == 0) {
		flip.fds[0] = open(flip.a, O_PATH | O_CLOEXEC);
		flip.fds[1] = open(flip.b, O_PATH | O_CLOEXEC);
		if (flip.fds[0] < 0 || flip.fds[1] < 0)
			return -errno;
	}
	flip_once(0);
	flip.on = 1;
	return -pthread_create(&flip.thread, NULL, flip_on, NULL);
}

static int stop_flipping(void)
{
	flip.over = 1;
	pthread_join(flip.thread, NULL);
	flip.on = 0;
	return 0;
}

/* --- calls --- */

struct call {
	const char *name;
	unsigned flags;
	int dir[2];
	char path[2][LONG];
};

static int execute(const struct call *c)
{
	char *args[] = { (char *)"true", NULL };
	int p[2], err = 0;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	/* Not where a path may look: which is still open there would be left to chance. */
	for (int i = 0; i < 2; i++) {
		int fd = fcntl(p[i], F_DUPFD_CLOEXEC, OUT_OF_SIGHT);

		close(p[i]);
		p[i] = fd;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_RDWR), 1);
		if (strcmp(c->name, "execve") == 0)
			execve(c->path[0], args, environ);
		else
			syscall(SYS_execveat, c->dir[0], c->path[0], args, environ,
				c->flags);
		err = errno;
		if (write(p[1], &err, sizeof(err)) < 0)
			_exit(1);
		_exit(0);
	}
	close(p[1]);
	if (pid < 0 || read(p[0], &err, sizeof(err)) < 0)
		err = errno;
	close(p[0]);
	waitpid(pid, NULL, 0);
	return -err;
}

static int carry_out(const struct call *c)
{
	const char *a = c->path[0], *b = c->path[1];

	if (strcmp(c->name, "rename") == 0)
		return probe_rc(syscall(SYS_rename, a, b));
	if (strcmp(c->name, "renameat") == 0)
		return probe_rc(syscall(SYS_renameat, c->dir[0], a, c->dir[1], b));
	if (strcmp(c->name, "renameat2") == 0)
		return probe_rc(
			syscall(SYS_renameat2, c->dir[0], a, c->dir[1], b, c->flags));
	if (strcmp(c->name, "link") == 0)
		return probe_rc(syscall(SYS_link, a, b));
	if (strcmp(c->name, "linkat") == 0)
		return probe_rc(
			syscall(SYS_linkat, c->dir[0], a, c->dir[1], b, c->flags));
	if (strncmp(c->name, "exec", 4) == 0)
		return execute(c);
	return -ENOSYS;
}

static void *carry_out_here(void *arg)
{
	return (void *)(intptr_t)carry_out(arg);
}

static bool threaded;

static void call(char **w)
{
	static struct call c;
	void *r = NULL;
	pthread_t t;

	c.name = w[2];
	c.flags = (unsigned)strtoul(w[3], NULL, 0);
	for (int i = 0; i < 2; i++) {
		c.dir[i] = strcmp(w[4 + 2 * i], "cwd") == 0 ? AT_FDCWD
							    : atoi(w[4 + 2 * i]);
		put_in(w[5 + 2 * i], c.path[i]);
		if (flip.on && strcmp(flip.kind, "memory") == 0) {
			char *begin = strchr(c.path[i], '@');

			if (begin) {
				memmove(begin + strlen(flip.a), begin + 1,
					strlen(begin + 1) + 1);
				memcpy(begin, flip.a, strlen(flip.a));
			}
			flip.memory[i] = begin;
		}
	}
	if (threaded && pthread_create(&t, NULL, carry_out_here, &c) == 0)
		pthread_join(t, &r);
	else
		r = carry_out_here(&c);
	flip.memory[0] = flip.memory[1] = NULL;
	printf("%s\t%s\n", w[1], r ? probe_errno_name(-(int)(intptr_t)r) : "ok");
}

/* --- the rest --- */

static int to_number(int fd, const char *number)
{
	if (fd < 0 || dup2(fd, atoi(number)) < 0)
		return -errno;
	return fd == atoi(number) ? 0 : probe_rc(close(fd));
}

static int open_as(const char *number, const char *kind, const char *path)
{
	char gone[] = "gone-XXXXXX";
	int pair[2], fd = -1;

	if (strcmp(kind, "path") == 0) {
		fd = open(path, O_PATH);
	} else if (strcmp(kind, "dir") == 0) {
		fd = open(path, O_RDONLY | O_DIRECTORY);
	} else if (strcmp(kind, "link") == 0) {
		fd = open(path, O_PATH | O_NOFOLLOW);
	} else if (strcmp(kind, "file") == 0) {
		fd = open(path, O_RDONLY);
	} else if (strcmp(kind, "pipe") == 0) {
		fd = pipe(pair) < 0 ? -1 : pair[0];
	} else if (strcmp(kind, "socket") == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
	} else if (strcmp(kind, "memfd") == 0) {
		fd = memfd_create("memfd", 0);
	} else if (strcmp(kind, "pidfd") == 0) {
		fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	} else if (mkdtemp(gone)) {
		fd = open(gone, O_PATH);
		rmdir(gone);
	}
	return to_number(fd, number);
}

static int own_namespaces(void)
{
	unsigned uid = getuid(), gid = getgid();
	char text[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	probe_write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1\n", uid);
	probe_write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1\n", gid);
	return probe_write_file("/proc/self/gid_map", text) < 0 ? -EPERM : 0;
}

/* A process of its own does the rest up to `end`, and we go on from there. */
static int part(bool new_pids)
{
	size_t depth = 1;
	int status;
	pid_t pid;

	if (new_pids && unshare(CLONE_NEWPID) < 0)
		return -errno;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(SECTION_SECONDS);
		return 0;
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	while (at < count && depth) {
		depth += strncmp(lines[at], "begin", 5) == 0;
		depth -= strncmp(lines[at], "end", 3) == 0;
		at++;
	}
	/* The process namespace's first process has done all that was left for us. */
	if (new_pids) {
		fflush(stdout);
		_exit(0);
	}
	return WIFSIGNALED(status) ? -EINTR : 0;
}

static int mount_quietly(const char *from, const char *to, const char *type,
			 unsigned long flags)
{
	char out[LONG];

	put_in(to, out);
	return probe_rc(mount(from, out, type, flags, NULL));
}

static int set_up(char **w)
{
	static char a[LONG], b[LONG];

	put_in(w[1] ? w[1] : "", a);
	put_in(w[1] && w[2] ? w[2] : "", b);
	if (strcmp(*w, "begin") == 0)
		return part(false);
	if (strcmp(*w, "pidns") == 0)
		return part(true);
	if (strcmp(*w, "userns") == 0)
		return own_namespaces();
	if (strcmp(*w, "thread") == 0)
		return threaded = true, 0;
	if (strcmp(*w, "chroot") == 0)
		return probe_rc(chroot(a));
	if (strcmp(*w, "chdir") == 0)
		return probe_rc(chdir(a));
	if (strcmp(*w, "proc") == 0)
		return mount_quietly("proc", a, "proc", 0);
	if (strcmp(*w, "tmpfs") == 0)
		return mount_quietly("tmpfs", a, "tmpfs", 0);
	if (strcmp(*w, "bind") == 0)
		return mount_quietly(a, b, NULL, MS_BIND | MS_REC);
	if (strcmp(*w, "mkdir") == 0)
		return probe_rc(mkdir(a, 0755));
	if (strcmp(*w, "symlink") == 0)
		return probe_rc(symlink(a, b));
	if (strcmp(*w, "fd") == 0) {
		put_in(w[3] ? w[3] : "", a);
		return open_as(w[1], w[2], a);
	}
	if (strcmp(*w, "flip") == 0)
		return start_flipping(w);
	if (strcmp(*w, "still") == 0)
		return stop_flipping();
	return -ENOSYS;
}

static void do_line(char *line)
{
	char *w[WORDS + 1] = { NULL }, *copy = strdup(line), *rest = copy;
	int r;

	for (size_t i = 0; i < WORDS && rest; i++)
		w[i] = strsep(&rest, "\t");
	if (strcmp(w[0], "end") == 0) {
		fflush(stdout);
		_exit(0);
	}
	if (strcmp(w[0], "call") == 0) {
		call(w);
	} else {
		r = set_up(w);
		if (r < 0)
			printf("setup\t%s\t%s\n", line, probe_errno_name(-r));
	}
	free(copy);
}

static int try_paths(const char *name)
{
	static char output[1 << 20];
	int r = read_lines(name);

	if (r < 0)
		return r;
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	name_map();
	while (at < count)
		do_line(lines[at++]);
	kill(child, SIGKILL);
	return 0;
}

const struct probe probes_paths[] = {
	{ "paths", try_paths },
	{ NULL, NULL },
};
