/* SPDX-License-Identifier: Apache-2.0 */
#include "session/checkpoint_rate.h"

/* Calls that follow one another as quickly as this are one. */
enum { CALL_MS = 50 };

/* Quicker than a model answers; so many are kept all the same; then at least one in such a time. */
enum { PAUSE_MS = 300, BURST_FIRST = 5, BURST_GAP_MS = 2000 };

/* In a burst the next one waits for as long again as all took up to the last. */
static int64_t gap(const struct checkpoint_rate *p)
{
	const int64_t age = p->kept_at - p->burst_at;

	if (p->burst_n < BURST_FIRST || age < CALL_MS)
		return CALL_MS;
	return age < BURST_GAP_MS ? age : BURST_GAP_MS;
}

bool checkpoint_rate_keeps(struct checkpoint_rate *p, int64_t now, bool text)
{
	if (!p->any_at || now - p->any_at >= PAUSE_MS) {
		p->burst_at = now;
		p->burst_n = 0;
	}
	p->any_at = now;
	/* The first process may only be a look around, and the call itself follows at once. */
	if (p->kept_at && now - p->kept_at < gap(p) && (p->kept_text || !text))
		return false;
	p->kept_at = now;
	p->kept_text = text;
	p->burst_n++;
	return true;
}
