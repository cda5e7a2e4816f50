/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sandbox.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "ops/json.h"

void sandbox_wish_free(struct sandbox_wish *w)
{
	free(w->cwd);
	strv_free(w->read_only);
	strv_free(w->write_through);
	strv_free(w->hide);
	memset(w, 0, sizeof(*w));
}

static json_t *encode_list(char *const *v)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; v && v[i]; i++)
		json_array_append_new(a, json_pack_bytes(v[i]));
	return a;
}

char *sandbox_wish_encode(const struct sandbox_wish *w)
{
	json_t *o = json_object();
	char *text;

	json_object_set_new(o, "cwd", json_pack_bytes(w->cwd));
	json_object_set_new(o, "tmp", json_string(w->host_tmp ? "host" : "private"));
	json_object_set_new(o, "read_only", encode_list(w->read_only));
	json_object_set_new(o, "write_through", encode_list(w->write_through));
	json_object_set_new(o, "hide", encode_list(w->hide));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!text)
		abort();
	return text;
}

static int decode_list(const json_t *a, char ***v)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(a))
		return -1;
	json_array_foreach(a, i, item)
	{
		char *s = json_unpack_bytes(item);

		if (!s)
			return -1;
		strv_push(v, s);
	}
	return 0;
}

int sandbox_wish_decode(const char *text, struct sandbox_wish *w, struct err *e)
{
	json_t *o = json_loads(text ? text : "", 0, NULL);
	const char *tmp = json_string_value(json_object_get(o, "tmp"));
	bool bad;

	memset(w, 0, sizeof(*w));
	w->cwd = json_unpack_bytes(json_object_get(o, "cwd"));
	bad = !w->cwd || !tmp ||
	      decode_list(json_object_get(o, "read_only"), &w->read_only) ||
	      decode_list(json_object_get(o, "write_through"), &w->write_through) ||
	      decode_list(json_object_get(o, "hide"), &w->hide);
	w->host_tmp = tmp && strcmp(tmp, "host") == 0;
	json_decref(o);
	if (!bad)
		return 0;
	sandbox_wish_free(w);
	return err_set(e, ERR_CORRUPT, "recorded options cannot be read");
}

/* Does "NAME=…" @entry belong into a clean environment? */
static bool is_basic(const char *entry)
{
	static const char *const names[] = { "HOME",  "USER", "LOGNAME", "PATH",
					     "SHELL", "TERM", "LANG",	 "TZ" };
	size_t n = strcspn(entry, "="), i;

	if (strncmp(entry, "LC_", 3) == 0)
		return true;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == n && strncmp(entry, names[i], n) == 0)
			return true;
	return false;
}

/* Sets an entry "NAME=VALUE", replacing an older one; takes it over. */
static void env_put(char ***env, char *entry, bool replace)
{
	size_t n = strcspn(entry, "=") + 1, i;

	for (i = 0; *env && (*env)[i]; i++) {
		if (strncmp((*env)[i], entry, n) != 0)
			continue;
		if (replace) {
			free((*env)[i]);
			(*env)[i] = entry;
		} else {
			free(entry);
		}
		return;
	}
	strv_push(env, entry);
}

static void env_add(const struct op_ctx *ctx, char ***env, const char *add)
{
	size_t n = strcspn(add, "="), i;

	if (add[n]) {
		env_put(env, xstrdup(add), true);
		return;
	}
	for (i = 0; ctx->env && ctx->env[i]; i++)
		if (strncmp(ctx->env[i], add, n) == 0 && ctx->env[i][n] == '=')
			env_put(env, xstrdup(ctx->env[i]), true);
}

int sandbox_env_check(char *const *add, struct err *e)
{
	size_t i;

	for (i = 0; add && add[i]; i++) {
		if (strcspn(add[i], "=") == 0) {
			err_set(e, ERR_USAGE, "--env '%s': no name", add[i]);
			return err_hint(e, "write --env NAME=VALUE, or --env NAME");
		}
	}
	return 0;
}

char **sandbox_env(const struct op_ctx *ctx, bool clean, char *const *add, int64_t id)
{
	char **env = NULL;
	size_t i;

	for (i = 0; ctx->env && ctx->env[i]; i++)
		if (!clean || is_basic(ctx->env[i]))
			strv_push(&env, xstrdup(ctx->env[i]));
	/* Every overlay is a filesystem of its own: git stops its search at their edges. */
	env_put(&env, xstrdup("GIT_DISCOVERY_ACROSS_FILESYSTEM=1"), false);
	for (i = 0; add && add[i]; i++)
		env_add(ctx, &env, add[i]);
	env_put(&env, xasprintf("STET_TXN=t%lld", (long long)id), true);
	return env;
}
