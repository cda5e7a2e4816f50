/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

/* The kernel writes space, tab, newline, backslash and '#' as \ooo. In place. */
static void unescape(char *s)
{
	char *w = s;

	for (; *s; s++, w++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*w = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*w = *s;
		}
	}
	*w = '\0';
}

static uint64_t parse_options(char *opts)
{
	static const struct {
		const char *name;
		uint64_t attr;
	} known[] = {
		{ "ro", MOUNT_ATTR_RDONLY },
		{ "nosuid", MOUNT_ATTR_NOSUID },
		{ "nodev", MOUNT_ATTR_NODEV },
		{ "noexec", MOUNT_ATTR_NOEXEC },
		{ "noatime", MOUNT_ATTR_NOATIME },
		{ "nodiratime", MOUNT_ATTR_NODIRATIME },
		{ "nosymfollow", MOUNT_ATTR_NOSYMFOLLOW },
	};
	uint64_t attrs = 0;
	char *o;

	while ((o = strsep(&opts, ","))) {
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			if (strcmp(o, known[i].name) == 0)
				attrs |= known[i].attr;
	}
	return attrs;
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue */
static int parse_line(char *line, struct mountpoint *m)
{
	char *id, *parent, *dev, *opts, *f, *super;
	unsigned maj, min;

	id = strsep(&line, " ");
	parent = strsep(&line, " ");
	dev = strsep(&line, " ");
	m->root = strsep(&line, " ");
	m->target = strsep(&line, " ");
	opts = strsep(&line, " ");
	do {
		f = strsep(&line, " ");
	} while (f && strcmp(f, "-") != 0);
	m->fstype = strsep(&line, " ");
	strsep(&line, " ");
	super = strsep(&line, " ");
	if (!super || sscanf(dev, "%u:%u", &maj, &min) != 2)
		return -EBADMSG;
	m->options = super;
	m->id = atoi(id);
	m->parent = atoi(parent);
	m->dev = makedev(maj, min);
	unescape(m->root);
	unescape(m->target);
	unescape(m->options);
	m->attrs = parse_options(opts);
	m->fixed = strncmp(super, "ro,", 3) == 0 || strcmp(super, "ro") == 0;
	m->read_only = (m->attrs & MOUNT_ATTR_RDONLY) || m->fixed;
	m->visible = true;
	return 0;
}

int mountinfo_parse(char *text, struct mountinfo *mi)
{
	char *line, *rest = text;
	size_t cap = 0;
	int r;

	*mi = (struct mountinfo){ .text = text };
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		if (mi->n == cap) {
			cap = cap ? 2 * cap : 64;
			mi->v = xrealloc(mi->v, cap * sizeof(*mi->v));
		}
		r = parse_line(line, &mi->v[mi->n]);
		if (r < 0) {
			mountinfo_free(mi);
			return r;
		}
		mi->n++;
	}
	return 0;
}

/* Is what is found there in that mount? */
static bool is_at(const struct mountpoint *m, int dir, const char *name, int flags)
{
	struct statx sx;

	if (statx(dir, name, flags, STATX_MNT_ID, &sx) < 0)
		return false;
	return !(sx.stx_mask & STATX_MNT_ID) || sx.stx_mnt_id == (uint64_t)m->id;
}

static bool on_top(const struct mountpoint *m)
{
	return is_at(m, AT_FDCWD, m->target,
		     AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC);
}

bool mountinfo_is(const struct mountpoint *m, int fd)
{
	return is_at(m, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC);
}

int mountinfo_read(struct mountinfo *mi)
{
	AUTO_CLOSE int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct buf b = BUF_INIT;
	char chunk[16384];
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&b, chunk, (size_t)n);
	if (n < 0) {
		r = -errno;
		buf_free(&b);
		return r;
	}
	r = mountinfo_parse(buf_take(&b), mi);
	if (r < 0)
		return r;
	for (size_t i = 0; i < mi->n; i++)
		mi->v[i].visible = on_top(&mi->v[i]);
	return 0;
}

int mountinfo_watch(void)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool mountinfo_changed(int watch)
{
	struct pollfd p = { .fd = watch };

	return watch >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

void mountinfo_free(struct mountinfo *mi)
{
	free(mi->v);
	free(mi->text);
	*mi = (struct mountinfo){ 0 };
}

const struct mountpoint *mountinfo_of(const struct mountinfo *mi, const char *path)
{
	const struct mountpoint *best = NULL;

	for (size_t i = 0; i < mi->n; i++) {
		const struct mountpoint *m = &mi->v[i];

		if (m->visible && path_within(path, m->target) &&
		    (!best || strlen(m->target) >= strlen(best->target)))
			best = m;
	}
	return best;
}
