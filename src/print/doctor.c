/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/text.h"
#include "print/print.h"
#include "print/show.h"
#include "verbs/doctor.h"

static const char *status_color(enum doctor_status s)
{
	switch (s) {
	case DOCTOR_OK:
		return "32";
	case DOCTOR_WARN:
		return "33";
	case DOCTOR_FAIL:
		return "31";
	default:
		return "36";
	}
}

/* "      name: text", further lines of it indented alike. */
static void detail(struct buf *b, const char *name, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		buf_addf(b, "      %-7s ", name);
		text_escape(b, text, n);
		buf_addc(b, '\n');
		text += n + (text[n] == '\n');
		name = "";
	}
}

int print_doctor(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct doctor_report *r = result;
	AUTO_BUF struct buf b = BUF_INIT;
	enum doctor_status worst = doctor_report_worst(r);
	size_t i;

	(void)req;
	(void)e;
	for (i = 0; i < r->n; i++) {
		const struct doctor_check *k = &r->checks[i];

		show_color(&b, c, status_color(k->status));
		buf_addf(&b, "%-5s", doctor_status_name(k->status));
		show_color(&b, c, NULL);
		buf_addf(&b, " %s: ", k->title);
		text_escape(&b, k->found, strlen(k->found));
		buf_addc(&b, '\n');
		if (k->status != DOCTOR_WARN && k->status != DOCTOR_FAIL)
			continue;
		detail(&b, "lost:", k->lost);
		detail(&b, "repair:", k->repair);
	}
	if (worst == DOCTOR_FAIL)
		buf_adds(&b,
			 "\nstet run cannot work here until what failed is repaired.\n");
	else
		buf_adds(&b, worst == DOCTOR_WARN
				     ? "\nstet run works here, with something less.\n"
				     : "\nstet run works here.\n");
	show_flush(c, &b);
	return 0;
}
