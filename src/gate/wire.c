/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/wire.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/*
 * The length of the arguments that fits, in whole strings: a long command is shown true as far
 * as it goes.
 */
static size_t fitting(const struct image *i)
{
	size_t n = i->args_len;

	if (n <= WIRE_ARGS_MAX)
		return n;
	n = WIRE_ARGS_MAX;
	while (n > 0 && i->args[n - 1])
		n--;
	return n;
}

void wire_add(struct buf *out, const void *data, size_t len)
{
	const uint32_t n = (uint32_t)len;

	buf_add(out, &n, sizeof(n));
	buf_add(out, data, len);
}

ssize_t wire_next(const char **data, size_t *left, const char **message)
{
	uint32_t n;

	if (!*left)
		return 0;
	if (*left < sizeof(n))
		return -EPROTO;
	memcpy(&n, *data, sizeof(n));
	if (!n || n > *left - sizeof(n))
		return -EPROTO;
	*message = *data + sizeof(n);
	*data = *message + n;
	*left -= sizeof(n) + n;
	return (ssize_t)n;
}

size_t wire_fill(const char *data, size_t len)
{
	const char *at = data, *message;
	size_t left = len, whole = 0;

	while (wire_next(&at, &left, &message) > 0 &&
	       (!whole || (size_t)(at - data) <= WIRE_FILL))
		whole = (size_t)(at - data);
	return whole;
}

void wire_pack(struct buf *out, struct wire_head *h, const struct image *i,
	       const struct verdict *v)
{
	const char *s[WIRE_STRINGS] = {
		[WIRE_EXE] = i->exe, [WIRE_KNOWN_AS] = i->known_as,
		[WIRE_CWD] = i->cwd, [WIRE_RULE] = v->rule,
		[WIRE_WHY] = v->why, [WIRE_HINT] = v->hint
	};

	h->verdict = v->kind;
	h->flags |= i->flags;
	h->argc = i->argc;
	h->args_len = (uint32_t)fitting(i);
	h->present = 0;
	for (int k = 0; k < WIRE_STRINGS; k++)
		if (s[k])
			h->present |= 1U << k;
	buf_add(out, h, sizeof(*h));
	for (int k = 0; k < WIRE_STRINGS; k++)
		if (s[k]) {
			buf_add(out, s[k], strnlen(s[k], PATH_MAX));
			buf_addc(out, '\0');
		}
	if (h->args_len)
		buf_add(out, i->args, h->args_len);
}

static int count_args(const char *at, size_t len, struct wire_exec *x)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += !at[i];
	if (n > x->head.argc || (len && at[len - 1]))
		return -EPROTO;
	x->argv = xcalloc(n + 1, sizeof(*x->argv));
	for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
		x->argv[i] = at;
	x->facts.argv = x->argv;
	x->facts.argc = n;
	return 0;
}

int wire_unpack(const char *data, size_t len, struct wire_exec *x)
{
	const char *s[WIRE_STRINGS] = { NULL }, *at = data + sizeof(x->head);
	const char *end = data + len;

	*x = (struct wire_exec){ 0 };
	if (len < sizeof(x->head) || (len > sizeof(x->head) && end[-1]))
		return -EPROTO;
	memcpy(&x->head, data, sizeof(x->head));
	for (int k = 0; k < WIRE_STRINGS; k++) {
		if (!(x->head.present & 1U << k))
			continue;
		if (at >= end)
			return -EPROTO;
		s[k] = at;
		at += strlen(at) + 1;
	}
	if ((size_t)(end - at) != x->head.args_len || x->head.verdict > VERDICT_KILL ||
	    x->head.outcome > EXEC_KILLED)
		return -EPROTO;
	x->facts.exe = s[WIRE_EXE];
	x->facts.known_as = s[WIRE_KNOWN_AS];
	x->facts.cwd = s[WIRE_CWD];
	x->facts.flags = x->head.flags;
	x->verdict = (struct verdict){ .kind = (enum verdict_kind)x->head.verdict,
				       .rule = s[WIRE_RULE],
				       .why = s[WIRE_WHY],
				       .hint = s[WIRE_HINT] };
	return count_args(at, x->head.args_len, x);
}
