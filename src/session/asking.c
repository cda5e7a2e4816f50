/* SPDX-License-Identifier: Apache-2.0 */
#include "session/asking.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sys/packet.h"

/* Callers at one time; the step in which we look whether we are to end. */
enum {
	CLIENTS_MAX = 8,
	STEP_MS = 50,
	WORDS_MAX = 200,
	WORD_MAX = 2000,
	TEXT_MAX = 1 << 17
};

static const char *const names[] = {
	[CONSENT_NO] = "no", [CONSENT_YES] = "yes", [CONSENT_ALWAYS] = "always"
};

const char *consent_name(enum consent c)
{
	return names[c];
}

static json_t *text(const char *s)
{
	AUTO_BUF struct buf b = BUF_INIT;
	size_t len = strlen(s);

	if (len <= WORD_MAX && text_is_utf8(s, len))
		return json_string(s);
	text_escape(&b, s, len < WORD_MAX ? len : WORD_MAX);
	if (len > WORD_MAX)
		buf_adds(&b, "…");
	return json_string(buf_str(&b));
}

static void set(json_t *o, const char *key, const char *s)
{
	if (s)
		json_object_set_new(o, key, text(s));
}

static char *question(const struct consent_question *q)
{
	json_t *o = json_object(), *argv = json_array();
	char id[32], *s;
	size_t i;

	snprintf(id, sizeof(id), "t%lld", (long long)q->txn);
	set(o, "txn", id);
	set(o, "rule", q->verdict->rule);
	set(o, "why", q->verdict->why);
	set(o, "hint", q->verdict->hint);
	for (i = 0; i < q->facts->argc && i < WORDS_MAX; i++)
		json_array_append_new(argv, text(q->facts->argv[i]));
	json_object_set_new(o, "argv", argv);
	if (q->facts->argc > i)
		json_object_set_new(o, "argc", json_integer((json_int_t)q->facts->argc));
	set(o, "exe", q->facts->exe);
	set(o, "cwd", q->facts->cwd);
	s = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!s)
		abort();
	return s;
}

/* A socket and the address of `ask` in @dir; by descriptor, as a path may be too long. */
static int prepare(const char *dir, int *at, struct sockaddr_un *name)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*at = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*at < 0)
		return -errno;
	snprintf(name->sun_path, sizeof(name->sun_path), "/proc/self/fd/%d/" ASK_NAME,
		 *at);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Somebody wants us to end: the relay will see to it once we are back. */
static bool called_off(int64_t until)
{
	struct timespec t;
	sigset_t s;

	if (sigpending(&s) == 0 && (sigismember(&s, SIGTERM) || sigismember(&s, SIGINT) ||
				    sigismember(&s, SIGHUP) || sigismember(&s, SIGQUIT)))
		return true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return until && (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 >= until;
}

struct callers {
	struct pollfd p[1 + CLIENTS_MAX]; /* the first is the listener */
	nfds_t n;
};

static void welcome(struct callers *c, const char *text)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	int fd = accept4(c->p[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (c->n == 1 + CLIENTS_MAX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
	    (who.uid != geteuid() && who.uid != 0) ||
	    send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) {
		close(fd);
		return;
	}
	c->p[c->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* The answer of caller @i, or -1. One that says anything else is sent away. */
static int hear(struct callers *c, nfds_t i)
{
	char said[16] = "";
	ssize_t n = packet_recv(c->p[i].fd, said, sizeof(said) - 1, 0);

	for (int k = 0; n > 0 && k < (int)ARRAY_SIZE(names); k++)
		if (strcmp(said, names[k]) == 0) {
			send(c->p[i].fd, "ok", 2, MSG_NOSIGNAL);
			return k;
		}
	close(c->p[i].fd);
	c->p[i] = c->p[--c->n];
	return -1;
}

static int listen_to(struct callers *c, const char *text, const struct ask_wait *w)
{
	int answer = -1;

	while (answer < 0 && !called_off(w->until)) {
		if (w->meanwhile)
			w->meanwhile(w->arg);
		if (poll(c->p, c->n, STEP_MS) <= 0)
			continue;
		for (nfds_t i = c->n - 1; i > 0 && answer < 0; i--)
			if (c->p[i].revents)
				answer = hear(c, i);
		if (c->p[0].revents)
			welcome(c, text);
	}
	while (c->n > 1)
		close(c->p[--c->n].fd);
	return answer < 0 ? CONSENT_NO : answer;
}

enum consent asking_wait(const char *dir, const struct consent_question *q,
			 const struct ask_wait *w)
{
	AUTO_FREE char *text = question(q);
	AUTO_CLOSE int at = -1;
	struct sockaddr_un name;
	AUTO_CLOSE int sock = prepare(dir, &at, &name);
	struct callers c = { .p[0] = { .fd = sock, .events = POLLIN }, .n = 1 };
	int answer;

	if (sock < 0)
		return CONSENT_NO;
	unlinkat(at, ASK_NAME, 0);
	if (bind(sock, (struct sockaddr *)&name, sizeof(name)) < 0 || listen(sock, 8) < 0)
		return CONSENT_NO;
	answer = listen_to(&c, text, w);
	unlinkat(at, ASK_NAME, 0);
	return (enum consent)answer;
}

/* Receives one packet, or -errno. With a time limit: the listener may be stopped. */
static ssize_t receive(int sock, char *to, size_t len)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (poll(&p, 1, 5000) <= 0)
		return -ETIMEDOUT;
	return packet_recv(sock, to, len, 0);
}

int asking_look(const char *dir, int *sock, char **question_out)
{
	AUTO_CLOSE int at = -1;
	struct sockaddr_un name;
	AUTO_CLOSE int fd = prepare(dir, &at, &name);
	AUTO_FREE char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return errno == ENOENT || errno == ECONNREFUSED ? 1 : -errno;
	text = xmalloc(TEXT_MAX);
	n = receive(fd, text, TEXT_MAX - 1);
	if (n <= 0)
		return n == 0 ? 1 : (int)n;
	text[n] = '\0';
	*question_out = TAKE_PTR(text);
	*sock = TAKE_FD(fd);
	return 0;
}

int asking_answer(int sock, enum consent answer, struct err *e)
{
	char ok[8];

	if (send(sock, names[answer], strlen(names[answer]), MSG_NOSIGNAL) < 0 ||
	    receive(sock, ok, sizeof(ok)) != 2)
		return err_set(e, ERR_STATE, "nobody waits for the answer any more");
	return 0;
}
