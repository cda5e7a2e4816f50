/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/doctor.h"

#include "session/json.h"

static int run(struct op_ctx *ctx, const void *req, void *res, struct err *e)
{
	(void)ctx;
	(void)req;
	return op_doctor(res, e);
}

static json_t *doctor_json(const void *result)
{
	const struct doctor_report *r = result;
	json_t *o = json_result(), *a = json_array();
	size_t i;

	for (i = 0; i < r->n; i++) {
		const struct doctor_check *c = &r->checks[i];
		json_t *j = json_object();

		json_set_str(j, "id", c->id);
		json_set_str(j, "name", c->title);
		json_set_str(j, "status", doctor_status_name(c->status));
		json_set_str(j, "found", c->found);
		json_set_str(j, "lost", c->lost);
		json_set_str(j, "repair", c->repair);
		json_array_append_new(a, j);
	}
	json_object_set_new(o, "checks", a);
	json_set_str(o, "worst", doctor_status_name(doctor_report_worst(r)));
	return o;
}

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
	.flags = VERB_JSON | VERB_COLOR | VERB_ANYWHERE,
	.request_size = sizeof(struct doctor_req),
	.result_size = sizeof(struct doctor_report),
	.run = run,
	.json = doctor_json,
	.status = status,
	.free = release,
};
