/* SPDX-License-Identifier: Apache-2.0 */
#include "print/term.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

bool term_wants_color(const struct op_ctx *ctx, int choice, int fd)
{
	const char *force = op_ctx_env(ctx, "CLICOLOR_FORCE");
	const char *term = op_ctx_env(ctx, "TERM");

	if (choice > 1)
		return choice == 2;
	if (op_ctx_env(ctx, "NO_COLOR"))
		return false;
	if (force && strcmp(force, "0") != 0)
		return true;
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

int term_width(int fd)
{
	struct winsize ws;

	return ioctl(fd, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

bool term_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void on_interrupt(int sig)
{
	(void)sig; /* it only has to end the read */
}

int term_choice(const char *line, const char *const *words)
{
	char word[16];
	size_t n = 0;
	int found = -1;

	for (; *line; line++) {
		if (isspace((unsigned char)*line))
			continue;
		if (n + 1 == sizeof(word))
			return -1;
		word[n++] = *line;
	}
	word[n] = '\0';
	for (int i = 0; n && words[i]; i++) {
		if (strncasecmp(word, words[i], n) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static bool wait_input(int64_t until)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t left;
	int r;

	do {
		left = until - clock_ms(CLOCK_MONOTONIC_COARSE);
		r = poll(&p, 1, left < 0 ? 0 : (int)left);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

enum { INTERRUPT = 3 };

/* A whole line, cut to fit: the rest of a long one is no answer to the next question. */
static int read_line(char *line, size_t size, int64_t until)
{
	size_t n = 0;
	char c = '\0';

	do {
		if ((until && !wait_input(until)) || read(STDIN_FILENO, &c, 1) != 1 ||
		    c == INTERRUPT)
			return -1;
		if (n + 1 < size)
			line[n++] = c;
	} while (c != '\n');
	line[n] = '\0';
	return 0;
}

static void say_choices(const char *const *words)
{
	fputs("  type", stderr);
	for (size_t i = 0; words[i]; i++)
		fprintf(stderr, "%s %c", !i ? "" : words[i + 1] ? "," : " or", *words[i]);
	fputs(", or the word\n", stderr);
}

static int ask(const char *question, const char *const *words, int64_t until)
{
	char line[64];
	int a;

	for (;;) {
		fputs(question, stderr);
		fflush(stderr);
		if (read_line(line, sizeof(line), until) < 0) {
			fputc('\n', stderr);
			return -1;
		}
		a = term_choice(line, words);
		if (a >= 0)
			return a;
		say_choices(words);
	}
}

int term_ask(const char *question, const char *const *words)
{
	struct sigaction act = { .sa_handler = on_interrupt }, old;
	int a;

	sigaction(SIGINT, &act, &old);
	a = ask(question, words, 0);
	sigaction(SIGINT, &old, NULL);
	return a;
}

int term_ask_between(const char *question, const char *const *words, int64_t until)
{
	struct termios old, line;
	int a;

	if (tcgetattr(STDIN_FILENO, &old) < 0)
		return -1;
	line = old;
	line.c_iflag |= ICRNL;
	line.c_oflag |= OPOST | ONLCR;
	line.c_lflag |= ICANON | ECHO | ECHOE | ECHOK;
	line.c_lflag &= ~(tcflag_t)ISIG;
	line.c_cc[VEOF] = 4;
	/* Signals may be blocked: Ctrl-C is a character, and one that ends a line. */
	line.c_cc[VEOL] = INTERRUPT;
	/* First: whoever answers as soon as he is asked is heard, with ^C, too. */
	tcsetattr(STDIN_FILENO, TCSANOW, &line);
	a = ask(question, words, until);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	return a;
}

enum { PATIENCE_MS = 1000, REDRAW_MS = 100, BAR_MAX = 40 };

static void draw(void *arg, uint64_t done, uint64_t total)
{
	struct progress *p = arg;
	int64_t now = clock_ms(CLOCK_MONOTONIC_COARSE);
	char bar[BAR_MAX + 1];
	int wide = p->columns > BAR_MAX + 40 ? BAR_MAX : 10;
	int full;

	if (now - p->begun < PATIENCE_MS || now - p->drawn < REDRAW_MS || !total)
		return;
	p->drawn = now;
	if (done > total)
		done = total;
	full = (int)((double)done / (double)total * wide);
	memset(bar, ' ', (size_t)wide);
	memset(bar, '=', (size_t)full);
	bar[wide] = '\0';
	fprintf(stderr, "\r[%s] %3d %%  %llu of %llu", bar,
		(int)((double)done / (double)total * 100), (unsigned long long)done,
		(unsigned long long)total);
	fflush(stderr);
}

void progress_begin(struct op_ctx *ctx, struct progress *p)
{
	const char *term = op_ctx_env(ctx, "TERM");

	*p = (struct progress){ .begun = clock_ms(CLOCK_MONOTONIC_COARSE) };
	if (!isatty(STDERR_FILENO) || !term || strcmp(term, "dumb") == 0)
		return;
	p->columns = term_width(STDERR_FILENO);
	ctx->progress = draw;
	ctx->progress_arg = p;
}

void progress_end(struct op_ctx *ctx, struct progress *p)
{
	ctx->progress = NULL;
	ctx->progress_arg = NULL;
	if (p->drawn)
		fputs("\r\033[K", stderr);
}

/* The command line to run, or NULL for none. */
static const char *pager_command(const struct op_ctx *ctx)
{
	static const char *const names[] = { "STET_PAGER", "GIT_PAGER", "PAGER" };
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const char *s = NULL;

		for (n = 0; ctx->env && ctx->env[n]; n++)
			if (strncmp(ctx->env[n], names[i], strlen(names[i])) == 0 &&
			    ctx->env[n][strlen(names[i])] == '=')
				s = ctx->env[n] + strlen(names[i]) + 1;
		/* Set and empty, or cat: the user wants none. */
		if (s)
			return *s && strcmp(s, "cat") != 0 ? s : NULL;
	}
	return "less";
}

/* Words of a pager's command line; a shell is needed only where it says so. */
static char **pager_argv(const char *command)
{
	char **argv = NULL;

	if (strpbrk(command, "|&;<>()$`\\\"'*?[#~%")) {
		strv_push(&argv, xstrdup("sh"));
		strv_push(&argv, xstrdup("-c"));
		strv_push(&argv, xstrdup(command));
		return argv;
	}
	while (*(command += strspn(command, " \t"))) {
		size_t n = strcspn(command, " \t");

		strv_push(&argv, xstrndup(command, n));
		command += n;
	}
	return argv;
}

/* less leaves short output on the screen and shows colours, unless told otherwise. */
static char **pager_env(const struct op_ctx *ctx)
{
	bool less = false, lv = false;
	char **env = NULL;
	size_t i;

	for (i = 0; ctx->env && ctx->env[i]; i++) {
		less |= strncmp(ctx->env[i], "LESS=", 5) == 0;
		lv |= strncmp(ctx->env[i], "LV=", 3) == 0;
		strv_push(&env, xstrdup(ctx->env[i]));
	}
	if (!less)
		strv_push(&env, xstrdup("LESS=FRX"));
	if (!lv)
		strv_push(&env, xstrdup("LV=-c"));
	return env;
}

static int spawn(char *const *argv, char *const *env, int in, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t defaults;
	int r;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGQUIT);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	r = posix_spawnp(pid, argv[0], &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return r;
}

void pager_open(const struct op_ctx *ctx, struct pager *p)
{
	const char *term = op_ctx_env(ctx, "TERM");
	const char *command = pager_command(ctx);
	char **argv, **env;
	mode_t own;
	int fds[2];

	p->pid = 0;
	p->out = stdout;
	if (!isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0 || !command)
		return;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	argv = pager_argv(command);
	env = pager_env(ctx);
	own = umask(ctx->umask);
	if (!argv || spawn(argv, env, fds[0], &p->pid) != 0)
		p->pid = 0;
	umask(own);
	strv_free(argv);
	strv_free(env);
	close(fds[0]);
	if (p->pid)
		p->out = fdopen(fds[1], "w");
	if (!p->pid || !p->out) {
		close(fds[1]);
		if (p->pid)
			waitpid(p->pid, NULL, 0);
		p->pid = 0;
		p->out = stdout;
		return;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

void pager_close(struct pager *p)
{
	if (!p->pid)
		return;
	fclose(p->out);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	p->out = stdout;
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}
