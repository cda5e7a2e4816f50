/* SPDX-License-Identifier: Apache-2.0 */
#include "change/git2.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

/* The headers we were built with and the library must agree on the layout of structs. */
#define SONAME "libgit2.so." LIBGIT2_SOVERSION

static int resolve(void *lib, struct git2 *g, struct err *e)
{
	struct {
		const char *name;
		void *slot;
	} const functions[] = {
		{ "git_libgit2_init", &g->libgit2_init },
		{ "git_error_last", &g->error_last },
		{ "git_patch_from_buffers", &g->patch_from_buffers },
		{ "git_patch_get_delta", &g->patch_get_delta },
		{ "git_patch_line_stats", &g->patch_line_stats },
		{ "git_patch_print", &g->patch_print },
		{ "git_patch_free", &g->patch_free },
		{ "git_merge_file", &g->merge_file },
		{ "git_merge_file_result_free", &g->merge_file_result_free },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		void *f = dlsym(lib, functions[i].name);

		if (!f)
			return err_set(e, ERR_UNSUPPORTED, "%s has no %s", SONAME,
				       functions[i].name);
		memcpy(functions[i].slot, &f, sizeof(f));
	}
	return 0;
}

const struct git2 *git2_load(struct err *e)
{
	static struct git2 loaded;
	static bool ready;
	struct git2 g;
	void *lib;

	if (ready)
		return &loaded;
	lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		err_set(e, ERR_UNSUPPORTED, "cannot load libgit2: %s", dlerror());
		err_hint(e, "install libgit2 %s (Debian: apt install libgit2-%s)",
			 LIBGIT2_SOVERSION, LIBGIT2_SOVERSION);
		return NULL;
	}
	if (resolve(lib, &g, e) < 0) {
		dlclose(lib);
		return NULL;
	}
	if (g.libgit2_init() < 0) {
		git2_error(&g, e, "cannot start libgit2");
		return NULL;
	}
	loaded = g;
	ready = true;
	return &loaded;
}

int git2_error(const struct git2 *g, struct err *e, const char *what)
{
	const git_error *last = g->error_last();

	return err_set(e, ERR_SYSTEM, "%s: %s", what,
		       last ? last->message : "no reason given");
}
