/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "doctor/filesystems.h"
#include "doctor/parts.h"
#include "doctor/probe.h"
#include "doctor/probe_fs.h"

/* Below these a run can be expected to fill the disk. */
static const uint64_t few_bytes = 1ULL << 30, no_bytes = 16ULL << 20;
static const uint64_t few_inodes = 100000;

struct place {
	const char *id, *name; /* for programs, for people */
	char *path;	       /* existing directory, or NULL */
	dev_t dev;
	enum doctor_status grave; /* if no layer can be made there */
	bool same;		  /* as an earlier one */
	struct probe_fs fs;
	int err; /* of the probe itself */
};

enum { STATE, TMP, HOME, WORKSPACE, PLACES };

static const char *env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static char *state_dir(void)
{
	const char *dir = env("STET_STATE_DIR"), *xdg = env("XDG_STATE_HOME");

	if (dir)
		return *dir == '/' ? xstrdup(dir) : NULL;
	if (xdg && *xdg == '/')
		return xasprintf("%s/stet", xdg);
	if (env("HOME"))
		return xasprintf("%s/.local/state/stet", env("HOME"));
	return NULL;
}

/* The directory itself or the nearest one above it that exists. Takes @path over. */
static char *existing(char *path)
{
	struct stat st;
	char *slash;

	while (path && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))) {
		slash = strrchr(path, '/');
		if (!slash) {
			free(path);
			return NULL;
		}
		slash[slash == path] = '\0';
		if (!strcmp(path, "/"))
			break;
	}
	return path;
}

static void examine(struct place *places, size_t i)
{
	struct place *p = &places[i];
	struct stat st;
	size_t j;

	if (!p->path)
		return;
	if (stat(p->path, &st) < 0) {
		p->err = -errno;
		return;
	}
	p->dev = st.st_dev;
	for (j = 0; j < i; j++)
		if (places[j].path && !places[j].err && places[j].dev == p->dev &&
		    !places[j].fs.write)
			p->same = true;
	/* A filesystem is tried once, where it hurts least: the workspace comes last. */
	if (!p->same)
		p->err = probe_fs(p->path, &p->fs);
}

static void where(struct buf *out, const struct place *places, size_t i)
{
	size_t j;

	text_quote(out, places[i].path, strlen(places[i].path));
	buf_addf(out, " (%s; %s", places[i].fs.type, places[i].name);
	for (j = i + 1; j < PLACES; j++)
		if (places[j].same && places[j].dev == places[i].dev)
			buf_addf(out, ", %s", places[j].name);
	buf_addc(out, ')');
}

static void overlay_repair(const struct place *p, struct buf *out)
{
	if (p->fs.overlay == -ENODEV) {
		buf_adds(out, "sudo modprobe overlay\n"
			      "echo overlay | sudo tee /etc/modules-load.d/stet.conf");
	} else if (p->fs.magic == OVERLAYFS_SUPER_MAGIC) {
		buf_adds(out,
			 "a layer cannot lie on the overlay of a container; give it a "
			 "volume:\n"
			 "docker run --volume stet:/stet --env STET_STATE_DIR=/stet …\n"
			 "or, lost at the next start:\n"
			 "export STET_STATE_DIR=/dev/shm/stet");
	} else if (p->fs.overlay == -EPERM || p->fs.overlay == -EACCES) {
		buf_adds(out, "repair the namespaces above, then look again:\n"
			      "stet doctor");
	} else {
		buf_adds(out, "choose a directory on ext4, xfs, btrfs or tmpfs:\n"
			      "export STET_STATE_DIR=/path/on/such/a/disk/stet");
	}
}

static void add_overlay(struct doctor_report *r, const struct place *places, size_t i)
{
	const struct place *p = &places[i];
	AUTO_BUF struct buf id = BUF_INIT;
	AUTO_BUF struct buf title = BUF_INIT;
	AUTO_BUF struct buf found = BUF_INIT;
	AUTO_BUF struct buf repair = BUF_INIT;

	buf_addf(&id, "overlay:%s", p->id);
	buf_adds(&title, "layers on ");
	where(&title, places, i);
	if (p->fs.overlay) {
		buf_addf(&found, "%s: %s", *p->fs.step ? p->fs.step : "trying one",
			 strerror(-p->fs.overlay));
		overlay_repair(p, &repair);
	} else {
		buf_adds(&found, "work: create, delete, replace");
	}
	doctor_add(r, buf_str(&id), buf_str(&title), p->fs.overlay ? p->grave : DOCTOR_OK,
		   buf_str(&found),
		   "changes made there cannot be kept apart from the host's files",
		   buf_str(&repair));
}

static void add_abilities(struct doctor_report *r, const struct place *places, size_t i)
{
	const struct place *p = &places[i];
	AUTO_BUF struct buf id = BUF_INIT;
	AUTO_BUF struct buf title = BUF_INIT;
	AUTO_BUF struct buf found = BUF_INIT;

	buf_addf(&id, "exchange:%s", p->id);
	buf_adds(&title, "exchange of files on ");
	where(&title, places, i);
	if (p->fs.exchange)
		buf_addf(&found, "not available: %s", strerror(-p->fs.exchange));
	else
		buf_adds(&found, "works");
	doctor_add(r, buf_str(&id), buf_str(&title),
		   p->fs.exchange ? DOCTOR_WARN : DOCTOR_OK, buf_str(&found),
		   "a commit exchanges files in several steps and is slower",
		   p->fs.exchange ? "keep the project on ext4, xfs, btrfs or tmpfs" : "");

	buf_reset(&id);
	buf_reset(&title);
	buf_reset(&found);
	buf_addf(&id, "reflink:%s", p->id);
	buf_adds(&title, "shared copies (reflink) on ");
	where(&title, places, i);
	if (p->fs.reflink)
		buf_addf(&found, "not available: %s", strerror(-p->fs.reflink));
	else
		buf_adds(&found, "work");
	doctor_add(r, buf_str(&id), buf_str(&title),
		   p->fs.reflink ? DOCTOR_INFO : DOCTOR_OK, buf_str(&found),
		   "the first write to a big file copies it whole (0.4 s for a GiB)",
		   p->fs.reflink ? "keep big files on btrfs, or on xfs made with:\n"
				   "mkfs.xfs -m reflink=1 DEVICE"
				 : "");
}

static void add_unusable(struct doctor_report *r, const struct place *p)
{
	AUTO_BUF struct buf id = BUF_INIT;
	AUTO_BUF struct buf found = BUF_INIT;
	AUTO_BUF struct buf repair = BUF_INIT;
	int err = p->err ? p->err : p->fs.write;

	buf_addf(&id, "overlay:%s", p->id);
	if (!p->path) {
		buf_adds(&found,
			 env("STET_STATE_DIR")
				 ? "not known: STET_STATE_DIR is no absolute path"
				 : "not known: neither HOME nor STET_STATE_DIR is "
				   "set");
	} else {
		text_quote(&found, p->path, strlen(p->path));
		buf_addf(&found, " cannot be written: %s", strerror(-err));
	}
	if (p->id[0] == 'w')
		buf_adds(&repair, "cd to a directory of your own, or name one:\n"
				  "stet run --workspace DIR -- COMMAND");
	else if (p->id[0] == 't')
		buf_adds(&repair, "sudo chmod 1777 /tmp");
	else
		buf_adds(&repair, "export STET_STATE_DIR=/path/of/your/own/stet");
	doctor_add(
		r, buf_str(&id), p->name, p->grave, buf_str(&found),
		"changes made there cannot be kept, or nothing may be changed there at all",
		buf_str(&repair));
}

static void add_space(struct doctor_report *r, const struct place *p)
{
	AUTO_BUF struct buf found = BUF_INIT;
	enum doctor_status s = DOCTOR_OK;
	const struct probe_fs *fs = &p->fs;

	if (fs->free_bytes < few_bytes || (fs->inodes && fs->free_inodes < few_inodes))
		s = DOCTOR_WARN;
	if (fs->free_bytes < no_bytes || (fs->inodes && !fs->free_inodes))
		s = DOCTOR_FAIL;
	text_size(&found, fs->free_bytes);
	if (fs->inodes)
		buf_addf(&found, " and %llu inodes free",
			 (unsigned long long)fs->free_inodes);
	else
		buf_adds(&found, " free, no limit on inodes");
	doctor_add(r, "space", "space for layers", s, buf_str(&found),
		   "programs inside see a full disk when the store is full",
		   s == DOCTOR_OK ? "" : "throw finished transactions away:\nstet prune");
}

static void add_btrfs(struct doctor_report *r, const struct place *p)
{
	bool btrfs = p->fs.magic == (long)BTRFS_SUPER_MAGIC;

	doctor_add(
		r, "btrfs", "btrfs subvolumes", btrfs ? DOCTOR_OK : DOCTOR_INFO,
		!btrfs		  ? "the state directory is not on btrfs"
		: p->fs.subvolume ? "the state directory is a subvolume"
				  : "the state directory is on btrfs",
		"checkpoints cost what changed since the last one, instead of constant time",
		btrfs ? ""
		      : "to have it, put the state on btrfs:\n"
			"export STET_STATE_DIR=/path/on/btrfs/stet");
}

static void add_overlay_type(struct doctor_report *r)
{
	AUTO_BUF struct buf found = BUF_INIT;
	int err = probe_fstype_listed("overlay");
	bool loaded = err == -ENODEV;

	if (err)
		err = probe_fstype("overlay");
	if (err)
		buf_addf(&found, "not available: %s", strerror(-err));
	else
		buf_adds(&found, loaded ? "available, loaded on demand" : "available");
	doctor_add(r, "overlay", "overlay filesystem", err ? DOCTOR_FAIL : DOCTOR_OK,
		   buf_str(&found),
		   "it keeps the changes of a run apart from the host's files: nothing "
		   "works without it",
		   !err ? ""
			: "sudo modprobe overlay\n"
			  "echo overlay | sudo tee /etc/modules-load.d/stet.conf");
}

static void add_place(struct doctor_report *r, const struct place *places, size_t i)
{
	const struct place *p = &places[i];

	if (p->same)
		return;
	if (!p->path || p->err || p->fs.write) {
		add_unusable(r, p);
		return;
	}
	add_overlay(r, places, i);
	add_abilities(r, places, i);
}

int doctor_filesystems(struct doctor_report *r, struct err *e)
{
	struct place places[PLACES] = {
		[STATE] = { .id = "state",
			    .name = "state directory",
			    .grave = DOCTOR_FAIL },
		[TMP] = { .id = "tmp", .name = "/tmp", .grave = DOCTOR_WARN },
		[HOME] = { .id = "home", .name = "home", .grave = DOCTOR_WARN },
		[WORKSPACE] = { .id = "workspace",
				.name = "workspace",
				.grave = DOCTOR_FAIL },
	};
	char cwd[PATH_MAX];
	size_t i;

	if (!getcwd(cwd, sizeof(cwd))) {
		err_sys(e, errno, "current directory");
		return err_hint(e, "cd to a directory that exists");
	}
	places[STATE].path = existing(state_dir());
	places[TMP].path = xstrdup("/tmp");
	places[HOME].path = env("HOME") ? xstrdup(env("HOME")) : NULL;
	places[WORKSPACE].path = xstrdup(cwd);
	for (i = 0; i < PLACES; i++)
		examine(places, i);
	add_overlay_type(r);
	for (i = 0; i < PLACES; i++)
		add_place(r, places, i);
	if (places[STATE].path && !places[STATE].err) {
		add_space(r, &places[STATE]);
		add_btrfs(r, &places[STATE]);
	}
	for (i = 0; i < PLACES; i++)
		free(places[i].path);
	return 0;
}
