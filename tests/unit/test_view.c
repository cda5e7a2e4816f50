/* SPDX-License-Identifier: Apache-2.0 */
/* The view as data: which steps a mount table and the user's wishes lead to. Nothing is mounted. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "snap/view.h"
#include "sys/mountinfo.h"
#include "sys/rmtree.h"

/*
 * One directory stands for a machine's disk. The mount table of a row says that this directory
 * is a mount and has others in it; the rest of the machine is one read-only mount, so that only
 * steps in the directory are of interest. The numbers of these mounts are not the kernel's: so no
 * store is made in them but the one in `state`.
 */
struct row {
	const char *name;
	const char *dirs;   /* to be made, beside ws, ws/src and state */
	const char *mounts; /* "PATH TYPE OPTIONS", separated by ';' */
	bool root;
	/* Wishes, one path each. */
	const char *read_only, *write_through, *hide, *socket;
	const char *workspace; /* NULL: ws */
	/*
	 * "KIND PATH" of each step ('-': read-only, '*': the directory's own level alone, '1':
	 * without the mounts below), then "hidden PATH" for each hidden path but the store. NULL:
	 * view_make_from() fails, and its message holds @error.
	 */
	const char *steps, *error;
};

/* clang-format off */
static const struct row rows[] = {
	/* An ordinary user gets overlays over the trees that are writable. */
	{ "one disk",                "", "", .steps = "overlay ." },
	{ "a disk below it",         "ws/data", "ws/data ext4 rw",
	  .steps = "overlay *.; overlay *ws; overlay ws/data; overlay ws/src" },
	{ "a read-only disk",        "usb", "usb ext4 ro",
	  .steps = "overlay *.; show -usb; overlay ws" },
	{ "a disk without devices",  "usb", "usb ext4 rw,nosuid,nodev,noexec",
	  .steps = "overlay *.; overlay usb; overlay ws" },
	{ "the host's processes",    "p", "p proc rw",
	  .steps = "overlay *.; mask p; overlay ws" },
	{ "the host's terminals",    "p", "p devpts rw",
	  .steps = "overlay *.; mask p; overlay ws" },
	{ "a disk that no overlay can lie over", "efi", "efi vfat rw",
	  .steps = "overlay *.; bind -efi; overlay ws" },
	{ "on top of one another: the last counts", "usb", "usb proc rw;usb ext4 rw",
	  .steps = "overlay *.; overlay usb; overlay ws" },

	{ "read-only",               "", "", .read_only = "ws/src",
	  .steps = "overlay .; show -ws/src" },
	{ "read-only around a layer", "ws/data", "ws/data ext4 rw", .read_only = "ws/data",
	  .steps = "overlay *.; overlay *ws; show -ws/data; overlay ws/src" },
	{ "written through",         "", "", .write_through = "ws/src",
	  .steps = "overlay .; bind ws/src" },
	{ "hidden",                  "ws/key", "", .hide = "ws/key",
	  .steps = "overlay .; hidden ws/key" },
	{ "hidden as a mount",       "usb", "usb ext4 rw", .hide = "usb",
	  .steps = "overlay *.; overlay ws; hidden usb" },
	{ "a socket",                "", "", .socket = "ws/sock",
	  .steps = "overlay .; socket -ws/sock" },

	/* Root gets an overlay for each writable mount. */
	{ "root: one disk",          "", "", .root = true, .steps = "overlay ." },
	{ "root: two disks",         "ws/data", "ws/data xfs rw", .root = true,
	  .steps = "overlay .; overlay ws/data" },
	{ "root: a read-only disk",  "usb", "usb ext4 ro", .root = true,
	  .steps = "overlay .; show -usb" },
	{ "root: a server's disk",   "net", "net nfs4 rw", .root = true,
	  .steps = "overlay .; show -net" },
	{ "root: a server's disk with the workspace", "net net/p", "net nfs4 rw", .root = true,
	  .workspace = "net/p", .steps = "overlay .; overlay net" },
	{ "root: the host's processes", "p", "p proc rw", .root = true,
	  .steps = "overlay .; mask p" },
	{ "root: a hidden disk",     "usb", "usb ext4 rw", .root = true, .hide = "usb",
	  .steps = "overlay .; mask usb; hidden usb" },

	/* The same disk under another name shows no store. */
	{ "another name of the store", "alias alias/state", "alias ext4 rw same", .root = true,
	  .steps = "overlay .; overlay alias; hidden alias/state" },

	{ "a store as workspace",    "state/x", "", .workspace = "state/x", .error = "stet's own store" },
	{ "a workspace that cannot be overlaid", "efi", "efi vfat rw", .workspace = "efi",
	  .error = "which the kernel cannot overlay" },
	{ "no workspace",            "", "", .workspace = "none", .error = "workspace" },
	{ "read-only and written through", "", "", .read_only = "ws/src", .write_through = "ws/src",
	  .error = "cannot be both" },
	{ "a socket that is hidden", "d", "", .hide = "d", .socket = "d/sock",
	  .error = "must stay hidden" },
};
/* clang-format on */

/* --- the directory --- */

static char top[4096]; /* its path */

static int make_top(void **state)
{
	(void)state;
	if (!getcwd(top, sizeof(top) - 32))
		return -1;
	strcat(top, "/stet-view-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	AUTO_CLOSE int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	return rmtree_at(here, strrchr(top, '/') + 1, NULL);
}

static char *in_top(const char *rel)
{
	return rel ? xasprintf("%s/%s", top, rel) : NULL;
}

static void make_dirs(const char *words)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " "))) {
		AUTO_FREE char *path = in_top(word);

		if (*word)
			assert_int_equal(mkdir(path, 0700), 0);
	}
}

static void make_socket(const char *rel)
{
	AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, rel);
	assert_int_equal(bind(s, (const struct sockaddr *)&a, sizeof(a)), 0);
}

/* --- the table --- */

/* The text as the kernel writes it. A mount marked "same" is of the directory's own device. */
static char *mount_table(const struct row *r)
{
	AUTO_FREE char *copy = xstrdup(r->mounts);
	char *rest = copy, *one;
	struct buf b = BUF_INIT;
	int id = 1000000000;

	buf_addf(&b, "%d 1 250:1 / / ro - ext4 none ro\n", id++);
	buf_addf(&b, "%d 1 250:2 / %s rw - ext4 none rw\n", id++, top);
	while ((one = strsep(&rest, ";"))) {
		char *path = strsep(&one, " "), *type = strsep(&one, " ");
		char *options = strsep(&one, " ");

		if (!type)
			continue;
		buf_addf(&b, "%d 1 250:%d / %s/%s %s - %s none rw\n", id,
			 one ? 2 : 10 + id % 100, top, path, options, type);
		id++;
	}
	return buf_take(&b);
}

/* --- steps as words --- */

static void add_words(const struct view *v, struct buf *out)
{
	for (size_t i = 0; i < v->nsteps; i++) {
		const struct step *s = &v->steps[i];

		if (!path_within(s->target, top))
			continue;
		buf_addf(out, "%s%s %s%s%s%s", out->len ? "; " : "",
			 step_kind_name(s->kind), s->attrs & MOUNT_ATTR_RDONLY ? "-" : "",
			 s->skeleton ? "*" : "", s->single ? "1" : "",
			 s->target[strlen(top)] ? s->target + strlen(top) + 1 : ".");
	}
	for (size_t i = 0; i < v->nhidden; i++)
		if (path_within(v->hidden[i], top) &&
		    strcmp(v->hidden[i] + strlen(top), "/state") != 0)
			buf_addf(out, "; hidden %s", v->hidden[i] + strlen(top) + 1);
}

/* A list of one path, or none. */
static char *const *one(char *path, char **v)
{
	v[0] = path;
	v[1] = NULL;
	return path ? v : NULL;
}

/* For every view: a parent comes before its children, and each layer has one step. */
static void check_order(const struct row *r, const struct view *v)
{
	size_t layers = 0;

	for (size_t i = 0; i < v->nsteps; i++) {
		layers += v->steps[i].kind == STEP_OVERLAY ||
			  v->steps[i].kind == STEP_SCRATCH;
		for (size_t k = 0; k < i && v->steps[i].kind != STEP_SOCKET; k++)
			if (path_within(v->steps[k].target, v->steps[i].target) &&
			    strcmp(v->steps[k].target, v->steps[i].target) != 0)
				fail_msg("%s: %s comes before %s", r->name,
					 v->steps[k].target, v->steps[i].target);
	}
	assert_int_equal(layers, v->nlayers);
}

static void check_row(const struct row *r)
{
	AUTO_FREE char *ws = in_top(r->workspace ? r->workspace : "ws");
	AUTO_FREE char *state = in_top("state"), *ro = in_top(r->read_only);
	AUTO_FREE char *through = in_top(r->write_through), *hide = in_top(r->hide);
	AUTO_FREE char *sock = in_top(r->socket);
	char *lists[4][2];
	const struct view_request rq = { .workspace = ws,
					 .cwd = ws,
					 .home = ws,
					 .state_dir = state,
					 .host_tmp = true,
					 .read_only = one(ro, lists[0]),
					 .write_through = one(through, lists[1]),
					 .hide = one(hide, lists[2]),
					 .sockets = one(sock, lists[3]) };
	AUTO_BUF struct buf got = BUF_INIT;
	struct mountinfo mi;
	struct view v;
	struct err e = { 0 };
	int x;

	make_dirs("ws ws/src state");
	make_dirs(r->dirs);
	if (sock)
		make_socket(r->socket);
	assert_int_equal(mountinfo_parse(mount_table(r), &mi), 0);
	x = view_make_from(&mi, r->root, &rq, &v, &e);
	mountinfo_free(&mi);
	if (r->error) {
		if (x == 0 || !strstr(e.msg, r->error))
			fail_msg("%s: %s", r->name, x ? e.msg : "no error");
		return;
	}
	if (x < 0)
		fail_msg("%s: %s", r->name, e.msg);
	add_words(&v, &got);
	if (strcmp(buf_str(&got), r->steps) != 0)
		fail_msg("%s: its steps are\n  \"%s\"\nand not\n  \"%s\"", r->name,
			 buf_str(&got), r->steps);
	check_order(r, &v);
	assert_true(view_hides(&v, state));
	view_free(&v);
}

static void planned(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(make_top(state), 0);
		check_row(&rows[i]);
		assert_int_equal(remove_top(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(planned) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
