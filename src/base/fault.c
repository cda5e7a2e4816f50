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

enum { PLANS_MAX = 8 };

struct plan {
	const char *name; /* NULL: any */
	size_t len;
	unsigned long nth;
	bool onwards; /* and every time after it */
	int error;    /* 0: the signal */
	int signal;
};

/* How often each plan's own name was met, by its place in the list. */
static unsigned long matched[PLANS_MAX];

static bool parse_count(const char *s, char **end, unsigned long *out)
{
	/* strtoul takes signs and blanks */
	if (*s < '1' || *s > '9')
		return false;
	errno = 0;
	*out = strtoul(s, end, 10);
	return errno == 0;
}

static bool parse_error(const char *s, size_t len, int *out, int *sig)
{
	unsigned long n;
	char *end;
	int i;

	*out = *sig = 0;
	if (len == 4 && (memcmp(s, "kill", 4) == 0 || memcmp(s, "stop", 4) == 0)) {
		*sig = *s == 'k' ? SIGKILL : SIGSTOP;
		return true;
	}
	if (parse_count(s, &end, &n) && end == s + len && n <= MAX_ERRNO) {
		*out = (int)n;
		return true;
	}
	for (i = 1; i < 256; i++) {
		const char *name = strerrorname_np(i);

		if (name && strlen(name) == len && memcmp(name, s, len) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* One of the list, up to its comma; *next is behind it. */
static bool parse(const char *s, struct plan *p, const char **next)
{
	const char *comma = strchrnul(s, ','), *colon = strchr(s, ':');
	char *end;

	*p = (struct plan){ 0 };
	*next = *comma ? comma + 1 : comma;
	if (!colon || colon == s || colon > comma)
		return false;
	if (*s == '#') {
		s++;
	} else {
		p->name = s;
		p->len = (size_t)(colon - s);
		s = colon + 1;
	}
	if (!parse_count(s, &end, &p->nth))
		return false;
	p->onwards = *end == '+';
	end += p->onwards;
	return *end == ':' &&
	       parse_error(end + 1, (size_t)(comma - end - 1), &p->error, &p->signal);
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

static void unreadable(void)
{
	static const char bad[] = "stet: STET_FAULT cannot be read\n";

	(void)!write(STDERR_FILENO, bad, sizeof(bad) - 1);
	abort();
}

static bool is_hit(const struct plan *p, size_t i, const char *name)
{
	unsigned long n = reached;

	if (p->name) {
		if (strlen(name) != p->len || memcmp(name, p->name, p->len) != 0)
			return false;
		n = ++matched[i];
	}
	return n == p->nth || (p->onwards && n > p->nth);
}

/* Is it to happen now? The file's absence says no; who is told yes takes it away. */
static bool is_time(void)
{
	const char *ticket = getenv("STET_FAULT_ONCE");

	return !ticket || unlink(ticket) == 0;
}

static bool spared;

void fault_never(void)
{
	spared = true;
}

bool fault_spare(bool on)
{
	bool was = spared;

	spared = on;
	return was;
}

int fault_point(const char *name)
{
	const char *spec = getenv("STET_FAULT");
	int saved = errno, error = 0, sig = 0;
	struct plan p;

	if (spared)
		return 0;
	reached++;
	note(name);
	for (size_t i = 0; spec && *spec; i++) {
		if (i == PLANS_MAX || !parse(spec, &p, &spec))
			unreadable();
		if (!is_hit(&p, i, name))
			continue;
		sig = p.signal && sig != SIGKILL ? p.signal : sig;
		error = error ? error : p.error;
	}
	if ((sig || error) && !is_time())
		sig = error = 0;
	if (sig)
		kill(getpid(), sig);
	errno = saved;
	return -error;
}

int fault_at(const char *name)
{
	int r = fault_point(name);

	if (r < 0)
		errno = -r;
	return r < 0;
}

int fault_skip(const char *name)
{
	const char *spec = spared ? NULL : getenv("STET_FAULT_SKIP");
	static unsigned long met;
	unsigned long nth;
	const char *colon;
	char *end;

	if (!spec || !*spec)
		return 0;
	colon = strchr(spec, ':');
	if (!colon || !parse_count(colon + 1, &end, &nth) || strcmp(end, "+") > 0)
		unreadable();
	if (strlen(name) != (size_t)(colon - spec) ||
	    memcmp(name, spec, strlen(name)) != 0)
		return 0;
	met++;
	return met == nth || (*end == '+' && met > nth);
}
