/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TESTS_PROBE_H
#define STET_TESTS_PROBE_H

/*
 * A probe tries one thing that must not have an effect outside. It returns 0 if it could
 * be done, -errno if not, PROBE_SAID if it printed its own answer with probe_say().
 * Each runs in a process of its own, so that it may break what it likes.
 */
#define PROBE_SAID 1

struct probe {
	const char *name;
	int (*try)(const char *arg);
};

extern const struct probe probes_file[], probes_proc[], probes_ns[], probes_kernel[];
extern const struct probe probes_exec[], probes_race[], probes_paths[];

/* What the race executes. */
int probe_victim(char **argv);

void probe_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *probe_errno_name(int err);
/* -errno of a call that returns -1, otherwise 0. */
int probe_rc(long rc);
int probe_write_file(const char *path, const char *text);

#endif
