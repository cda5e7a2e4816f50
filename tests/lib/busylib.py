# SPDX-License-Identifier: Apache-2.0
"""Work that never rests, each step one system call, the same wherever it is done.

As a program, in its current directory: `busylib.py work SEED LINKS` works until a line comes in;
`busylib.py look` prints the number of the step that was last begun, and the tree, as JSON.
"""
import ctypes
import errno
import json
import mmap
import os
import random
import select
import stat
import struct
import sys

# Files that are open all the time and never renamed, each changed in one way alone.
MAPPED, SPLICED, WRITTEN, DIRECT = OPEN = ("mapped", "spliced", "written", "direct")
REST = 120  # files that nobody touches
PAGE = 4096
STEP = "step"
NAMES = 24
DIRS = ("", "a/", "a/b/", "c/")
libc = ctypes.CDLL(None, use_errno=True)


def prepare():
    """The first tree; what is made here is the host's, for the sandbox."""
    for d in DIRS[1:]:
        os.makedirs(d, exist_ok=True)
    for name in OPEN:
        with open(name, "wb") as f:
            f.write(b"-" * 2 * PAGE)
    for i in range(NAMES):
        with open(f"{DIRS[i % 4]}n{i}", "wb") as f:
            f.write(b"%d\n" % i * i)
    with open("source", "wb") as f:
        f.write(bytes(range(256)) * 64)
    with open(STEP, "wb") as f:
        f.write(b"0" * 9)


class Async:
    """Writes by io_submit(2), past the page cache: nobody is told of such a write."""

    NUMBERS = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}[os.uname().machine]

    def __init__(self):
        self.setup, self.getevents, self.submit = self.NUMBERS
        self.ctx, self.block = ctypes.c_ulong(0), mmap.mmap(-1, PAGE)
        assert libc.syscall(self.setup, 1, ctypes.byref(self.ctx)) == 0
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.block))

    def write(self, fd, block):
        self.block[:] = block
        call = ctypes.create_string_buffer(struct.pack("=QIiHhIQQqQII", 0, 0, 0, 1, 0, fd, self.at, PAGE,
                                                       0, 0, 0, 0))
        one = ctypes.c_void_p(ctypes.addressof(call))
        if libc.syscall(self.submit, self.ctx, 1, ctypes.byref(one)) == 1:
            libc.syscall(self.getevents, self.ctx, 1, 1, ctypes.create_string_buffer(32), None)


class Busy:
    def __init__(self, seed, links):
        self.r, self.links = random.Random(seed), links
        self.spliced, self.written = (os.open(name, os.O_RDWR) for name in (SPLICED, WRITTEN))
        try:
            self.direct = os.open(DIRECT, os.O_RDWR | os.O_DIRECT)
        except OSError:
            self.direct = os.open(DIRECT, os.O_RDWR)
        mapped = os.open(MAPPED, os.O_RDWR)
        self.map, self.later = mmap.mmap(mapped, PAGE), Async()
        os.close(mapped)
        self.source, self.step_fd, self.n = os.open("source", os.O_RDONLY), os.open(STEP, os.O_WRONLY), 0
        os.makedirs("z/z", exist_ok=True)
        for i in range(REST):
            with open(f"z/z/{i}", "wb") as f:
                f.write(b"%d" % i)

    def name(self):
        return self.r.choice(DIRS) + f"n{self.r.randrange(NAMES)}"

    def some(self):
        return self.r.choice((WRITTEN, self.name()))

    def letter(self):
        return b"%c" % (65 + self.r.randrange(26))

    def write(self):
        os.pwrite(self.written, self.letter() * self.r.randrange(1, 300), self.r.randrange(PAGE))

    def cut(self):
        os.ftruncate(self.written, self.r.randrange(PAGE, 3 * PAGE))

    def splice(self):
        os.lseek(self.spliced, self.r.randrange(PAGE), os.SEEK_SET)
        os.sendfile(self.spliced, self.source, self.r.randrange(PAGE), self.r.randrange(1, 9000))

    def splice_name(self):
        fd = os.open(self.name(), os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.sendfile(fd, self.source, self.r.randrange(PAGE), self.r.randrange(1, 300))
        finally:
            os.close(fd)

    def asynchronous(self):
        self.later.write(self.direct, self.letter() * PAGE)

    def store(self):
        self.map[self.r.randrange(PAGE)] = self.letter()[0]

    def cut_name(self):
        os.truncate(self.name(), self.r.randrange(300))

    def create(self):
        os.close(os.open(self.name(), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666))

    def create_nameless(self):
        """A file that gets its name later: overlays know it by another one for as long as it lives."""
        fd, name = os.open(self.r.choice(DIRS) or ".", os.O_TMPFILE | os.O_RDWR, 0o644), self.name()
        os.write(fd, self.letter() * 9)
        libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name.encode(), 0x400)
        os.close(fd)

    def symlink(self):
        os.symlink(self.letter(), self.name())

    def mkdir(self):
        os.mkdir(self.name())

    def rmdir(self):
        os.rmdir(self.name())

    def unlink(self):
        os.unlink(self.name())

    def rename(self):
        os.rename(self.name(), self.name())

    def rename_dir(self):
        os.rename(*self.r.choice((("a", "e"), ("e", "a"), ("c", "a/f"), ("a/f", "c"))))

    def chmod(self):
        os.chmod(self.some(), self.r.choice((0o600, 0o644, 0o755, 0o700)))

    def tag(self):
        os.setxattr(self.some(), "user.t", self.letter())

    def link(self):
        if self.links:
            os.link(self.name(), self.name(), follow_symlinks=False)

    KINDS = ([write, splice, splice_name, store] * 3 + [create, unlink, rename] * 3 + [asynchronous]
             + [cut, cut_name, symlink, mkdir, rmdir, rename_dir, create_nameless, chmod, tag, link])

    def step(self):
        """The number first, then the deed: of what is seen at most the last may be missing."""
        self.n += 1
        os.pwrite(self.step_fd, b"%09d" % self.n, 0)
        try:
            self.r.choice(self.KINDS)(self)
        except OSError as e:
            assert e.errno in (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP,
                               errno.ENOTEMPTY, errno.EPERM, errno.EINVAL, errno.EBUSY), e


def look():
    tree, groups = {}, {}
    for base, dirs, files in os.walk("."):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.relpath(os.path.join(base, name))
            st = os.lstat(path)
            what = [stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode)]
            if stat.S_ISLNK(st.st_mode):
                what = [os.readlink(path)]
            elif path == STEP:
                continue
            else:
                what.append(sorted((k, os.getxattr(path, k).decode()) for k in os.listxattr(path)
                                   if k.startswith("user.t")))
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what += [f.read().decode("latin-1"), st.st_nlink]
                if st.st_nlink > 1:
                    what.append(groups.setdefault(st.st_ino, path))
            tree[path] = {"what": what}
    with open(STEP, "rb") as f:
        return int(f.read()), tree


if __name__ == "__main__":
    if sys.argv[1] == "look":
        print(json.dumps(look()))
    else:
        busy = Busy(int(sys.argv[2]), sys.argv[3] == "1")
        print("ready", flush=True)
        while busy.n % 64 or not select.select([0], [], [], 0)[0]:
            busy.step()
        print(busy.n, flush=True)
