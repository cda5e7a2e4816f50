/* SPDX-License-Identifier: Apache-2.0 */
#include "print/complaint.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

void print_complaint(const struct err *e, bool hint)
{
	AUTO_BUF struct buf b = BUF_INIT;

	fflush(stdout);
	buf_adds(&b, "stet: ");
	text_escape(&b, e->msg, strlen(e->msg));
	if (hint && e->hint[0]) {
		buf_adds(&b, "; ");
		text_escape(&b, e->hint, strlen(e->hint));
	}
	buf_addc(&b, '\n');
	fputs(buf_str(&b), stderr);
}
