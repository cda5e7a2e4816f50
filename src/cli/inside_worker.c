/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/inside.h"
#include "cli/inside_worker.h"
#include "review/checkpoint.h"
#include "verbs/verbs.h"

/* How long a client may take to send its request, or to read the answer. */
enum { PATIENCE_S = 3, CHUNK = 16384 };

struct voice {
	int sock;
	char letter;
};

/* Ends the process if the client has gone: there is nothing left to do. */
static void say(int sock, char letter, const char *text, size_t n)
{
	AUTO_FREE char *m = xmalloc(n + 1);

	*m = letter;
	memcpy(m + 1, text, n);
	if (send(sock, m, n + 1, MSG_NOSIGNAL) != (ssize_t)n + 1)
		_exit(1);
}

static ssize_t voice_write(void *cookie, const char *text, size_t n)
{
	const struct voice *v = cookie;

	for (size_t done = 0; done < n; done += CHUNK)
		say(v->sock, v->letter, text + done, n - done < CHUNK ? n - done : CHUNK);
	return (ssize_t)n;
}

static int redirect(struct voice *out, struct voice *err)
{
	static const cookie_io_functions_t io = { .write = voice_write };

	stdout = fopencookie(out, "w", io);
	stderr = fopencookie(err, "w", io);
	if (!stdout || !stderr)
		return -1;
	return setvbuf(stdout, NULL, _IOFBF, CHUNK) ||
			       setvbuf(stderr, NULL, _IOFBF, CHUNK)
		       ? -1
		       : 0;
}

bool inside_parse(char *b, size_t len, char *words[INSIDE_WORDS + 1], size_t *n)
{
	size_t at = sizeof(INSIDE_HELLO);

	if (len <= at || len > INSIDE_MAX || b[len - 1] ||
	    memcmp(b, INSIDE_HELLO, at) != 0)
		return false;
	for (*n = 0; at < len; at += strlen(b + at) + 1) {
		if (*n == INSIDE_WORDS)
			return false;
		words[(*n)++] = b + at;
	}
	words[*n] = NULL;
	return *n >= 2 && words[0][0] == '/' && strlen(words[0]) < PATH_MAX;
}

/* One request, in @b; its words in @words. False if it is none. */
static bool hear(int sock, char *b, char *words[INSIDE_WORDS + 1], size_t *n)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	ssize_t len;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* Descriptors that come with it are dropped by the kernel: there is no room for them. */
	len = recv(sock, b, INSIDE_MAX, MSG_TRUNC);
	return len > 0 && inside_parse(b, (size_t)len, words, n);
}

static int answer(struct cli *c, char **words, size_t n)
{
	const struct verb *v = verb_find(words[1]);
	struct err e;

	if (!v || v->inside != INSIDE_ASKS) {
		err_set(&e, ERR_DENIED, "not possible from inside of a transaction");
		return cli_report(c, v, false, &e);
	}
	c->ctx.cwd = xstrdup(words[0]);
	return cli_line(c, v, (int)n - 1, words + 1);
}

static int receive(struct cli *c, int sock)
{
	AUTO_FREE char *b = xmalloc(INSIDE_MAX);
	AUTO_FREE char **words = xcalloc(INSIDE_WORDS + 1, sizeof(*words));
	struct voice out = { sock, 'o' }, err = { sock, 'e' };
	char status;
	size_t n;

	if (!hear(sock, b, words, &n) || redirect(&out, &err) < 0)
		return 1;
	status = (char)answer(c, words, n);
	fclose(stdout);
	fclose(stderr);
	say(sock, 'x', &status, 1);
	return 0;
}

int inside_worker_main(int argc, char **argv, char *const *env)
{
	struct cli c;
	struct err e;
	int status;

	if (argc != 5)
		return ERR_USAGE;
	setenv("STET_STATE_DIR", argv[2], 1);
	cli_open(&c, env);
	c.ctx.only = atoll(argv[3]);
	if (strcmp(argv[4], "-") == 0)
		status = point_interval(&c.ctx, &e) < 0;
	else
		status = receive(&c, atoi(argv[4]));
	cli_close(&c);
	return status;
}
