/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/audit.h"
#include "audit/redact.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define COVER "***"

/* Characters that end a word within a script, and those that a command follows. */
#define BREAKS " \t\r\n'\"`;|&()<>"
#define COMMAND_AFTER ";|&(`\n"

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

/* One part of a name such as access_token, in small letters. */
static bool is_secret_part(const char *s, size_t len, const char *before, size_t nbefore)
{
	static const char *const ends[] = { "password",	    "passwd",	  "passphrase",
					    "secret",	    "secrets",	  "token",
					    "apikey",	    "credential", "credentials",
					    "authorization" };
	static const char *const whole[] = { "pass", "cookie", "pwd", "auth" };
	static const char *const keys[] = {
		"api",	   "access", "private",	   "secret",
		"signing", "auth",   "encryption", "account"
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (ends_with(s, len, ends[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (strlen(whole[i]) == len && memcmp(s, whole[i], len) == 0)
			return true;
	for (size_t i = 0; len == 3 && memcmp(s, "key", 3) == 0 && i < ARRAY_SIZE(keys);
	     i++)
		if (ends_with(before, nbefore, keys[i]))
			return true;
	return false;
}

/* Does a name say that its value is a secret? Not the name of a file that holds it. */
static bool is_secret_name(const char *s, size_t len)
{
	static const char *const harmless[] = { "_file",  "_path",  "_dir",
						"_stdin", "_fd",    "_type",
						"_count", "_limit", "_name" };
	char name[128], *part = name, *before = name;
	size_t n = 0, nbefore = 0;

	while (len && *s == '-')
		s++, len--;
	for (size_t i = 0; i < len && n + 2 < sizeof(name); i++) {
		if (i && isupper((unsigned char)s[i]) && islower((unsigned char)s[i - 1]))
			name[n++] = '_';
		name[n++] = s[i] == '-' || s[i] == '.'
				    ? '_'
				    : (char)tolower((unsigned char)s[i]);
	}
	name[n] = '\0';
	if (!n || strcmp(name, "pwd") == 0 || strcmp(name, "oldpwd") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (ends_with(name, n, harmless[i]))
			return false;
	while (*part) {
		size_t k = strcspn(part, "_");

		if (is_secret_part(part, k, before, nbefore))
			return true;
		before = part;
		nbefore = k;
		part += k + (part[k] == '_');
	}
	return false;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Keys that can be told by how they begin; all of them are long. */
static size_t known_key(const char *s, size_t len)
{
	static const char *const prefixes[] = {
		"ghp_",	  "gho_",     "ghu_",	  "ghs_",    "ghr_",  "github_pat_",
		"glpat-", "xoxb-",    "xoxp-",	  "xoxa-",   "xoxs-", "xapp-",
		"sk-",	  "sk_live_", "rk_live_", "AKIA",    "ASIA",  "AIza",
		"npm_",	  "pypi-",    "hf_",	  "dop_v1_", "ya29.", "eyJ",
		"SG.",	  "shpat_",
	};
	size_t n = 0;

	while (n < len && is_name_char(s[n]))
		n++;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t k = strlen(prefixes[i]);

		if (n >= k + 16 && memcmp(s, prefixes[i], k) == 0)
			return n;
	}
	return 0;
}

/* scheme://user:password@host: the length of what is before the secret, and of the secret. */
static bool url_secret(const char *s, size_t len, size_t *from, size_t *n)
{
	const char *p = memmem(s, len, "://", 3), *end = s + len, *at = NULL, *colon;

	if (!p)
		return false;
	p += 3;
	for (const char *q = p; q < end && !strchr("/?#", *q); q++)
		if (*q == '@')
			at = q;
	if (!at)
		return false;
	colon = memchr(p, ':', (size_t)(at - p));
	/* A user name without a password is no secret, unless it is long enough to be a key. */
	if (!colon && at - p < 16)
		return false;
	p = colon ? colon + 1 : p;
	*from = (size_t)(p - s);
	*n = (size_t)(at - p);
	return *n > 0;
}

/* Appends @s with secret values and keys covered up. */
static void cover_inside(const char *s, size_t len, struct buf *out)
{
	size_t i = 0, name = 0, key;

	while (i < len) {
		bool begins = i == name;

		key = begins ? known_key(s + i, len - i) : 0;
		if (key) {
			buf_add(out, s + i, 4);
			buf_adds(out, COVER);
			i += key;
			continue;
		}
		if ((s[i] == '=' || s[i] == ':') && is_secret_name(s + name, i - name) &&
		    !(s[i] == ':' && i + 2 < len && memcmp(s + i, "://", 3) == 0)) {
			size_t n = 0;

			buf_addc(out, s[i++]);
			while (i + n < len && s[i + n] != '&' && s[i + n] != ',')
				n++;
			if (n)
				buf_adds(out, COVER);
			i += n;
			name = i;
			continue;
		}
		if (!is_name_char(s[i]))
			name = i + 1;
		buf_addc(out, s[i++]);
	}
}

static void cover_word(const char *s, size_t len, struct buf *out)
{
	size_t from, n;

	if (!url_secret(s, len, &from, &n)) {
		cover_inside(s, len, out);
		return;
	}
	buf_add(out, s, from);
	buf_adds(out, COVER);
	cover_inside(s + from + n, len - from - n, out);
}

static bool is_program(const struct redact *r, const char *name)
{
	return strncmp(r->program, name, strlen(name)) == 0;
}

/* Notes what an option, or a name before a colon, says about the next word. */
static void look_ahead(struct redact *r, const char *s, size_t len, const char *rest,
		       size_t nrest)
{
	size_t k = 0;

	if (len > 1 && s[0] == '-' && s[len - 1] != '=') {
		if (!memchr(s, '=', len) && is_secret_name(s, len))
			r->next = REDACT_WORD;
		else if ((len == 2 && memcmp(s, "-u", 2) == 0) ||
			 (len == 6 && memcmp(s, "--user", 6) == 0))
			r->next = REDACT_PASSWORD;
		else if (len == 2 && memcmp(s, "-p", 2) == 0 &&
			 (r->login || is_program(r, "sshpass")))
			r->next = REDACT_WORD;
		return;
	}
	/* Within a shell's double quotes the quotes of JSON are escaped. */
	while (len > 1 && s[len - 1] == '\\')
		len--;
	/* "Authorization: …", and "password": "…" in a text of JSON. */
	if (len > 1 && s[len - 1] == ':' && is_secret_name(s, len - 1)) {
		r->next = REDACT_WORD;
		return;
	}
	while (k < nrest && strchr("\"' \\", rest[k]))
		k++;
	if (k && k < nrest && rest[k] == ':' && is_secret_name(s, len))
		r->next = REDACT_COLON;
	/* NAME='…': the value is a word of its own here. */
	if (s[len - 1] == '=' && nrest && strchr("'\"`", rest[0]) &&
	    is_secret_name(s, len - 1))
		r->next = REDACT_WORD;
}

static bool is_scheme(const char *s, size_t len)
{
	static const char *const schemes[] = { "bearer", "basic", "token", "digest",
					       "apikey" };

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i]) == len && strncasecmp(s, schemes[i], len) == 0)
			return true;
	return false;
}

static bool all_backslashes(const char *s, size_t len)
{
	while (len && s[len - 1] == '\\')
		len--;
	return !len;
}

static void one(struct redact *r, const char *s, size_t len, const char *rest,
		size_t nrest, struct buf *out)
{
	int next = r->next;
	const char *colon = memchr(s, ':', len);

	if (next == REDACT_COLON && *s == ':') {
		bool alone = all_backslashes(s + 1, len - 1);

		buf_add(out, s, alone ? len : 1);
		r->next = alone ? REDACT_WORD : REDACT_NOTHING;
		buf_adds(out, alone ? "" : COVER);
		return;
	}
	if (next == REDACT_WORD && all_backslashes(s, len)) { /* of the quote after it */
		buf_add(out, s, len);
		return;
	}
	if (next == REDACT_WORD && is_scheme(s, len)) {
		buf_add(out, s, len);
		return;
	}
	r->next = REDACT_NOTHING;
	if (next == REDACT_WORD && s[0] != '-') {
		buf_adds(out, COVER);
		return;
	}
	if (next == REDACT_PASSWORD && colon && s[0] != '-') {
		buf_add(out, s, (size_t)(colon - s) + 1);
		buf_adds(out, COVER);
		return;
	}
	if (len > 2 && memcmp(s, "-p", 2) == 0 &&
	    (is_program(r, "mysql") || is_program(r, "mariadb") ||
	     is_program(r, "sshpass") || r->login)) {
		buf_adds(out, "-p" COVER);
		return;
	}
	look_ahead(r, s, len, rest, nrest);
	cover_word(s, len, out);
}

static void note_program(struct redact *r, const char *s, size_t len)
{
	const char *slash = memrchr(s, '/', len);
	size_t skip = slash ? (size_t)(slash - s) + 1 : 0;

	r->login = false;
	snprintf(r->program, sizeof(r->program), "%.*s", (int)(len - skip), s + skip);
}

/* The length of a private key at @s: all of it is covered up. */
static size_t pem_block(const char *s, size_t len)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ";
	const char *p, *line = memchr(s, '\n', len);

	if (len < sizeof(begin) || memcmp(s, begin, sizeof(begin) - 1) != 0 ||
	    !memmem(s, line ? (size_t)(line - s) : len, "PRIVATE KEY", 11))
		return 0;
	p = memmem(s, len, end, sizeof(end) - 1);
	if (!p)
		return len;
	line = memmem(p + 5, len - (size_t)(p + 5 - s), "-----", 5);
	return line ? (size_t)(line - s) + 5 : len;
}

/* Finds the quote that ends the string at @s; an escaped one if @escaped. */
static const char *closing(const char *s, size_t len, bool escaped)
{
	for (size_t i = 1; i < len; i++) {
		if (s[i] == '\\' && i + 1 < len && *s == '"') {
			if (escaped && s[i + 1] == *s)
				return s + i + 1;
			i++;
		} else if (s[i] == *s) {
			return s + i;
		}
	}
	return NULL;
}

/* The length of a quoted string at @s that does not begin with the name of a scheme; else 0. */
static size_t quoted(const char *s, size_t len, bool escaped)
{
	const char *end = *s == '\'' || *s == '"' ? closing(s, len, escaped) : NULL;
	size_t n = 0;

	if (!end)
		return 0;
	while (s + 1 + n < end && isalpha((unsigned char)s[1 + n]))
		n++;
	return is_scheme(s + 1, n) ? 0 : (size_t)(end - s) + 1;
}

void redact_word(struct redact *r, const char *s, size_t len, struct buf *out)
{
	bool command = !r->program[0], escaped;
	size_t i = 0, n;

	if (!len && r->next == REDACT_WORD)
		r->next = REDACT_NOTHING;
	while (i < len) {
		n = pem_block(s + i, len - i);
		if (n) {
			buf_adds(out, COVER);
			i += n;
			continue;
		}
		escaped = i && s[i - 1] == '\\';
		n = r->next == REDACT_WORD ? quoted(s + i, len - i, escaped) : 0;
		if (n) {
			escaped = escaped && s[i + n - 2] == '\\';
			buf_addf(out, "%c" COVER "%s%c", s[i], escaped ? "\\" : "", s[i]);
			r->next = REDACT_NOTHING;
			i += n;
			continue;
		}
		if (strchr(BREAKS, s[i])) {
			command = command || strchr(COMMAND_AFTER, s[i]);
			buf_addc(out, s[i++]);
			continue;
		}
		for (n = 0; i + n < len && !strchr(BREAKS, s[i + n]); n++)
			;
		if (command && !memchr(s + i, '=', n)) {
			note_program(r, s + i, n);
			command = false;
		} else if (n == 5 && memcmp(s + i, "login", n) == 0) {
			r->login = true;
		}
		one(r, s + i, n, s + i + n, len - i - n, out);
		i += n;
	}
}
