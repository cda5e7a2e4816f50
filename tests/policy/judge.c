/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges many texts: JSON lines with "cmd" come in, "VERDICT<tab>RULE<tab>NANOSECONDS" (of
 * processor time) goes out, one line each. With a policy file as operand it is added as the
 * user's layer.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/judge.h"
#include "policy/load.h"
#include "policy/policy.h"
#include "policy/tests.h"

static char *read_whole(const char *path, size_t *len)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	struct buf b = BUF_INIT;
	char chunk[65536];
	size_t n;

	if (!f) {
		perror(path);
		exit(1);
	}
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&b, chunk, n);
	*len = b.len;
	buf_adds(&b, "");
	return buf_take(&b);
}

static long elapsed(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) * 1000000000L + b->tv_nsec - a->tv_nsec;
}

static void judge_line(const struct policy *p, const char *line)
{
	json_t *o = json_loads(line, JSON_ALLOW_NUL, NULL);
	const json_t *cmd = json_object_get(o, "cmd");
	struct timespec begin, end;
	struct verdict v;
	struct err e;

	if (!json_is_string(cmd)) {
		fprintf(stderr, "not a case: %s\n", line);
		exit(1);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	if (policy_judge_text(p, json_string_value(cmd), json_string_length(cmd),
			      &policy_test_facts, &v, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	printf("%s\t%s\t%ld\n", verdict_name(v.kind), v.rule ? v.rule : "-",
	       elapsed(&begin, &end));
	json_decref(o);
}

int main(int argc, char **argv)
{
	AUTO_FREE char *text = NULL, *line = NULL;
	struct conf_source user = { .origin = CONF_USER };
	struct policy *p;
	struct err e;
	size_t cap = 0;

	if (argc > 1) {
		user.name = argv[1];
		user.text = text = read_whole(argv[1], &user.len);
	}
	if (policy_load(&user, argc > 1, &p, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	while (getline(&line, &cap, stdin) > 0)
		judge_line(p, line);
	policy_free(p);
	return 0;
}
