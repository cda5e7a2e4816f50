/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_DOCTOR_H
#define STET_DOCTOR_DOCTOR_H

#include <stddef.h>

#include "base/err.h"

/*
 * Does it work on this machine? Every check tries the thing itself rather than asking for
 * a version, says what is lost without it, and how to repair it.
 */
enum doctor_status {
	DOCTOR_INFO, /* a fact, neither good nor bad */
	DOCTOR_OK,
	DOCTOR_WARN, /* `stet run` works, with something less */
	DOCTOR_FAIL, /* `stet run` refuses to start */
};
const char *doctor_status_name(enum doctor_status s); /* "info", "ok", "warn", "fail" */

struct doctor_check {
	char *id;    /* stable, for programs: "userns", "overlay:state", … */
	char *title; /* for people */
	enum doctor_status status;
	char *found;  /* what was found */
	char *lost;   /* what is lost without it */
	char *repair; /* what to type; may have several lines; "" if there is nothing to
		       * repair, never for WARN and FAIL */
};

struct doctor_report {
	struct doctor_check *checks; /* in reading order */
	size_t n;
};

/*
 * Fills in *r, to be freed. Fails only if the present directory cannot be found; whatever
 * else goes wrong is a finding. Takes a fraction of a second; creates nothing that is
 * there afterwards, the state directory included.
 */
int op_doctor(struct doctor_report *r, struct err *e);
void doctor_report_free(struct doctor_report *r);

/* The gravest status of all checks. */
enum doctor_status doctor_report_worst(const struct doctor_report *r);

/* By id, or NULL. */
const struct doctor_check *doctor_report_find(const struct doctor_report *r,
					      const char *id);

#endif
