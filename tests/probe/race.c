/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec-race-argv=N,DIR and exec-race-path=N,DIR execute N times a program whose arguments
 * (or whose name) another thread changes all the time between one that is allowed and one
 * that is not: the words `yes` and `no`, or the programs DIR/yes and DIR/no. Both are copies of
 * the probe. Answer: "ran=N refused=N killed=N forbidden=N"; the last is how often the
 * forbidden one ran.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { RAN_FORBIDDEN = 42 };

static char name[4096];
static char word[4] = "yes";
static atomic_int over;

static void set(volatile char *at, const char *text)
{
	for (int i = 0; i < 4; i++)
		at[i] = text[i];
	for (volatile int i = 0; i < 300; i++)
		;
}

static void *flip(void *at)
{
	while (!over) {
		set(at, "no\0");
		set(at, "yes");
	}
	return NULL;
}

/* What was started: says by its status which of the two it is. */
int probe_victim(char **argv)
{
	char exe[4096] = "";
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n > 3 && strcmp(exe + n - 3, "/no") == 0)
		return RAN_FORBIDDEN;
	return strcmp(argv[2], "no") == 0 ? RAN_FORBIDDEN : 0;
}

static pid_t start(char **args)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execve(name, args, environ);
		_exit(100);
	}
	return pid;
}

static int race(const char *arg, int names)
{
	static char run[] = "victim", tool[] = "race";
	char *args[] = { tool, run, word, NULL };
	long n = atol(arg), ran = 0, refused = 0, killed = 0, forbidden = 0;
	const char *dir = strchr(arg, ',');
	char *tail; /* the end of the name */
	pthread_t t;
	int status;

	if (!dir)
		return -EINVAL;
	tail = name + snprintf(name, sizeof(name) - 4, "%s/yes", dir + 1) - 3;
	pthread_create(&t, NULL, flip, names ? tail : word);
	while (n-- > 0) {
		pid_t pid = start(args);

		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return -errno;
		if (WIFSIGNALED(status))
			killed++;
		else if (WEXITSTATUS(status) == RAN_FORBIDDEN)
			forbidden++;
		else if (WEXITSTATUS(status) == 0)
			ran++;
		else
			refused++;
	}
	over = 1;
	pthread_join(t, NULL);
	probe_say("ran=%ld refused=%ld killed=%ld forbidden=%ld", ran, refused, killed,
		  forbidden);
	return PROBE_SAID;
}

static int try_argv(const char *arg)
{
	return race(arg, 0);
}

static int try_path(const char *arg)
{
	return race(arg, 1);
}

const struct probe probes_race[] = {
	{ "exec-race-argv", try_argv },
	{ "exec-race-path", try_path },
	{ NULL, NULL },
};
