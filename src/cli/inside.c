/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/parse.h"
#include "ctl/inside_socket.h"
#include "print/term.h"
#include "sys/packet.h"

/* A connection, or -errno. */
static int knock(void)
{
	static const struct sockaddr_un name = { .sun_family = AF_UNIX,
						 .sun_path = INSIDE_SOCKET_PATH };
	AUTO_CLOSE int sock = -1;

	if (access(INSIDE_SOCKET_PATH, F_OK) < 0)
		return -errno;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return -errno;
	return TAKE_FD(sock);
}

/* The transaction that the environment names; NULL if it names none. */
static const char *known_txn(const struct op_ctx *ctx)
{
	const char *txn = op_ctx_env(ctx, "STET_TXN");
	bool known = txn && txn[0] == 't' && strspn(txn + 1, "0123456789") &&
		     !txn[1 + strspn(txn + 1, "0123456789")];

	return known ? txn : NULL;
}

static int refuse(const struct op_ctx *ctx, const struct verb *v, struct err *e)
{
	const char *txn = known_txn(ctx);

	err_set(e, ERR_DENIED,
		"%s is not possible from inside of a transaction: who started it decides",
		v->name);
	return err_hint(e,
			"inside: status, diff, log, show, checkpoint, rollback --to, "
			"restore; the rest outside, on %s",
			txn ? txn : "the transaction");
}

static bool same_comm(void)
{
	AUTO_CLOSE int first = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int self = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	char a[32], b[32];
	ssize_t n = first < 0 ? -1 : read(first, a, sizeof(a));

	return n > 0 && self >= 0 && read(self, b, sizeof(b)) == n &&
	       memcmp(a, b, (size_t)n) == 0;
}

/* The variable alone proves nothing: in a sandbox, process 1 is one of ours as well. */
static bool is_explored(const char *txn)
{
	return txn && getpid() != 1 && same_comm();
}

/* In stet explore no socket leads outside: a verb would find a state without transactions. */
static void refuse_explored(const char *txn, const struct verb *v, struct err *e)
{
	err_set(e, ERR_STATE,
		"%s: in here is only what %s holds, to be looked at (stet explore)",
		v->name, txn);
	err_hint(e, "type it outside: exit first, or another terminal");
}

static int ask(struct cli *c, const struct verb *v, int argc, char **argv, int sock,
	       struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;
	const char *cwd;

	if (op_ctx_cwd(&c->ctx, &cwd, e) < 0)
		return -1;
	buf_add(&b, INSIDE_HELLO, sizeof(INSIDE_HELLO));
	buf_addf(&b, "%s%c%s%c", cwd, 0, v->name, 0);
	/* The process outside does not see our terminal. First, so that a typed option wins. */
	if (v->flags & VERB_COLOR && term_wants_color(&c->ctx, 0, STDOUT_FILENO))
		buf_addf(&b, "--color%calways%c", 0, 0);
	for (int i = 1; i < argc; i++)
		buf_addf(&b, "%s%c", argv[i], 0);
	if (b.len > INSIDE_MAX || argc > INSIDE_WORDS - 4)
		return err_set(e, ERR_USAGE, "%s: too many words to be handed outside",
			       v->name);
	if (send(sock, b.data, b.len, MSG_NOSIGNAL) < 0)
		return err_sys(e, errno, "nobody answers outside");
	return 0;
}

/*
 * The whole answer, in @b, each piece with its letter and length before it; its status, or -1.
 * The process outside must not wait until a person has read our output.
 */
static int listen_to(int sock, struct buf *b, struct err *e)
{
	AUTO_FREE char *m = xmalloc(INSIDE_MAX);
	ssize_t n;

	for (;;) {
		n = packet_recv(sock, m, INSIDE_MAX, 0);
		if (n < 0)
			return err_sys(e, (int)n, "nobody answers outside");
		if (n == 0)
			return err_set(e, ERR_SYSTEM, "there was no answer from outside");
		if (*m == 'x' && n == 2)
			return (unsigned char)m[1];
		buf_add(b, m, 1);
		n--;
		buf_add(b, (const char *)&n, sizeof(n));
		buf_add(b, m + 1, (size_t)n);
	}
}

static void show(const struct buf *b, FILE *out)
{
	const char *p = buf_str(b), *end = p + b->len;
	ssize_t n;

	while (p < end) {
		FILE *f = *p == 'o' ? out : stderr;

		memcpy(&n, p + 1, sizeof(n));
		p += 1 + sizeof(n);
		if (f == stderr)
			fflush(out);
		fwrite(p, 1, (size_t)n, f);
		p += n;
	}
}

/* The words go outside as they are; where a result is written to is decided here. */
static int relay_line(struct cli *c, const struct verb *v, int argc, char **argv,
		      int sock, bool json)
{
	AUTO_BUF struct buf answer = BUF_INIT;
	struct pager pager = { 0, stdout };
	struct err e = { 0 };
	int status = -1;

	if (v->inside != INSIDE_ASKS) {
		refuse(&c->ctx, v, &e);
		return cli_report(c, v, json, &e);
	}
	signal(SIGPIPE, SIG_DFL);
	if (ask(c, v, argc, argv, sock, &e) == 0)
		status = listen_to(sock, &answer, &e);
	if (status < 0 || (json && report_begin(&c->report, stdout, &e) < 0))
		return cli_report(c, v, json && status < 0, &e);
	if (json)
		pager.out = c->report.out;
	else if (v->flags & VERB_PAGER)
		pager_open(&c->ctx, &pager);
	show(&answer, pager.out);
	pager_close(&pager);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	err_sys(&e, errno ? errno : EIO, "standard output");
	return cli_report(c, v, false, &e);
}

int inside_line(struct cli *c, const struct verb *v, int argc, char **argv)
{
	AUTO_CLOSE int sock = v->inside == INSIDE_ANYWHERE ? -1 : knock();
	const char *txn = known_txn(&c->ctx);
	bool explored = sock == -ENOENT && is_explored(txn);
	struct verb_common common = { 0 };
	struct err e = { 0 };
	int status;

	/* No process listens at the socket: the sandbox is ending. */
	if (v->inside == INSIDE_ANYWHERE || (!explored && sock < 0 && sock != -EAGAIN))
		return -1;
	if (argc) /* not just "stet" */
		parse_report(v, argc, argv, &common);
	if (common.json && cli_open_report(c, v, &common, &e) < 0) {
		status = cli_report(c, v, false, &e);
	} else if (explored) {
		refuse_explored(txn, v, &e);
		status = cli_report(c, v, common.json, &e);
	} else {
		status = relay_line(c, v, argc, argv, sock, common.json);
	}
	return cli_end_report(c, v, status);
}
