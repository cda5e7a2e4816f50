/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/parts.h"
#include "audit/read.h"
#include "audit/redact.h"
#include "audit/volumes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/rmtree.h"

struct books {
	char dir[64];
	struct audit *a;
	char told[4096]; /* "LINE what;" */
	uint64_t records;
};

static int setup(void **state)
{
	struct books *b = xcalloc(1, sizeof(*b));
	const char *tmp = getenv("TMPDIR");

	snprintf(b->dir, sizeof(b->dir), "%.40s/audit-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(b->dir) || audit_open(b->dir, &b->a) < 0)
		return -1;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct books *b = *state;
	AUTO_FREE char *parent = xstrndup(b->dir,
					  (size_t)(strrchr(b->dir, '/') - b->dir));
	AUTO_CLOSE int fd = open(parent, O_RDONLY | O_DIRECTORY);
	int r;

	audit_close(b->a);
	r = rmtree_at(fd, strrchr(b->dir, '/') + 1, NULL);
	free(b);
	return r;
}

static void complain(void *arg, uint64_t line, const char *what)
{
	struct books *b = arg;
	size_t n = strlen(b->told);

	snprintf(b->told + n, sizeof(b->told) - n, "%llu %s;", (unsigned long long)line,
		 what);
}

static const char *verify(struct books *b)
{
	struct err e;

	b->told[0] = '\0';
	assert_int_equal(audit_verify(b->dir, complain, b, &b->records, &e), 0);
	return b->told;
}

static void write_some(struct books *b, int n)
{
	for (int i = 0; i < n; i++) {
		const struct audit_op o = {
			.event = "end", .txn = i + 1, .has_exit = true, .exit_status = i
		};

		assert_int_equal(audit_op(b->a, &o), 0);
	}
}

static char *slurp(const struct books *b, const char *name, size_t *len)
{
	AUTO_FREE char *path = xasprintf("%s/%s", b->dir, name);
	AUTO_CLOSE int fd = open(path, O_RDONLY);
	char *text = xmalloc(1 << 20);
	ssize_t n = read(fd, text, (1 << 20) - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	*len = (size_t)n;
	return text;
}

static void spit(const struct books *b, const char *name, const char *text, size_t len)
{
	AUTO_FREE char *path = xasprintf("%s/%s", b->dir, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

	assert_int_equal(write(fd, text, len), len);
}

static char *line_at(char *text, int n)
{
	while (n--)
		text = strchr(text, '\n') + 1;
	return text;
}

static void test_sound_books(void **state)
{
	struct books *b = *state;
	const char *argv[] = { "curl", "-H", "Authorization: Bearer xyzzy", NULL };
	const struct audit_exec x = { .txn = 3,
				      .pid = 7,
				      .ppid = 2,
				      .exe = "/usr/bin/curl",
				      .cwd = "/home/\xff",
				      .argv = argv,
				      .argc = 3,
				      .argc_all = 5,
				      .verdict = "deny",
				      .rule = "net",
				      .outcome = "denied" };
	AUTO_FREE char *text = NULL;
	size_t len;

	assert_string_equal(verify(b), "");
	write_some(b, 5);
	assert_int_equal(audit_exec(b->a, &x), 0);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 6);
	text = slurp(b, AUDIT_LOG, &len);
	assert_non_null(strstr(text,
			       "\"event\":\"exec\",\"txn\":\"t3\",\"pid\":7,\"ppid\":2,"
			       "\"verdict\":\"deny\",\"rule\":\"net\","
			       "\"outcome\":\"denied\",\"exe\":\"/usr/bin/curl\","
			       "\"argv\":[\"curl\",\"-H\","
			       "\"Authorization: Bearer ***\"],\"argc\":5,"
			       "\"cwd\":\"/home/\\\\xff\""));
	assert_null(strstr(text, "xyzzy"));
}

static void test_books_go_on(void **state)
{
	struct books *b = *state;

	write_some(b, 3);
	audit_close(b->a);
	assert_int_equal(audit_open(b->dir, &b->a), 0);
	write_some(b, 3);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 6);
}

/* Written at the end, or when there are many; others' records come before or after. */
static void test_gathered(void **state)
{
	struct books *b = *state;
	AUTO_FREE char *early = NULL, *late = NULL;
	size_t len;

	write_some(b, 1);
	audit_gather(b->a, true);
	audit_gather(b->a, true);
	write_some(b, 3);
	early = slurp(b, AUDIT_LOG, &len);
	audit_gather(b->a, false);
	audit_gather(b->a, false);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 4);
	late = slurp(b, AUDIT_LOG, &len);
	assert_true(strlen(late) > strlen(early));
	audit_gather(b->a, true);
	write_some(b, 2000); /* more than gathers */
	audit_gather(b->a, false);
	audit_gather(b->a, true);
	audit_gather(b->a, false); /* nothing */
	write_some(b, 1);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 2005);
}

/* Many at once: no record is lost, and the chain holds. */
static void test_many_writers(void **state)
{
	struct books *b = *state;
	int status;

	audit_close(b->a);
	b->a = NULL;
	for (int i = 0; i < 6; i++) {
		if (fork() == 0) {
			if (audit_open(b->dir, &b->a) < 0)
				_exit(1);
			for (int k = 0; k < 50; k++)
				if (audit_op(b->a,
					     &(struct audit_op){ .event = "begin" }))
					_exit(1);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 300);
}

enum harm {
	EDIT,
	EDIT_REHASHED,
	REMOVE,
	REMOVE_FIRST,
	REMOVE_LAST,
	CUT_ALL,
	SWAP,
	REPEAT,
	INSERT,
	CUT_MIDDLE_OF_LINE,
	NO_HEAD,
	OLD_HEAD_HASH,
	BAD_HEAD,
	NUL,
};

static const struct {
	const char *name;
	enum harm harm;
	const char *told;
} harms[] = {
	{ "an edited number", EDIT, "4 was edited: its hash does not fit;" },
	{ "an edit with a hash that fits", EDIT_REHASHED,
	  "5 does not follow: the record before it was another one;" },
	{ "a line removed", REMOVE, "4 does not follow: records before it are missing;" },
	{ "the first line removed", REMOVE_FIRST,
	  "1 does not follow: records before it are missing;" },
	{ "the last line removed", REMOVE_LAST,
	  "7 is the last: 1 record after it is missing;" },
	{ "everything removed", CUT_ALL,
	  "0 audit.jsonl is empty: 8 records are missing;" },
	{ "two lines exchanged", SWAP,
	  "4 does not follow: records before it are missing;5 is out of order;"
	  "6 does not follow: records before it are missing;" },
	{ "a line twice", REPEAT, "5 is out of order;" },
	{ "a foreign line", INSERT, "5 is no record;" },
	{ "cut in the middle of a line", CUT_MIDDLE_OF_LINE,
	  "8 is only the beginning of a record: a crash; the next record says so;"
	  "7 is the last: 1 record after it is missing;" },
	{ "no head", NO_HEAD,
	  "0 audit.head is missing: whether the end is whole is not known;" },
	{ "a head of other books", OLD_HEAD_HASH,
	  "8 is not the end that audit.head tells of;" },
	{ "a damaged head", BAD_HEAD, "0 audit.head is damaged;" },
	{ "a NUL", NUL,
	  "4 is no record;5 does not follow: records before it are missing;" },
};

static void do_harm(struct books *b, enum harm harm)
{
	AUTO_FREE char *head_path = xasprintf("%s/" AUDIT_HEAD, b->dir);
	size_t len, hlen, n4, n5;
	AUTO_FREE char *text = slurp(b, AUDIT_LOG, &len);
	AUTO_FREE char *head = slurp(b, AUDIT_HEAD, &hlen);
	char *l4 = line_at(text, 3), *l5 = line_at(text, 4), *l6 = line_at(text, 5);
	char *l8 = line_at(text, 7), *p;
	char hash[HASH_HEX + 1];
	struct buf out = BUF_INIT;

	n4 = (size_t)(l5 - l4);
	n5 = (size_t)(l6 - l5);
	buf_add(&out, text, (size_t)(l4 - text));
	switch (harm) {
	case EDIT:
		p = strstr(l4, "\"exit\":3");
		p[7] = '4';
		break;
	case EDIT_REHASHED:
		p = strstr(l4, "\"exit\":3");
		p[7] = '4';
		p = strstr(l4, ",\"hash\"");
		hash_hex(l4, (size_t)(p - l4), hash);
		memcpy(p + 9, hash, HASH_HEX);
		break;
	case REMOVE:
		buf_add(&out, l5, len - (size_t)(l5 - text));
		spit(b, AUDIT_LOG, out.data, out.len);
		buf_free(&out);
		return;
	case REMOVE_FIRST:
		p = line_at(text, 1);
		spit(b, AUDIT_LOG, p, len - (size_t)(p - text));
		buf_free(&out);
		return;
	case REMOVE_LAST:
		len = (size_t)(l8 - text);
		break;
	case CUT_ALL:
		len = 0;
		break;
	case CUT_MIDDLE_OF_LINE:
		len = (size_t)(l8 - text) + 40;
		break;
	case SWAP:
		buf_add(&out, l5, n5);
		buf_add(&out, l4, n4);
		buf_add(&out, l6, len - (size_t)(l6 - text));
		spit(b, AUDIT_LOG, out.data, out.len);
		buf_free(&out);
		return;
	case REPEAT:
	case INSERT:
		buf_add(&out, l4, n4);
		if (harm == REPEAT)
			buf_add(&out, l4, n4);
		else
			buf_adds(&out, "{\"event\":\"exec\"}\n");
		buf_add(&out, l5, len - (size_t)(l5 - text));
		spit(b, AUDIT_LOG, out.data, out.len);
		buf_free(&out);
		return;
	case NO_HEAD:
		unlink(head_path);
		break;
	case OLD_HEAD_HASH:
		head[hlen - 3] = head[hlen - 3] == 'a' ? 'b' : 'a';
		spit(b, AUDIT_HEAD, head, hlen);
		break;
	case BAD_HEAD:
		spit(b, AUDIT_HEAD, "nonsense\n", 9);
		break;
	case NUL:
		l4[30] = '\0';
		break;
	}
	buf_free(&out);
	spit(b, AUDIT_LOG, text, len);
}

static void test_harm_is_found(void **state)
{
	struct books *b = *state;

	for (size_t i = 0; i < ARRAY_SIZE(harms); i++) {
		void *fresh = NULL;

		assert_int_equal(setup(&fresh), 0);
		b = fresh;
		write_some(b, 8);
		assert_string_equal(verify(b), "");
		do_harm(b, harms[i].harm);
		if (strcmp(verify(b), harms[i].told) != 0)
			fail_msg("%s: told '%s', not '%s'", harms[i].name, b->told,
				 harms[i].told);
		teardown(&fresh);
	}
}

/* A crash in the middle of a line: the next record closes it, says so, and all is well. */
static void test_torn_line(void **state)
{
	static const char part[] = "{\"seq\":5,\"prev\":\"0123\0\0";
	struct books *b = *state;
	AUTO_FREE char *path = xasprintf("%s/" AUDIT_LOG, b->dir);
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1;
	size_t len;

	write_some(b, 4);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, part, sizeof(part)), sizeof(part));
	assert_string_equal(verify(b),
			    "5 is only the beginning of a record: a crash; the next "
			    "record says so;");
	write_some(b, 2);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 7);
	text = slurp(b, AUDIT_LOG, &len);
	assert_non_null(memmem(text, len, "\"event\":\"torn\",\"n\":24", 20));
}

/* Killed after the line, before the head: the line counts. */
static void test_head_behind(void **state)
{
	struct books *b = *state;
	AUTO_FREE char *head = NULL;
	size_t len;

	write_some(b, 4);
	head = slurp(b, AUDIT_HEAD, &len);
	write_some(b, 2);
	spit(b, AUDIT_HEAD, head, len);
	assert_string_equal(verify(b), "");
	write_some(b, 1);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 7);
}

/* What was cut off stays known after the books have gone on. */
static void test_cut_is_remembered(void **state)
{
	struct books *b = *state;

	write_some(b, 8);
	do_harm(b, REMOVE_LAST);
	write_some(b, 2);
	assert_non_null(strstr(verify(b), "records before it are missing"));
}

static void test_lost_head_is_remembered(void **state)
{
	struct books *b = *state;

	write_some(b, 8);
	do_harm(b, NO_HEAD);
	audit_close(b->a);
	assert_int_equal(audit_open(b->dir, &b->a), 0);
	write_some(b, 2);
	assert_string_equal(verify(b), "9 says that audit.head had been lost;");
}

static size_t volumes(const struct books *b, uint64_t *first)
{
	AUTO_CLOSE int dir = open(b->dir, O_PATH | O_DIRECTORY);
	struct volumes s;
	size_t n;

	assert_int_equal(volumes_list(dir, &s), 0);
	n = s.n;
	if (first)
		*first = n ? s.v[0] : 0;
	volumes_free(&s);
	return n;
}

/* Full volumes are put aside, the oldest go, and the chain is whole from there on. */
static void test_volumes(void **state)
{
	struct books *b = *state;
	char name[VOLUME_NAME];
	AUTO_FREE char *path = NULL;
	uint64_t first;
	size_t len;

	audit_volume(b->a, 2000);
	write_some(b, 30);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 30);
	assert_true(volumes(b, NULL) >= 2 && volumes(b, NULL) <= AUDIT_VOLUMES);
	write_some(b, 200);
	assert_int_equal(volumes(b, &first), AUDIT_VOLUMES);
	assert_string_equal(verify(b), "");
	assert_true(b->records > 30 && b->records < 200);
	free(slurp(b, "audit.anchor", &len));
	assert_true(len > 0);

	/* One in the middle, or the first, is missed. */
	volume_name(first, name);
	path = xasprintf("%s/%s", b->dir, name);
	assert_int_equal(unlink(path), 0);
	assert_non_null(strstr(verify(b), "records before it are missing"));
}

/* Between emptying the file and saying so in the head somebody was killed. */
static void test_volume_crash(void **state)
{
	struct books *b = *state;
	AUTO_FREE char *text = NULL;
	char name[VOLUME_NAME];
	size_t len;

	write_some(b, 5);
	text = slurp(b, AUDIT_LOG, &len);
	volume_name(5, name);
	spit(b, name, text, len);
	spit(b, AUDIT_LOG, "", 0);
	assert_string_equal(verify(b), "");
	write_some(b, 2);
	assert_string_equal(verify(b), "");
	assert_int_equal(b->records, 7);
}

/* Who reads on while a volume is put aside misses nothing and hears nothing twice. */
/* What @from is followed by in all sound lines that are left, added up. */
static uint64_t sum_of(const struct books *b, const char *key)
{
	struct audit_reader *r;
	struct audit_line l;
	uint64_t sum = 0;
	const char *p;

	assert_int_equal(audit_reader_open(b->dir, &r), 0);
	while (audit_read(r, &l) > 0) {
		p = strstr(l.text, key);
		assert_true(l.sound);
		sum += p ? strtoull(p + strlen(key), NULL, 10) : 0;
	}
	audit_reader_close(r);
	return sum;
}

/* @n execs with their exits: every second one the same, the others with a long word. */
static void flood(struct books *b, int n)
{
	char word[3000];
	const char *argv[] = { "run", word, NULL };
	struct audit_exec x = { .txn = 2,
				.ppid = 1,
				.exe = "/bin/run",
				.cwd = "/home",
				.argv = argv,
				.argc = 2,
				.argc_all = 2,
				.verdict = "allow",
				.outcome = "ran" };

	memset(word, 'x', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	for (int i = 0; i < n; i++) {
		x.pid = 2 + i % 30000;
		snprintf(word, 20, "%018d", i % 2 ? i % 4 : i);
		word[18] = 'x';
		argv[1] = i % 2 ? "same" : word;
		x.verdict = i % 4 == 1 ? "allow" : "checkpoint";
		assert_int_equal(audit_exec(b->a, &x), 0);
		assert_int_equal(audit_exit(b->a, 2, x.pid, i % 3 ? 0 : 256), 0);
	}
}

/* More than all volumes hold: what was before it is all there, and nothing is uncounted. */
static void test_flood(void **state)
{
	struct books *b = *state;
	const struct audit_op begin = { .event = "begin", .txn = 1 };
	const struct audit_op end = { .event = "end", .txn = 2 };
	enum { MANY = 200000 };
	uint64_t execs = 0, exits = 0;
	struct audit_reader *r;
	struct audit_line l;

	assert_int_equal(audit_op(b->a, &begin), 0);
	flood(b, MANY);
	assert_int_equal(audit_op(b->a, &end), 0);
	assert_string_equal(verify(b), "");
	assert_int_equal(audit_reader_open(b->dir, &r), 0);
	assert_int_equal(audit_read(r, &l), 1);
	assert_non_null(strstr(l.text, "\"seq\":1,"));
	assert_non_null(strstr(l.text, "\"event\":\"begin\",\"txn\":\"t1\""));
	while (audit_read(r, &l) > 0) {
		execs += strstr(l.text, "\"event\":\"exec\"") != NULL;
		exits += strstr(l.text, "\"event\":\"exit\"") != NULL;
	}
	audit_reader_close(r);
	assert_in_range(execs, 5000, MANY / 4);
	assert_int_equal(execs + sum_of(b, "\"count\":"), MANY);
	assert_int_equal(exits + sum_of(b, "\"exits\":"), MANY);
}

static void test_volume_reader(void **state)
{
	struct books *b = *state;
	struct audit_reader *r;
	struct audit_line l;
	uint64_t seq = 0, total = 3;

	audit_volume(b->a, 2000);
	write_some(b, 3);
	assert_int_equal(audit_reader_open(b->dir, &r), 0);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < round % 4; i++)
			if (audit_read(r, &l) == 1)
				assert_int_equal(l.seq, ++seq);
		write_some(b, 1 + round % 7);
		total += 1 + (unsigned)round % 7;
	}
	while (audit_read(r, &l) == 1) {
		assert_null(l.wrong);
		assert_int_equal(l.seq, ++seq);
	}
	assert_true(seq >= total); /* and what says that some went */
	audit_reader_close(r);
}

static const struct {
	const char *in, *out; /* words are separated by | */
} secrets[] = {
	{ "git|push|origin|main", "git|push|origin|main" },
	{ "x|--password|hunter2|y", "x|--password|***|y" },
	{ "x|--password=hunter2|y", "x|--password=***|y" },
	{ "x|--token|abc|--api-key|def", "x|--token|***|--api-key|***" },
	{ "x|--client-secret=a,b=c", "x|--client-secret=***,b=c" },
	{ "x|--accessToken|abc", "x|--accessToken|***" },
	{ "x|--password|--verbose|y", "x|--password|--verbose|y" },
	{ "x|--max-tokens|100|--tokenizer|bpe", "x|--max-tokens|100|--tokenizer|bpe" },
	{ "x|--password-file|/p|--password-stdin|y",
	  "x|--password-file|/p|--password-stdin|y" },
	{ "env|PGPASSWORD=hunter2|psql", "env|PGPASSWORD=***|psql" },
	{ "env|AWS_SECRET_ACCESS_KEY=abc|GITHUB_TOKEN=def|A=1",
	  "env|AWS_SECRET_ACCESS_KEY=***|GITHUB_TOKEN=***|A=1" },
	{ "env|PWD=/home|OLDPWD=/x|KEY=/file", "env|PWD=/home|OLDPWD=/x|KEY=/file" },
	{ "git|clone|https://joe:hunter2@example.org/x",
	  "git|clone|https://joe:***@example.org/x" },
	{ "git|clone|https://0123456789abcdef0123@example.org/x",
	  "git|clone|https://***@example.org/x" },
	{ "git|clone|ssh://git@example.org/x", "git|clone|ssh://git@example.org/x" },
	{ "git|clone|https://u:p@ss@example.org/",
	  "git|clone|https://u:***@example.org/" },
	{ "curl|https://example.org/?a=1&access_token=abc&b=2",
	  "curl|https://example.org/?a=1&access_token=***&b=2" },
	{ "curl|-H|Authorization: Bearer abc.def", "curl|-H|Authorization: Bearer ***" },
	{ "curl|-H|X-Api-Key: abc", "curl|-H|X-Api-Key: ***" },
	{ "curl|-H|Cookie:abc", "curl|-H|Cookie:***" },
	{ "curl|-u|joe:hunter2|x", "curl|-u|joe:***|x" },
	{ "curl|--user|joe|x", "curl|--user|joe|x" },
	{ "sort|-u|file", "sort|-u|file" },
	{ "sh|-c|curl -H 'Authorization: Basic abc' x",
	  "sh|-c|curl -H 'Authorization: Basic ***' x" },
	{ "sh|-c|export TOKEN=abc; run", "sh|-c|export TOKEN=***; run" },
	{ "sh|-c|TOKEN='a b c' run", "sh|-c|TOKEN='***' run" },
	{ "sh|-c|x --password \"a b\" y", "sh|-c|x --password \"***\" y" },
	{ "curl|-d|{\"user\": \"joe\", \"password\": \"a b\"}",
	  "curl|-d|{\"user\": \"joe\", \"password\": \"***\"}" },
	{ "mysql|-uroot|-phunter2|db", "mysql|-uroot|-p***|db" },
	{ "mkdir|-p|dir|-pq", "mkdir|-p|dir|-pq" },
	{ "sshpass|-p|hunter2|ssh|host", "sshpass|-p|***|ssh|host" },
	{ "x|ghp_0123456789abcdefghijABCDEFGHIJ012345", "x|ghp_***" },
	{ "x|y=AKIA0123456789ABCDEF", "x|y=AKIA***" },
	{ "x|sk-learn", "x|sk-learn" },
	{ "x|a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b",
	  "x|a *** b" },
	{ "docker|login|-u|joe|-p|hunter2|host", "docker|login|-u|joe|-p|***|host" },
	{ "docker|login|-phunter2|-u|joe", "docker|login|-p***|-u|joe" },
	{ "sh|-c|podman login -p hunter2 h; mkdir -p dir",
	  "sh|-c|podman login -p *** h; mkdir -p dir" },
	{ "docker|run|-p|80:80|login", "docker|run|-p|80:80|login" },
	{ "curl|-d|{\"password\": \"hunter2\"}", "curl|-d|{\"password\": \"***\"}" },
	{ "curl|-d|{\"password\":\"hunter2\",\"a\":1}",
	  "curl|-d|{\"password\":\"***\",\"a\":1}" },
	{ "curl|-d|{\"password\" : \"hunter2\"}", "curl|-d|{\"password\" : \"***\"}" },
	{ "curl|-d|{\"a\":{\"accessToken\":\"x y\"},\"b\":\"c\"}",
	  "curl|-d|{\"a\":{\"accessToken\":\"***\"},\"b\":\"c\"}" },
	{ "curl|-d|{\"password\": \"hun\\\"ter2\"}", "curl|-d|{\"password\": \"***\"}" },
	{ "curl|-d|{\"pin\": 1, \"password\": 1234}",
	  "curl|-d|{\"pin\": 1, \"password\": ***" },
	{ "curl|-d|{\"password\":1234,\"a\":1}", "curl|-d|{\"password\":***\"a\":1}" },
	{ "sh|-c|curl -d \"{\\\"password\\\": \\\"hunter2\\\"}\" x",
	  "sh|-c|curl -d \"{\\\"password\\\": \\\"***\\\"}\" x" },
	{ "sh|-c|curl -d \"{\\\"password\\\":\\\"hunter2\\\"}\" x",
	  "sh|-c|curl -d \"{\\\"password\\\":\\\"***\\\"}\" x" },
	{ "sh|-c|curl -d '{\"password\": \"hunter2\"}' x",
	  "sh|-c|curl -d '{\"password\": \"***\"}' x" },
	{ "x|{\"password\": \"hunter2\"}", "x|{\"password\": \"***\"}" },
	{ "{\"password\": \"hunter2\"}|x", "{\"password\": \"***\"}|x" },
	{ "python3|-c|f(password='hunter2', user='joe')",
	  "python3|-c|f(password='***', user='joe')" },
	{ "echo|my password is long", "echo|my password is long" },
	{ "grep|-r|token|src", "grep|-r|token|src" },
};

static void test_secrets(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
		AUTO_BUF struct buf out = BUF_INIT;
		struct redact r = { 0 };

		for (const char *p = secrets[i].in;; p++) {
			size_t n = strcspn(p, "|");

			redact_word(&r, p, n, &out);
			p += n;
			if (!*p)
				break;
			buf_addc(&out, '|');
		}
		print_message("%s\n", secrets[i].in);
		assert_string_equal(buf_str(&out), secrets[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sound_books, setup, teardown),
		cmocka_unit_test_setup_teardown(test_books_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gathered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_harm_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_is_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_head_is_remembered, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_volumes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_volume_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(test_volume_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test(test_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
