/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_MERGE_H
#define STET_DIFF_MERGE_H

#include "base/buf.h"
#include "base/err.h"

#endif
