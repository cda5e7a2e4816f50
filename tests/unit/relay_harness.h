/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TEST_RELAY_HARNESS_H
#define STET_TEST_RELAY_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/relay.h"

/*
 * A caller of the relay in a process of its own, and below it a process that plays PID 1.
 * The latter has the command's streams as 0, 1, 2 and the control socket as FAKE_CTL,
 * and nothing else. None waits by time; alarm(2) ends one that hangs.
 */
#define FAKE_CTL 3
#define HARNESS_LIMIT 30

struct fake_job {
	int fds[3]; /* become 0, 1, 2 of the caller; -1: closed */
	bool want_tty;
	int ignore;		      /* a signal ignored from the start, or 0 */
	int64_t timeout_ms, grace_ms; /* grace 0: the usual one */
	void (*play)(const struct fake_job *job);
	uint64_t arg; /* for play() */
};

struct fake_report {
	int rc;
	bool pty, signals_kept;
	struct relay_end end;
	struct err e;
};

/* The caller's whole life; the report goes to @report. For use after fork. */
_Noreturn void harness_caller(const struct fake_job *job, int report);

/* Forks it; *report is to be given to harness_end(). */
pid_t harness_start(const struct fake_job *job, int *report);
/* Returns false if there was no report, that is, if the caller died. */
bool harness_end(pid_t pid, int report, struct fake_report *out);
bool harness_run(const struct fake_job *job, struct fake_report *out);

/* For play(). */
void fake_send(enum ctl_type type, int32_t value);
_Noreturn void fake_exit(int wait_status, uint64_t extra);
int32_t fake_expect(enum ctl_type type); /* the next message's value; dies if not @type */

/* All of it, or false. */
bool put(int fd, const void *data, size_t len);
bool get(int fd, void *data, size_t len);
/* A file in no directory, with @len pseudo-random bytes, at offset 0. */
int scratch_file(size_t len);
uint64_t checksum(uint64_t sum, const unsigned char *s, size_t len);
uint64_t file_checksum(int fd, uint64_t *len);

#endif
