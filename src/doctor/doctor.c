/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/doctor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doctor/filesystems.h"
#include "doctor/filters.h"
#include "doctor/host.h"
#include "doctor/parts.h"
#include "doctor/probe.h"
#include "doctor/userns.h"

const char *doctor_status_name(enum doctor_status s)
{
	switch (s) {
	case DOCTOR_INFO:
		return "info";
	case DOCTOR_OK:
		return "ok";
	case DOCTOR_WARN:
		return "warn";
	case DOCTOR_FAIL:
		return "fail";
	}
	return "?";
}

void doctor_add(struct doctor_report *r, const char *id, const char *title,
		enum doctor_status s, const char *found, const char *lost,
		const char *repair)
{
	struct doctor_check *c;

	r->checks = xrealloc(r->checks, (r->n + 1) * sizeof(*r->checks));
	c = &r->checks[r->n++];
	c->id = xstrdup(id);
	c->title = xstrdup(title);
	c->status = s;
	c->found = xstrdup(found ? found : "");
	c->lost = xstrdup(lost ? lost : "");
	c->repair = xstrdup(repair ? repair : "");
}

void doctor_report_free(struct doctor_report *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		free(r->checks[i].id);
		free(r->checks[i].title);
		free(r->checks[i].found);
		free(r->checks[i].lost);
		free(r->checks[i].repair);
	}
	free(r->checks);
	*r = (struct doctor_report){ NULL, 0 };
}

enum doctor_status doctor_report_worst(const struct doctor_report *r)
{
	enum doctor_status worst = DOCTOR_OK;
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->checks[i].status > worst)
			worst = r->checks[i].status;
	return worst;
}

const struct doctor_check *doctor_report_find(const struct doctor_report *r,
					      const char *id)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->checks[i].id, id))
			return &r->checks[i];
	return NULL;
}

long doctor_sysctl(const char *path, long absent)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	ssize_t n;
	long v;

	if (fd < 0)
		return absent;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return absent;
	text[n] = '\0';
	v = strtol(text, &end, 10);
	return end == text ? absent : v;
}

/* What each version brought that we use. */
enum { NEED_MAJOR = 5, NEED_MINOR = 12, WANT_MAJOR = 5, WANT_MINOR = 19 };

void doctor_kernel(struct doctor_report *r)
{
	static const char lost[] =
		"Linux 5.12 has everything the sandbox needs; 5.19 lets a supervised "
		"program be interrupted cleanly; 6.6 makes supervised calls cheaper";
	static const char repair[] =
		"install a newer kernel and boot it, on Debian:\n"
		"sudo apt-get install -t $(. /etc/os-release; echo $VERSION_CODENAME)-backports "
		"linux-image-$(dpkg --print-architecture) && sudo reboot";
	AUTO_BUF struct buf found = BUF_INIT;
	enum doctor_status s = DOCTOR_OK;
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		s = DOCTOR_WARN;
	else if (major < NEED_MAJOR || (major == NEED_MAJOR && minor < NEED_MINOR))
		s = DOCTOR_FAIL;
	else if (major == WANT_MAJOR && minor < WANT_MINOR)
		s = DOCTOR_WARN;
	buf_addf(&found, "%s %s, %s", u.sysname, u.release, u.machine);
	doctor_add(r, "kernel", "kernel", s, buf_str(&found), lost,
		   s == DOCTOR_OK ? "" : repair);
}

int op_doctor(struct doctor_report *r, struct err *e)
{
	*r = (struct doctor_report){ NULL, 0 };
	doctor_kernel(r);
	doctor_namespaces(r);
	doctor_filters(r);
	if (doctor_filesystems(r, e) < 0) {
		doctor_report_free(r);
		return -1;
	}
	doctor_host(r);
	return 0;
}
