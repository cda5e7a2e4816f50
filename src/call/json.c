/* SPDX-License-Identifier: Apache-2.0 */
#include "call/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "call/schema.h"

static const char b64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, const void *s, size_t len)
{
	const unsigned char *p = s;

	for (; len; p += 3) {
		size_t n = len < 3 ? len : 3;
		unsigned long v = (unsigned long)p[0] << 16 |
				  (n > 1 ? (unsigned long)p[1] << 8 : 0) |
				  (n > 2 ? p[2] : 0);

		buf_addc(out, b64[v >> 18 & 63]);
		buf_addc(out, b64[v >> 12 & 63]);
		buf_addc(out, n > 1 ? b64[v >> 6 & 63] : '=');
		buf_addc(out, n > 2 ? b64[v & 63] : '=');
		len -= n;
	}
}

int base64_decode(struct buf *out, const char *s)
{
	size_t len = strlen(s), i;

	if (len % 4)
		return -EINVAL;
	for (i = 0; i < len; i += 4) {
		size_t pad = i + 4 < len ? 0 : (s[i + 3] == '=') + (s[i + 2] == '=');
		unsigned long v = 0;
		size_t k;

		if (s[i + 2] == '=' && s[i + 3] != '=')
			return -EINVAL;
		for (k = 0; k < 4; k++) {
			const char *at = k < 4 - pad ? strchr(b64, s[i + k]) : b64;

			if (!at)
				return -EINVAL;
			v = v << 6 | (unsigned long)(at - b64);
		}
		buf_addc(out, (char)(v >> 16));
		if (pad < 2)
			buf_addc(out, (char)(v >> 8));
		if (pad < 1)
			buf_addc(out, (char)v);
	}
	return 0;
}

/* Appends @s with every byte that is no part of well-formed UTF-8 replaced. */
static void add_lossy(struct buf *out, const char *s, size_t len)
{
	while (len) {
		size_t n;

		for (n = 1; n <= 4 && n <= len && !text_is_utf8(s, n); n++)
			;
		if (n > 4 || n > len) {
			buf_adds(out, "\xef\xbf\xbd");
			n = 1;
		} else {
			buf_add(out, s, n);
		}
		s += n;
		len -= n;
	}
}

json_t *json_lossy(const char *s)
{
	AUTO_BUF struct buf b = BUF_INIT;

	add_lossy(&b, s, strlen(s));
	return json_stringn(buf_str(&b), b.len);
}

json_t *json_result(void)
{
	json_t *o = json_object();

	if (!o)
		abort();
	json_object_set_new(o, "schema", json_integer(1));
	return o;
}

void json_set_bytes(json_t *o, const char *key, const char *s, size_t len)
{
	AUTO_BUF struct buf b = BUF_INIT;
	char name[64];

	if (text_is_utf8(s, len)) {
		json_object_set_new(o, key, json_stringn(s, len));
		return;
	}
	add_lossy(&b, s, len);
	json_object_set_new(o, key, json_stringn(buf_str(&b), b.len));
	buf_reset(&b);
	base64_encode(&b, s, len);
	snprintf(name, sizeof(name), "%s_b64", key);
	json_object_set_new(o, name, json_string(buf_str(&b)));
}

void json_set_str(json_t *o, const char *key, const char *s)
{
	if (s)
		json_set_bytes(o, key, s, strlen(s));
	else
		json_object_set_new(o, key, json_null());
}

void json_set_time(json_t *o, const char *key, int64_t ns)
{
	time_t sec = (time_t)(ns / 1000000000);
	char day[32], text[48];
	struct tm tm;

	if (ns <= 0 || !gmtime_r(&sec, &tm)) {
		json_object_set_new(o, key, json_null());
		return;
	}
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03dZ", day, (int)(ns / 1000000 % 1000));
	json_object_set_new(o, key, json_string(text));
}

json_t *json_error(const struct err *e)
{
	json_t *o = json_result();

	json_object_set_new(o, "error", schema_write(error_fields, e));
	return o;
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "character device";
	case S_IFBLK:
		return "block device";
	default:
		return "unknown";
	}
}

static json_t *json_side(const struct stat *st)
{
	json_t *o;
	char mode[16];

	if (!st->st_mode)
		return json_null();
	o = json_object();
	snprintf(mode, sizeof(mode), "%04o", (unsigned)st->st_mode & 07777);
	json_object_set_new(o, "type", json_string(type_name(st->st_mode)));
	json_object_set_new(o, "mode", json_string(mode));
	json_object_set_new(o, "size", json_integer((json_int_t)st->st_size));
	return o;
}

json_t *json_change(const struct change *c, const char *from)
{
	static const struct {
		unsigned bit;
		const char *name;
	} bits[] = {
		{ CHANGE_CONTENT, "content" }, { CHANGE_MODE, "mode" },
		{ CHANGE_OWNER, "owner" },     { CHANGE_XATTR, "xattr" },
		{ CHANGE_TIMES, "times" },
	};
	json_t *o = json_object(), *what = json_array();
	char letter[2] = { from ? 'R' : (char)c->kind, 0 };
	size_t i;

	json_object_set_new(o, "kind", json_string(letter));
	json_set_str(o, "path", c->path);
	if (from)
		json_set_str(o, "from", from);
	for (i = 0; i < ARRAY_SIZE(bits); i++)
		if (c->what & bits[i].bit)
			json_array_append_new(what, json_string(bits[i].name));
	json_object_set_new(o, "what", what);
	json_object_set_new(o, "implied", json_boolean(c->implied));
	json_object_set_new(o, "hidden", json_boolean(c->was_hidden));
	json_object_set_new(o, "read_only", json_boolean(c->was_closed));
	json_object_set_new(o, "before", json_side(&c->before));
	json_object_set_new(o, "after", json_side(&c->after));
	return o;
}

void json_set_notes(json_t *o, const char *key, const struct path_notes *n)
{
	json_t *a = json_array();
	char more[64];
	size_t i;

	for (i = 0; i < n->n; i++) {
		json_t *j = json_object();

		json_set_str(j, "path", n->v[i].path);
		json_set_str(j, "what", n->v[i].what);
		if (n->v[i].by)
			json_object_set_new(j, "by", json_txn_ref(n->v[i].by));
		json_array_append_new(a, j);
	}
	if (n->n)
		json_object_set(o, key, a);
	json_decref(a);
	snprintf(more, sizeof(more), "%s_more", key);
	if (n->more)
		json_object_set_new(o, more, json_integer((json_int_t)n->more));
}

json_t *json_txn_ref(int64_t id)
{
	char text[32];

	if (!id)
		return json_null();
	snprintf(text, sizeof(text), "t%lld", (long long)id);
	return json_string(text);
}

json_t *json_pack_bytes(const char *s)
{
	AUTO_BUF struct buf b = BUF_INIT;
	json_t *o;

	if (text_is_utf8(s, strlen(s)))
		return json_string(s);
	base64_encode(&b, s, strlen(s));
	o = json_object();
	json_object_set_new(o, "b64", json_string(buf_str(&b)));
	return o;
}

char *json_unpack_bytes(const json_t *v)
{
	const char *coded = json_string_value(json_object_get(v, "b64"));
	AUTO_BUF struct buf b = BUF_INIT;

	if (json_is_string(v))
		return xstrdup(json_string_value(v));
	if (!coded || base64_decode(&b, coded) < 0 || strlen(buf_str(&b)) != b.len)
		return NULL;
	return xstrdup(buf_str(&b));
}
