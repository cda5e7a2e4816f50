/* SPDX-License-Identifier: Apache-2.0 */
#include "snap/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/overlay.h"
#include "sys/fs.h"

static bool listed(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

bool store_fs_upper(const char *fstype)
{
	static const char *const good[] = { "ext2",  "ext3", "ext4", "xfs",	 "btrfs",
					    "tmpfs", "f2fs", "zfs",  "bcachefs", NULL };

	return listed(fstype, good);
}

bool store_fs_lower(const char *fstype)
{
	static const char *const bad[] = {
		"proc",	       "sysfs",	   "devtmpfs",	"devpts",     "cgroup",
		"cgroup2",     "debugfs",  "tracefs",	"securityfs", "bpf",
		"pstore",      "mqueue",   "hugetlbfs", "configfs",   "fusectl",
		"binfmt_misc", "efivarfs", "nsfs",	"autofs",     "selinuxfs",
		"rpc_pipefs",  "ramfs",	   "vfat",	"msdos",      NULL
	};

	return !listed(fstype, bad);
}

bool store_named(const char *name, uid_t owner)
{
	AUTO_FREE char *own = xasprintf(STORE_NAME "%u", (unsigned)owner);

	return strcmp(name, own) == 0;
}

/*
 * Can a layer on this filesystem have user attributes, which say that directories were deleted
 * or replaced? A tmpfs before Linux 6.6 has none, and they can be switched off: a layer can be
 * mounted there, and breaks when a directory is replaced.
 */
static bool takes_marks(const char *path)
{
	AUTO_BUF struct buf value = BUF_INIT;

	return fs_xattr_get(AT_FDCWD, path, OVERLAY_OPAQUE, &value) != -EOPNOTSUPP;
}

static bool can_hold(const struct mountpoint *m, const char *path)
{
	return store_fs_upper(m->fstype) && takes_marks(path);
}

/* A directory of ours, or one we can make: 0, else -errno. */
static int own_dir(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		if (errno != ENOENT)
			return -errno;
		if (mkdir(path, 0700) == 0)
			return 0;
		if (errno != EEXIST || lstat(path, &st) < 0)
			return -errno;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

/* Same mount, not only same device: rename(2) does not cross mounts. */
static bool same_mount(const struct mountinfo *mi, const char *a, const char *b)
{
	return mountinfo_of(mi, a) == mountinfo_of(mi, b);
}

/* The store may have to lie in somebody's work tree: git shall not see it there. */
static void ignore_in_git(const char *dir)
{
	AUTO_FREE char *path = xasprintf("%s/.gitignore", dir);
	AUTO_CLOSE int fd = open(
		path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, "*\n", 2) < 0)
		unlink(path);
}

/*
 * A user may have several journals (another HOME, another state directory): each has a
 * directory of its own in a store that they share.
 */
static int own_corner(const struct mountpoint *m, struct buf *path, const char *state_dir)
{
	AUTO_CLOSE int top = open(buf_str(path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *name = xasprintf("/.stet-%u", (unsigned)geteuid());
	AUTO_BUF struct buf via = BUF_INIT;
	size_t base;
	int r;

	if (top < 0)
		return -errno;
	/* A directory below the mount point is not ours if the mount is gone by now. */
	if (!mountinfo_is(m, top))
		return -ENODEV;
	buf_addf(&via, "/proc/self/fd/%d", top);
	base = via.len;
	buf_adds(&via, name);
	r = own_dir(buf_str(&via));
	if (r < 0)
		return r;
	ignore_in_git(buf_str(&via));
	buf_addf(&via, "/%016llx",
		 (unsigned long long)XXH64(state_dir, strlen(state_dir), 0));
	r = own_dir(buf_str(&via));
	if (path->len == 1) /* the root: it ends in a slash already */
		buf_truncate(path, 0);
	buf_adds(path, buf_str(&via) + base);
	return r;
}

int store_known(const char *state_dir, struct buf *list)
{
	AUTO_FREE char *name = xasprintf("%s/" STORES, state_dir);
	AUTO_CLOSE int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(list, piece, (size_t)n);
	/* Of one that was cut short by a crash nothing was made yet. */
	if (list->len && buf_str(list)[list->len - 1])
		buf_addc(list, '\0');
	return n < 0 ? -errno : 0;
}

static bool is_known(const char *state_dir, const char *store)
{
	AUTO_BUF struct buf list = BUF_INIT;

	if (store_known(state_dir, &list) < 0)
		return false;
	for (const char *s = buf_str(&list), *end = s + list.len; s < end;
	     s += strlen(s) + 1)
		if (strcmp(s, store) == 0)
			return true;
	return false;
}

/* Without the corner in it. Two that note the same at once do no harm. */
static int remember(const char *state_dir, const char *corner)
{
	AUTO_FREE char *store = xstrndup(corner, (size_t)(strrchr(corner, '/') - corner));
	AUTO_FREE char *name = xasprintf("%s/" STORES, state_dir);
	AUTO_CLOSE int fd = -1;
	size_t len = strlen(store) + 1;

	if (is_known(state_dir, store))
		return 0;
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* The NUL ends an entry that was cut short before. */
	return write(fd, "\0", 1) == 1 && write(fd, store, len) == (ssize_t)len ? 0
										: -EIO;
}

static int in_state(const char *state_dir, char **out, struct err *e)
{
	char *dir = xasprintf("%s/tx", state_dir);
	int r = own_dir(dir);

	if (r == -EPERM) {
		err_set(e, ERR_STATE, "%s does not belong to this user alone", dir);
		err_hint(e, "look who can read and write it, then: chmod 700 '%s'", dir);
	} else if (r < 0) {
		err_sys(e, r, "cannot make the store %s", dir);
	}
	if (r < 0) {
		free(dir);
		return -1;
	}
	*out = dir;
	return 0;
}

int store_for(const struct mountinfo *mi, const char *state_dir, const char *path,
	      char **out, struct err *e)
{
	const struct mountpoint *m = mountinfo_of(mi, path);
	const struct mountpoint *home = mountinfo_of(mi, state_dir);
	struct buf b = BUF_INIT;
	size_t len;

	if (!m)
		return err_set(e, ERR_UNSUPPORTED, "no mount holds %s", path);
	if (!same_mount(mi, path, state_dir) && can_hold(m, path)) {
		/* From the top of the mount down to the tree itself. */
		for (len = strlen(m->target);; len++) {
			if (path[len] && path[len] != '/' && len > 1)
				continue;
			buf_reset(&b);
			buf_add(&b, path, len);
			if (own_corner(m, &b, state_dir) == 0 &&
			    remember(state_dir, buf_str(&b)) == 0) {
				*out = buf_take(&b);
				return 0;
			}
			if (!path[len])
				break;
		}
		buf_free(&b);
	}
	if (home && can_hold(home, state_dir))
		return in_state(state_dir, out, e);
	if (getenv("STET_TXN")) {
		err_set(e, ERR_UNSUPPORTED,
			"this is inside of transaction %s already, and layers do not stack",
			getenv("STET_TXN"));
		return err_hint(e, "run the command as it is: what it does is captured");
	}
	err_set(e, ERR_UNSUPPORTED,
		"%s is on %s, which cannot hold a copy-on-write layer", state_dir,
		home ? home->fstype : "an unknown filesystem");
	return err_hint(e, "set STET_STATE_DIR to a directory on ext4, xfs or btrfs");
}

/*
 * The merged root takes owner and mode from the upper, which the user must own. Where
 * the host's directory is somebody else's, the owner bits say what the user may do
 * there: otherwise he could suddenly write it.
 */
static mode_t upper_mode(const char *host, const struct stat *st)
{
	mode_t m = st->st_mode & 07777;

	if (st->st_uid == geteuid() || geteuid() == 0)
		return m;
	m &= 07077;
	if (access(host, R_OK) == 0)
		m |= 0400;
	if (access(host, W_OK) == 0)
		m |= 0200;
	if (access(host, X_OK) == 0)
		m |= 0100;
	return m;
}

static int dress_upper(const char *host, const char *up, struct err *e)
{
	struct stat st;

	if (stat(host, &st) < 0)
		return err_sys(e, errno, "cannot look at %s", host);
	if (FAULT_AT("store.chown") ||
	    (geteuid() == 0 && chown(up, st.st_uid, st.st_gid) < 0))
		return err_sys(e, errno, "cannot give %s the owner of %s", up, host);
	if (FAULT_AT("store.chmod") || chmod(up, upper_mode(host, &st)) < 0)
		return err_sys(e, errno, "cannot give %s the mode of %s", up, host);
	if (FAULT_AT("store.utimes") ||
	    utimensat(AT_FDCWD, up, (struct timespec[]){ st.st_atim, st.st_mtim }, 0) < 0)
		return err_sys(e, errno, "cannot give %s the times of %s", up, host);
	return 0;
}

/* A private directory needs no upper and no work directory: it is its own content. */
static int scratch_make(const struct view_layer *l, struct err *e)
{
	return FAULT_AT("store.scratch") || chmod(l->dir, 01777) < 0
		       ? err_sys(e, errno, "cannot open %s to all", l->dir)
		       : 0;
}

/* A directory that there may be already; nothing else under that name. */
static int make_part(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* In the directory of a layer that lies on another filesystem than what it is of. */
#define FS_NOTE "fs"

/* The kind of filesystem, and whether it begins there: numbers of devices and inodes are not the
 * same after another mount. */
static int describe_fs(const char *host, char *out, size_t size)
{
	struct statfs fs;
	struct statx sx;

	if (statfs(host, &fs) < 0 ||
	    statx(AT_FDCWD, host, AT_NO_AUTOMOUNT, STATX_TYPE, &sx) < 0)
		return -errno;
	return snprintf(out, size, "%lx %d", (unsigned long)fs.f_type,
			(sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0);
}

/* Without the note it is not noticed. */
static void note_fs(const struct view_layer *l)
{
	AUTO_FREE char *name = xasprintf("%s/" FS_NOTE, l->dir);
	AUTO_CLOSE int fd = -1;
	struct stat here, there;
	char text[64];
	int n;

	if (stat(l->dir, &here) < 0 || stat(l->host, &there) < 0 ||
	    here.st_dev == there.st_dev)
		return;
	n = describe_fs(l->host, text, sizeof(text));
	if (n > 0)
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd >= 0 && write(fd, text, (size_t)n) != n)
		unlink(name);
}

bool layer_unmounted(const char *dir, const char *host)
{
	AUTO_FREE char *name = xasprintf("%s/" FS_NOTE, dir);
	AUTO_CLOSE int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char was[64], is[64];
	ssize_t n = fd < 0 ? -1 : read(fd, was, sizeof(was) - 1);

	if (n <= 0)
		return false;
	was[n] = '\0';
	return describe_fs(host, is, sizeof(is)) > 0 && strcmp(was, is) != 0;
}

int layer_make(const struct view_layer *l, struct err *e)
{
	AUTO_FREE char *up = xasprintf("%s/up", l->dir);
	AUTO_FREE char *wk = xasprintf("%s/wk", l->dir);
	int r;

	if (l->kind == LAYER_SCRATCH)
		return scratch_make(l, e);
	r = FAULT_AT("store.upper") ? -errno : make_part(up);
	if (r < 0)
		return err_sys(e, r, "cannot make the layer %s", up);
	if (dress_upper(l->host, up, e) < 0)
		return -1;
	note_fs(l);
	r = FAULT_AT("store.work") ? -errno : make_part(wk);
	return r < 0 ? err_sys(e, r, "cannot make the work directory %s", wk) : 0;
}

int layer_resume(const struct view_layer *l, struct err *e)
{
	AUTO_FREE char *up = xasprintf("%s/up", l->dir);
	AUTO_FREE char *wk = xasprintf("%s/wk", l->dir);
	/* Left by the last mount; its own name lets a new one take its place. */
	AUTO_FREE char *old = xasprintf("%s/wk.XXXXXX", l->dir);
	struct stat st;

	if (l->kind == LAYER_SCRATCH)
		return scratch_make(l, e);
	if (lstat(up, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_sys(e, ENOTDIR, "the layer %s is not there", up);
	if (FAULT_AT("store.rework") || !mkdtemp(old) ||
	    (rename(wk, old) < 0 && errno != ENOENT) || mkdir(wk, 0700) < 0)
		return err_sys(e, errno, "cannot make the work directory %s", wk);
	return 0;
}
