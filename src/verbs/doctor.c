/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/doctor.h"

#include "call/call.h"

static int run(struct verb_call *c, const void *req, void *res, struct err *e)
{
	(void)c;
	(void)req;
	return op_doctor(res, e);
}

static const char *status_of_check(const void *at)
{
	return doctor_status_name(((const struct doctor_check *)at)->status);
}

static const char *worst(const void *at)
{
	return doctor_status_name(doctor_report_worst(at));
}

#define CHECK(field) offsetof(struct doctor_check, field)

static const struct field check_fields[] = {
	{ "id", FIELD_STRING, CHECK(id), "of the check, never changed" },
	{ "name", FIELD_STRING, CHECK(title), "for people" },
	{ "status", FIELD_STRING, 0, "ok, info, warn or fail", .word = status_of_check },
	{ "found", FIELD_STRING, CHECK(found), "what there is" },
	{ "lost", FIELD_STRING, CHECK(lost), "what does not work without it" },
	{ "repair", FIELD_STRING, CHECK(repair), "the command that repairs it" },
	{ NULL },
};

static const struct field doctor_fields[] = {
	{ "checks", FIELD_LIST, offsetof(struct doctor_report, checks), "in order",
	  .fields = check_fields, .count = offsetof(struct doctor_report, n),
	  .stride = sizeof(struct doctor_check) },
	{ "worst", FIELD_STRING, 0, "the worst status of all", .word = worst },
	{ NULL },
};

static int status(const void *req, const void *res)
{
	(void)req;
	return doctor_report_worst(res) == DOCTOR_FAIL ? ERR_UNSUPPORTED : 0;
}

static void release(void *res)
{
	doctor_report_free(res);
}

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "find out what works on this machine",
	.description =
		"Tries each thing that stet needs or can use: namespaces, overlays on your "
		"filesystems, filters, limits, snapshots. For each it says what was found, what "
		"is lost without it, and the command that repairs it.\n"
		"\n"
		"The exit status is 5 if a check fails that stet run cannot do without, "
		"otherwise 0.",
	.request_size = sizeof(struct doctor_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON | VERB_COLOR,
	.run = run,
	.result_size = sizeof(struct doctor_report),
	.result = doctor_fields,
	.status = status,
	.free = release,
};
