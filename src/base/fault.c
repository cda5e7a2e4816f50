/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ERRNO 4095

static unsigned long reached; /* points of any name */
static unsigned long matched; /* points of the name asked for */

struct plan {
	const char *name; /* NULL: any */
	size_t len;
	unsigned long nth;
	int error; /* 0: kill */
};

static bool parse_count(const char *s, char **end, unsigned long *out)
{
	/* strtoul takes signs and blanks */
	if (*s < '1' || *s > '9')
		return false;
	errno = 0;
	*out = strtoul(s, end, 10);
	return errno == 0;
}

static bool parse_error(const char *s, int *out)
{
	unsigned long n;
	char *end;
	int i;

	*out = 0;
	if (strcmp(s, "kill") == 0)
		return true;
	if (parse_count(s, &end, &n) && !*end && n <= MAX_ERRNO) {
		*out = (int)n;
		return true;
	}
	for (i = 1; i < 256; i++) {
		const char *name = strerrorname_np(i);

		if (name && strcmp(name, s) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool parse(const char *s, struct plan *p)
{
	const char *colon = strchr(s, ':');
	char *end;

	*p = (struct plan){ 0 };
	if (*s == '#')
		return parse_count(s + 1, &end, &p->nth) && *end == ':' &&
		       parse_error(end + 1, &p->error);
	if (!colon || colon == s)
		return false;
	p->name = s;
	p->len = (size_t)(colon - s);
	return parse_count(colon + 1, &end, &p->nth) && *end == ':' &&
	       parse_error(end + 1, &p->error);
}

/* Opened anew each time: between clone and exec all descriptors may have been closed. */
static void note(const char *name)
{
	const char *to = getenv("STET_FAULT_LOG");
	unsigned long fd;
	char line[160];
	char *end;
	int file, n;

	if (!to || !*to)
		return;
	n = snprintf(line, sizeof(line), "%lu %s\n", reached, name);
	if (n < 0 || (size_t)n >= sizeof(line))
		abort();
	if (parse_count(to, &end, &fd) && !*end) {
		(void)!write((int)fd, line, (size_t)n);
		return;
	}
	file = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (file < 0)
		return;
	(void)!write(file, line, (size_t)n);
	close(file);
}

int fault_point(const char *name)
{
	static const char bad[] = "stet: STET_FAULT cannot be read\n";
	const char *spec = getenv("STET_FAULT");
	int saved = errno;
	struct plan p;
	bool hit;

	reached++;
	note(name);
	if (!spec || !*spec) {
		errno = saved;
		return 0;
	}
	if (!parse(spec, &p)) {
		(void)!write(STDERR_FILENO, bad, sizeof(bad) - 1);
		abort();
	}
	if (p.name && (strlen(name) != p.len || memcmp(name, p.name, p.len) != 0))
		hit = false;
	else
		hit = (p.name ? ++matched : reached) == p.nth;
	if (hit && p.error == 0)
		kill(getpid(), SIGKILL);
	errno = saved;
	return hit ? -p.error : 0;
}
