# SPDX-License-Identifier: Apache-2.0
"""Random work on a tree, the same wherever it is done, and what the tree looks like after it.

As a program it is an actor: it reads one JSON object a line ({"seed", "n"} or {"digest": 1}) in
its current directory and answers with one.
"""
import json
import os
import random
import shutil
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stetlib import digest  # noqa: E402

TIME = 1_600_000_000


def paths(top="."):
    """Everything below @top, sorted: (path, is a directory)."""
    found = []
    for base, dirs, files in os.walk(top):
        dirs.sort()
        for name in sorted(dirs + files):
            full = os.path.relpath(os.path.join(base, name), top)
            found.append((full, stat.S_ISDIR(os.lstat(os.path.join(base, name)).st_mode)))
    return sorted(found)


class Work:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, dirs):
        found = [p for p, d in paths() if d == dirs]
        return self.r.choice(found) if found else None

    def file(self):
        """One that can be opened: a FIFO would make us wait."""
        found = [p for p, d in paths() if not d and stat.S_ISREG(os.lstat(p).st_mode)]
        return self.r.choice(found) if found else None

    def place(self):
        """A name in some directory, taken or not."""
        return os.path.join(self.pick(True) or ".", f"n{self.r.randrange(12)}")

    @staticmethod
    def opener(path, flags):
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)

    def data(self):
        return bytes([self.r.randrange(256)]) * self.r.choice((0, 1, 10, 500, 5000, 70000, 200000))

    def create(self):
        with open(self.place(), "wb", opener=self.opener) as f:
            f.write(self.data())

    def append(self):
        with open(self.file(), "ab") as f:
            f.write(self.data())

    def patch(self):
        with open(self.file(), "r+b") as f:
            f.seek(self.r.randrange(100))
            f.write(self.data()[:50])

    def cut(self):
        os.truncate(self.file(), self.r.randrange(300))

    def sparse(self):
        with open(self.place(), "wb", opener=self.opener) as f:
            f.truncate(1 << 18)
            f.seek(1 << 17)
            f.write(b"middle")

    def mkdir(self):
        os.mkdir(self.place())

    def symlink(self):
        os.symlink(f"target{self.r.randrange(5)}", self.place())

    def fifo(self):
        os.mkfifo(self.place())

    def link(self):
        os.link(self.pick(False), self.place(), follow_symlinks=False)

    def unlink(self):
        os.unlink(self.pick(False))

    def rmtree(self):
        shutil.rmtree(self.pick(True))

    def rename(self):
        os.rename(self.pick(False), self.place())

    def rename_dir(self):
        os.rename(self.pick(True), self.place())

    def chmod(self):
        os.chmod(self.pick(False), self.r.choice((0o600, 0o644, 0o755, 0o711, 0o400)))

    def chmod_dir(self):
        os.chmod(self.pick(True), self.r.choice((0o700, 0o755, 0o2775, 0o1777)))

    def stamp(self):
        os.utime(self.pick(self.r.random() < .3), (TIME, TIME + self.r.randrange(1 << 20)),
                 follow_symlinks=False)

    def tag(self):
        os.setxattr(self.pick(self.r.random() < .3), f"user.t{self.r.randrange(3)}",
                    bytes([65 + self.r.randrange(3)]) * self.r.randrange(20))

    def untag(self):
        os.removexattr(self.pick(False), f"user.t{self.r.randrange(3)}")

    def to_dir(self):
        p = self.pick(False)
        os.unlink(p)
        os.mkdir(p)
        with open(os.path.join(p, "in"), "wb") as f:
            f.write(self.data())

    def to_file(self):
        p = self.pick(True)
        shutil.rmtree(p)
        with open(p, "wb") as f:
            f.write(self.data())

    def anew(self):
        """A directory that hides the one that was there."""
        p = self.pick(True)
        shutil.rmtree(p)
        os.mkdir(p)
        with open(os.path.join(p, "only"), "wb") as f:
            f.write(self.data())

    KINDS = ([create] * 6 + [append] * 3 + [patch] * 4 + [cut, sparse] + [mkdir] * 4 + [symlink] * 2
             + [fifo] + [link] * 3 + [unlink] * 4 + [rmtree] + [rename] * 4 + [rename_dir] * 2
             + [chmod] * 2 + [chmod_dir, stamp, stamp, tag, tag, untag, to_dir, to_file, anew])

    def step(self):
        try:
            self.r.choice(self.KINDS)(self)
        except (OSError, TypeError, shutil.Error) as e:
            return type(e).__name__
        return "ok"


def work(seed, n):
    """What became of each of @n steps."""
    w = Work(seed)
    return [w.step() for _ in range(n)]


def look(times):
    """The tree as JSON can carry it; which names are one file is told by their group."""
    tree, groups = {}, {}
    for name, d in digest(".", exact=True).items():
        for key in ("ctime", "data", "sha256"):
            d.pop(key, None)
        # Overlays give two names of a link two inode numbers; of a file, one.
        if d.get("nlink", 1) > 1 and d["type"] == stat.S_IFREG:
            d["group"] = groups.setdefault(d["ino"], os.fsdecode(name))
        d.pop("ino")
        if not times:
            d.pop("mtime")
        if "target" in d:
            d["target"] = os.fsdecode(d["target"])
        d["xattrs"] = {k: v.hex() for k, v in d["xattrs"].items()}
        tree[os.fsdecode(name)] = d
    return tree


def answer(q):
    return look(q.get("times", True)) if "digest" in q else work(q["seed"], q["n"])


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
