/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_RECOVER_H
#define STET_REVIEW_RECOVER_H

#include "call/verb.h"

struct recover_req {
	struct verb_common common;
};

struct recover_res {
	unsigned operations; /* finished or reversed */
};

struct check_req {
	struct verb_common common;
};

struct check_res {
	unsigned transactions; /* looked at */
	char **wrong;	       /* what is not as it should be; NULL-ended or NULL */
};

#endif
