/* SPDX-License-Identifier: Apache-2.0 */
#include "session/policy_files.h"
#include "policy/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define SYSTEM_FILE "/etc/stet/policy.yaml"
#define PROJECT_FILE ".stet.yaml"

enum { SIZE_MAX_READ = (8 << 20) + 1 };

/*
 * A whole file, at most a little more than a policy may have. 1: it is not there. A project's
 * file may be anything: no link is followed, nothing is waited for.
 */
static bool is_out_of_force(const void *at)
{
	return *(const enum project_policy *)at > PROJECT_ALLOWED;
}

static const char *why_out_of_force(const void *at)
{
	return *(const enum project_policy *)at == PROJECT_CHANGED ? "changed"
								   : "waiting";
}

const struct field project_fields[] = {
	{ "project_policy", FIELD_STRING, 0,
	  "the project has a policy that is not in force: waiting or changed",
	  .present = is_out_of_force, .word = why_out_of_force },
	{ NULL },
};

static int read_file(const char *path, bool hostile, struct buf *out, struct err *e)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	AUTO_CLOSE int fd = -1;
	char chunk[65536];
	struct stat st;
	ssize_t n;

	fd = open(path, flags | (hostile ? O_NOFOLLOW : 0));
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		/* Somebody meant there to be rules. */
		if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(e, ERR_USAGE, "%s:1: a link that leads nowhere",
				       path);
		return 1;
	}
	if ((fd < 0 && errno != ELOOP) || (fd >= 0 && fstat(fd, &st) < 0))
		return err_sys(e, errno, "policy %s", path);
	if (fd < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s:1: not a regular file", path);
	while (out->len < SIZE_MAX_READ) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "policy %s", path);
		if (n == 0)
			break;
		buf_add(out, chunk, (size_t)n);
	}
	return 0;
}

static char *user_file(struct op_ctx *ctx)
{
	const char *config = op_ctx_env(ctx, "XDG_CONFIG_HOME");
	const char *home = op_ctx_env(ctx, "HOME");

	if (config && config[0] == '/')
		return xasprintf("%s/stet/policy.yaml", config);
	return home ? xasprintf("%s/.config/stet/policy.yaml", home) : NULL;
}

/* The file that keeps what was allowed for the project in @dir. */
static int note_path(struct op_ctx *ctx, const char *dir, char **out, struct err *e)
{
	char hex[65];
	struct home *h;

	if (op_ctx_dir(ctx, &h, e) < 0)
		return -1;
	policy_text_hash(dir, strlen(dir), hex);
	*out = xasprintf("%s/allowed/%s", h->dir, hex);
	return 0;
}

/* Was this text allowed? */
static int look_up(struct op_ctx *ctx, const char *dir, const struct buf *text,
		   enum project_policy *state, struct err *e)
{
	AUTO_BUF struct buf note = BUF_INIT;
	AUTO_FREE char *path = NULL;
	char hex[65];
	int r;

	if (note_path(ctx, dir, &path, e) < 0)
		return -1;
	r = read_file(path, true, &note, e);
	if (r < 0)
		return -1;
	policy_text_hash(buf_str(text), text->len, hex);
	if (r > 0)
		*state = PROJECT_WAITING;
	else
		*state = strncmp(buf_str(&note), hex, 64) == 0 ? PROJECT_ALLOWED
							       : PROJECT_CHANGED;
	return 0;
}

/* Adds a layer; *n counts the layers. */
static int add_layer(char *path, enum conf_origin origin, struct buf *text,
		     struct conf_source *sources, size_t *n, struct op_policy *out,
		     struct err *e)
{
	int r;

	if (!path)
		return 0;
	r = read_file(path, origin == CONF_PROJECT, text, e);
	if (r != 0) {
		free(path);
		return r < 0 ? -1 : 0;
	}
	sources[(*n)++] = (struct conf_source){ origin, path, buf_str(text), text->len };
	out->files[origin - CONF_SYSTEM] = path;
	return 0;
}

static int load(const struct conf_source *sources, size_t n, struct op_policy *out,
		struct err *e)
{
	if (!n)
		return 0;
	if (policy_load(sources, n, &out->owned, e) < 0)
		return err_hint(e, "put it right, or move it away; nothing runs under a "
				   "policy that cannot be read");
	out->p = out->owned;
	return 0;
}

int op_policy_load(struct op_ctx *ctx, const char *workspace, struct op_policy *out,
		   struct err *e)
{
	AUTO_BUF struct buf system = BUF_INIT;
	AUTO_BUF struct buf user = BUF_INIT;
	AUTO_BUF struct buf project = BUF_INIT;
	struct conf_source sources[3];
	size_t n = 0, before;

	memset(out, 0, sizeof(*out));
	out->p = policy_builtin();
	if (add_layer(xstrdup(SYSTEM_FILE), CONF_SYSTEM, &system, sources, &n, out, e) <
		    0 ||
	    add_layer(user_file(ctx), CONF_USER, &user, sources, &n, out, e) < 0)
		return -1;
	before = n;
	if (workspace && add_layer(xasprintf("%s/" PROJECT_FILE, workspace), CONF_PROJECT,
				   &project, sources, &n, out, e) < 0)
		return -1;
	if (n > before) {
		out->project_file = out->files[2];
		if (look_up(ctx, workspace, &project, &out->project, e) < 0)
			return -1;
		if (out->project != PROJECT_ALLOWED)
			n--;
	}
	return load(sources, n, out, e);
}

int op_policy_load_file(struct op_ctx *ctx, const char *file, struct op_policy *out,
			struct err *e)
{
	AUTO_BUF struct buf text = BUF_INIT;
	struct conf_source source = { CONF_USER, file, NULL, 0 };
	int r;

	(void)ctx;
	memset(out, 0, sizeof(*out));
	out->p = policy_builtin();
	r = read_file(file, false, &text, e);
	if (r > 0)
		return err_sys(e, ENOENT, "policy %s", file);
	if (r < 0)
		return -1;
	source.text = buf_str(&text);
	source.len = text.len;
	out->files[1] = xstrdup(file);
	return load(&source, 1, out, e);
}

void op_policy_free(struct op_policy *p)
{
	size_t i;

	policy_free(p->owned);
	for (i = 0; i < ARRAY_SIZE(p->files); i++)
		free(p->files[i]);
	memset(p, 0, sizeof(*p));
}

/* Written aside and renamed: it is there whole, or not. */
static int write_note(const char *path, const char *hash, const char *dir, struct err *e)
{
	AUTO_FREE char *top = xstrdup(path), *aside = xasprintf("%s.new", path);
	AUTO_BUF struct buf line = BUF_INIT;
	AUTO_CLOSE int fd = -1;

	*strrchr(top, '/') = 0;
	if (mkdir(top, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "%s", top);
	buf_addf(&line, "%s %s\n", hash, dir);
	fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, line.data, line.len) != (ssize_t)line.len ||
	    fsync(fd) < 0 || rename(aside, path) < 0)
		return err_sys(e, errno, "%s", path);
	return 0;
}

int op_policy_allow(struct op_ctx *ctx, const char *dir, bool revoke, char hash[65],
		    char **file, struct err *e)
{
	AUTO_BUF struct buf text = BUF_INIT;
	AUTO_FREE char *note = NULL;
	struct conf_source source = { CONF_PROJECT, NULL, NULL, 0 };
	struct policy *p = NULL;
	int r;

	if (note_path(ctx, dir, &note, e) < 0)
		return -1;
	*file = xasprintf("%s/" PROJECT_FILE, dir);
	if (revoke) {
		hash[0] = 0;
		if (unlink(note) < 0 && errno != ENOENT)
			return err_sys(e, errno, "%s", note);
		return 0;
	}
	r = read_file(*file, true, &text, e);
	if (r > 0) {
		err_set(e, ERR_STATE, "%s: there is none", *file);
		return err_hint(e, "go to the project that has one");
	}
	if (r < 0)
		return -1;
	source.name = *file;
	source.text = buf_str(&text);
	source.len = text.len;
	if (policy_load(&source, 1, &p, e) < 0)
		return -1;
	policy_free(p);
	policy_text_hash(source.text, source.len, hash);
	return write_note(note, hash, dir, e);
}
