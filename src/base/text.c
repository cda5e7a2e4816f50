/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* Length of the well-formed sequence at s (1..4), or 0; *cp gets the code point. */
static size_t utf8_next(const unsigned char *s, size_t len, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n, i;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	if ((s[0] & 0xe0) == 0xc0) {
		n = 2;
		*cp = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		*cp = s[0] & 0x0f;
	} else if ((s[0] & 0xf8) == 0xf0) {
		n = 4;
		*cp = s[0] & 0x07;
	} else {
		return 0;
	}
	if (n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return n;
}

bool text_is_utf8(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t cp;
	size_t n;

	for (; len; p += n, len -= n) {
		n = utf8_next(p, len, &cp);
		if (!n)
			return false;
	}
	return true;
}

/*
 * Would printing it tell the terminal something, or make the line read otherwise: by its direction,
 * or by what is not to be seen? Not the two joiners, which scripts and emoji need.
 */
static bool is_unsafe(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} unsafe[] = { { 0, 0x1f },	   { 0x7f, 0x9f },     { 0xad, 0xad },
		       { 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200b },
		       { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
		       { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f } };

	if (cp >= 0x20 && cp < 0x7f)
		return false;
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		if (cp >= unsafe[i].first && cp <= unsafe[i].last)
			return true;
	return false;
}

/* Returns whether anything had to be escaped. */
static bool escape(struct buf *out, const char *s, size_t len, bool quotes)
{
	static const char letters[] = "\aa\bb\tt\nn\vv\ff\rr";
	const unsigned char *p = (const unsigned char *)s;
	bool any = false;
	uint32_t cp;
	size_t n, i;

	for (; len; p += n, len -= n) {
		const char *l;

		n = utf8_next(p, len, &cp);
		if (n && cp == '\\') {
			/* A lone backslash is left alone unless the whole is quoted. */
			buf_adds(out, quotes ? "\\\\" : "\\");
			continue;
		}
		if (n && cp == '"' && quotes) {
			buf_adds(out, "\\\"");
			any = true;
			continue;
		}
		if (n && !is_unsafe(cp)) {
			buf_add(out, p, n);
			continue;
		}
		any = true;
		if (!n)
			n = 1;
		l = n == 1 && *p ? strchr(letters, *p) : NULL;
		if (l && (l - letters) % 2 == 0) {
			buf_addf(out, "\\%c", l[1]);
			continue;
		}
		for (i = 0; i < n; i++)
			buf_addf(out, "\\%03o", p[i]);
	}
	return any;
}

void text_quote(struct buf *out, const char *s, size_t len)
{
	struct buf b = BUF_INIT;

	if (!escape(&b, s, len, true)) {
		buf_add(out, s, len);
	} else {
		buf_addc(out, '"');
		buf_add(out, buf_str(&b), b.len);
		buf_addc(out, '"');
	}
	buf_free(&b);
}

void text_escape(struct buf *out, const char *s, size_t len)
{
	escape(out, s, len, false);
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int parse_units(const char *s, const struct unit *units, size_t n, uint64_t max,
		       uint64_t *out)
{
	unsigned long long v;
	char *end;
	size_t i;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (v > max / units[i].factor)
			return -EINVAL;
		*out = v * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

int text_parse_duration(const char *s, int64_t *ms)
{
	static const struct unit units[] = {
		{ "", 1000 },	  { "ms", 1 },	    { "s", 1000 },     { "m", 60000 },
		{ "min", 60000 }, { "h", 3600000 }, { "d", 86400000 },
	};
	uint64_t v;
	int r = parse_units(s, units, sizeof(units) / sizeof(*units), INT64_MAX, &v);

	if (r == 0)
		*ms = (int64_t)v;
	return r;
}

int text_parse_size(const char *s, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "b", 1 },
		{ "k", 1ULL << 10 },
		{ "K", 1ULL << 10 },
		{ "KiB", 1ULL << 10 },
		{ "m", 1ULL << 20 },
		{ "M", 1ULL << 20 },
		{ "MiB", 1ULL << 20 },
		{ "g", 1ULL << 30 },
		{ "G", 1ULL << 30 },
		{ "GiB", 1ULL << 30 },
		{ "t", 1ULL << 40 },
		{ "T", 1ULL << 40 },
		{ "TiB", 1ULL << 40 },
	};

	return parse_units(s, units, sizeof(units) / sizeof(*units), UINT64_MAX, bytes);
}

void text_size(struct buf *out, uint64_t bytes)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)bytes;
	size_t i = 0;

	while (v >= 1024 && i + 1 < sizeof(names) / sizeof(*names)) {
		v /= 1024;
		i++;
	}
	buf_addf(out, i == 0 || v >= 100 ? "%.0f %s" : "%.1f %s", v, names[i]);
}

void text_ago(struct buf *out, int64_t seconds)
{
	if (seconds < 1)
		buf_adds(out, "now");
	else if (seconds < 120)
		buf_addf(out, "%lld s ago", (long long)seconds);
	else if (seconds < 7200)
		buf_addf(out, "%lld min ago", (long long)seconds / 60);
	else if (seconds < 172800)
		buf_addf(out, "%lld h ago", (long long)seconds / 3600);
	else
		buf_addf(out, "%lld days ago", (long long)seconds / 86400);
}
