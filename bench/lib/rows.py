# SPDX-License-Identifier: Apache-2.0
"""What is measured: one class or function per row, all in ROWS at the end."""
import os
import random
import statistics
import time

from measure import Broken, Samples, quiet, rounds, timed
from place import remove

FASTER = "at least"
SLOWER = "at most"


class Bar:
    """`a` against `b` (a ratio) or against nothing (milliseconds, or another unit)."""

    def __init__(self, what, a, b, sense, limit, unit="ms"):
        self.what, self.a, self.b, self.sense, self.limit = what, a, b, sense, limit
        self.unit = unit


# A row of work also times the empty command of these, in the same rounds: start-up has a
# bar of its own, and a short row must not be judged by it.
NET = ("stet", "overlay")


def net(name):
    return f"{name}, work only"


def near_limit():
    return Bar("within 5 % of the bare overlay, start-up apart", net("stet"), net("overlay"),
               SLOWER, 1.05)


def not_fuse():
    return Bar("not slower than fuse-overlayfs", "stet", "fuse", SLOWER, 1.0)


class Bench:
    """What all rows share."""

    def __init__(self, place, variants, quick, big):
        self.place, self.variants, self.quick, self.big = place, variants, quick, big
        self.env = place.env()
        self.log = f"{place.scratch}/stderr"
        self.order = random.Random(1)

    def size(self, n):
        return max(n // 10, 1) if self.quick else n

    def reps(self, n):
        """BENCH_ROUNDS: so many at most, for rows that take seconds a round."""
        if self.quick:
            return min(n, 5)
        return min(n, int(os.environ.get("BENCH_ROUNDS", n))) if n < 30 else n

    def tree(self, name, build):
        """A directory that build(dir) has filled; made once."""
        d = f"{self.place.trees}/{name}"
        if not os.path.isdir(d):
            os.makedirs(d)
            build(d)
        return d

    def files(self, n):
        """A tree of n small files."""
        return self.tree(f"files-{n}", lambda d: self.do(["work", "tree", str(n)], d))

    def do(self, argv, cwd):
        return quiet(argv, cwd, self.env)

    def time(self, argv, cwd):
        return timed(argv, cwd, self.env, self.log)

    def tidy(self):
        """Only where space is short: see Place.throw()."""
        remove(self.place.trash)
        os.mkdir(self.place.trash)
        self.do(["stet", "prune"], self.place.home)

    def stet_once(self, argv, tree):
        """Runs argv in a transaction and times only that."""
        stet = self.variants["stet"]
        ns = self.time(stet.command(tree, argv), tree)
        stet.finish(tree)
        return ns


class Work:
    """A row of work in a tree, done by every variant."""

    name = title = ""
    reps = 9
    tidy = False  # delete after every reading: for few, but big, files
    bars = (near_limit, not_fuse)

    def build(self, b, d):
        raise NotImplementedError

    def argv(self, b):
        raise NotImplementedError

    def reset(self, b, d):
        """Puts a tree that was really written to back to where it began."""

    def goals(self):
        return [f() for f in self.bars]

    def run(self, b):
        below = b.tree(self.name, lambda d: self.build(b, d))
        direct = b.tree(f"{self.name}-direct", lambda d: self.build(b, d))

        def once(name):
            v = b.variants[name.partition(":")[0]]
            argv = ["true"] if ":" in name else self.argv(b)
            tree = below if v.layered else direct
            where = v.prepare(tree)
            try:
                # What others have written is not part of this reading.
                os.sync()
                return b.time(v.command(tree, argv), where)
            finally:
                v.finish(tree)
                if not v.layered:
                    self.reset(b, tree)
                if self.tidy:
                    b.tidy()

        s = rounds([*b.variants, *(f"{n}:empty" for n in NET)], b.reps(self.reps), Samples(),
                   once, b.order)
        for n in NET:
            empty = s.ns.pop(f"{n}:empty", None)
            if empty and n in s.ns:
                s.ns[net(n)] = [t - statistics.median(empty) for t in s.ns[n]]
        b.place.throw(below)
        b.place.throw(direct)
        if self.tidy:
            b.tidy()
        return s


class Untar(Work):
    name, title = "untar", "unpack 5,000 files"

    def build(self, b, d):
        os.mkdir(f"{d}/in")
        b.do(["work", "tree", str(b.size(5000)), "2000"], f"{d}/in")
        b.do(["tar", "cf", "files.tar", "in"], d)
        remove(f"{d}/in")
        os.mkdir(f"{d}/out")

    def argv(self, b):
        return ["tar", "xf", "files.tar", "-C", "out"]

    def reset(self, b, d):
        b.place.throw(f"{d}/out")
        os.mkdir(f"{d}/out")


class GitRow(Work):
    def build(self, b, d):
        b.do(["work", "tree", str(b.size(20000)), "600"], d)
        b.do(["git", "init", "-q", "-b", "main"], d)
        b.do(["git", "add", "-A"], d)
        b.do(["git", "commit", "-q", "-m", "one"], d)
        b.do(["git", "checkout", "-q", "-b", "other"], d)
        b.do(["work", "append", str(b.size(3000))], d)
        b.do(["git", "commit", "-q", "-a", "-m", "two"], d)
        b.do(["git", "checkout", "-q", "main"], d)
        self.settle(b, d)

    @staticmethod
    def settle(b, d):
        """An index younger than its files: else git reads them all again."""
        time.sleep(1.1)
        b.do(["git", "update-index", "-q", "--refresh"], d)


class GitStatus(GitRow):
    name, title = "git-status", "git status, 20,000 files"

    def argv(self, b):
        return ["git", "status", "--short"]


class GitSwitch(GitRow):
    name, title = "git-switch", "git switch, 3,000 files differ"

    def argv(self, b):
        return ["git", "checkout", "-q", "other"]

    def reset(self, b, d):
        b.place.throw(d)
        b.do(["cp", "-a", f"{b.place.trees}/{self.name}", d], b.place.trees)
        self.settle(b, d)


def near_native():
    return Bar("compile within 3 % of native", "stet", "native", SLOWER, 1.03)


# Rooms that need no generated files, nor other packages' headers.
COMPILED = ("base", "sys", "journal", "snap", "txn", "ops")


class Compile(Work):
    name, title, reps = "compile", "compile six rooms of stet (ninja, gcc -O1)", 5
    bars = (near_limit, not_fuse, near_native)

    def build(self, b, d):
        b.do(["cp", "-a", f"{b.place.base}/src", d], d)
        sources = sorted(os.path.relpath(os.path.join(w, n), d)
                         for room in COMPILED for w, _, names in os.walk(f"{d}/src/{room}")
                         for n in names if n.endswith(".c"))
        if b.quick:
            sources = sources[:8]
        with open(f"{d}/build.ninja", "w", encoding="utf-8") as f:
            f.write("rule cc\n  command = gcc -std=gnu17 -D_GNU_SOURCE "
                    "-DSTET_VERSION='\"0\"' -iquote src -O1 -c $in -o $out\n")
            for s in sources:
                f.write(f"build obj/{s.replace('/', '_')}.o: cc {s}\n")

    def argv(self, b):
        return ["ninja", "--quiet"]

    def reset(self, b, d):
        for name in ("obj", ".ninja_log", ".ninja_deps"):
            b.place.throw(f"{d}/{name}")


class FindStat(Work):
    name, title = "find-stat", "find and stat, 50,000 files"

    def build(self, b, d):
        b.do(["work", "tree", str(b.size(50000)), "10"], d)

    def argv(self, b):
        return ["sh", "-c", "find . -print0 | xargs -0 stat --format=%s >/dev/null"]


class FirstWrite(Work):
    name, title = "first-write", "first write to a 1 GiB file"
    reps, tidy = 5, True

    def build(self, b, d):
        b.do(["work", "big", str(b.size(1024))], d)

    def argv(self, b):
        return ["work", "poke"]


class Edits(Work):
    name, title = "edits", "3,000 small edits"

    def build(self, b, d):
        b.do(["work", "tree", str(b.size(3000)), "2000"], d)

    def argv(self, b):
        return ["work", "append", str(b.size(3000))]


def five_times():
    return Bar("at least 5 times faster than native", "native", "stet", FASTER, 5.0)


class Sqlite(Work):
    name, title = "sqlite", "1,000 SQLite transactions"
    bars = (near_limit, not_fuse, five_times)

    def build(self, b, d):
        with open(f"{d}/tx.sql", "w", encoding="utf-8") as f:
            f.write("CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT);\n")
            for i in range(b.size(1000)):
                f.write(f"BEGIN; INSERT INTO t(text) VALUES('row {i}'); COMMIT;\n")

    def argv(self, b):
        return ["sqlite3", "new.db", ".read tx.sql"]

    def reset(self, b, d):
        b.place.throw(f"{d}/new.db")


class Fsync(Work):
    name, title = "fsync", "500 × create, write, fsync"
    bars = (near_limit, not_fuse, five_times)

    def build(self, b, d):
        os.mkdir(f"{d}/empty")

    def argv(self, b):
        return ["work", "fsync", str(b.size(500))]

    def reset(self, b, d):
        b.place.throw(d)
        os.makedirs(f"{d}/empty")


class Renames(Work):
    name, title = "renames", "5,000 renames"

    def build(self, b, d):
        b.do(["work", "tree", str(b.size(5000))], d)

    def argv(self, b):
        return ["work", "rename", str(b.size(5000))]

    def reset(self, b, d):
        b.do(["work", "unrename", str(b.size(5000))], d)


class StartUp:
    name, title = "start-up", "start-up and end of `true`"

    def goals(self):
        return [Bar("start-up against bwrap", "stet", "bwrap", SLOWER, 1.5),
                Bar("start-up against bwrap (aim)", "stet", "bwrap", SLOWER, 1.0)]

    def run(self, b):
        tree = b.files(10)

        def once(name):
            v = b.variants[name]
            v.make(tree)
            try:
                return b.time(v.start_up(tree), tree)
            finally:
                v.finish_start_up(tree)

        return rounds(b.variants, b.reps(60), Samples(), once, b.order)


class TreeSize:
    name, title = "tree-size", "start-up of stet by size of the tree"

    def __init__(self):
        self.sizes = {}

    def goals(self):
        names = list(self.sizes)
        return [Bar(f"flat: {n} against {names[0]}", n, names[0], SLOWER, 1.1)
                for n in names[1:]]

    def run(self, b):
        sizes = [10, b.size(100000)] + ([1000000] if b.big else [])
        self.sizes = {f"{n:,} files": b.files(n) for n in sizes}

        def once(name):
            return b.stet_once(["true"], self.sizes[name])

        return rounds(self.sizes, b.reps(40), Samples(), once, b.order)


def dirty_kib():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("Dirty:"):
                return int(line.split()[1])
    return 0


class DirtyDisk:
    name, title = "dirty-disk", "start-up of stet while 512 MB wait to be written"

    def goals(self):
        return [Bar("unrelated dirty data does not matter", "dirty", "clean", SLOWER, 1.25)]

    def run(self, b):
        tree, s, stet = b.files(10), Samples(), b.variants["stet"]
        mib = b.size(512)
        other = f"{b.place.scratch}/dirty"
        os.makedirs(other)

        def once(clean):
            """Both ways something was just written; what is measured leaves nothing that anybody
            would have to sync."""
            # A new file each time: what was cut to nothing ext4 writes out as soon as it is closed.
            remove(f"{other}/big")
            b.do(["work", "big", str(mib)], other)
            if clean:
                os.sync()
            waits = dirty_kib()
            ns = b.time(stet.start_up(tree), tree)
            # The kernel may have written it meanwhile: then the reading says nothing.
            return ns if clean or min(waits, dirty_kib()) > mib * 1024 // 2 else None

        once(True)
        for _ in range(b.reps(15)):
            clean, dirty = once(True), once(False)
            if dirty:
                s.add("clean", clean)
                s.add("dirty", dirty)
        remove(other)
        if "dirty" not in s.ns:
            s.lose("dirty", "the kernel wrote the data at once")
        return s


class Status:
    name, title = "status", "stet status, 1,000 changes in 100,000 files"

    def goals(self):
        return [Bar("status in less than 30 ms", "stet status", None, SLOWER, 30.0)]

    def run(self, b):
        tree, s, stet = b.files(b.size(100000)), Samples(), b.variants["stet"]
        b.do(stet.command(tree, ["work", "append", str(b.size(1000))]), tree)
        try:
            rounds(["stet status"], b.reps(15), s,
                   lambda _: b.time(["stet", "status", "--json"], tree), b.order)
        finally:
            stet.finish(tree)
        return s


class Rollback:
    name, title = "rollback", "stet rollback of 100,000 changed files"

    def goals(self):
        return [Bar("rollback in less than 20 ms", "stet rollback", None, SLOWER, 20.0)]

    def run(self, b):
        n = b.size(100000)
        tree, s, stet = b.files(n), Samples(), b.variants["stet"]

        def once(_):
            b.do(stet.command(tree, ["work", "append", str(n)]), tree)
            os.sync()
            return b.time(["stet", "rollback"], tree)

        return rounds(["stet rollback"], b.reps(5), s, once, b.order)


class Again:
    """What agents do: make many files, throw them away, try once more. Without a journal ext4 looks
    long for free inodes where many were deleted: each time may be slower than the one before."""

    name, title = "again", "20,000 files made, thrown away and deleted, made again"
    tidy = True  # last of all: it leaves a ground that the others would suffer from

    def goals(self):
        return [Bar("not slower than without a sandbox", "stet", "native", SLOWER, 1.0),
                Bar("as fast as the first time", "stet", "stet, first", SLOWER, 1.25)]

    def run(self, b):
        n, s, stet = b.size(20000), Samples(), b.variants["stet"]
        trees = {way: b.tree(f"again-{way}", lambda d: None) for way in ("native", "stet")}

        def make(way):
            tree, argv = trees[way], ["work", "tree", str(n)]
            ns = b.time(stet.command(tree, argv) if way == "stet" else argv, tree)
            if way == "stet":
                stet.finish(tree)
                b.do(["stet", "prune"], tree)
            else:
                remove(tree)
                os.mkdir(tree)
            os.sync()
            return ns

        first = {way: make(way) for way in trees}
        for _ in range(b.reps(5)):
            for way in trees:
                s.add(way, make(way))
                s.add(f"{way}, first", first[way])
        return s


class Protect:
    name, title = "protect", "protect a tree of 10,000 files before a run"

    def goals(self):
        return [Bar("not slower than rsync --link-dest", "stet", "rsync --link-dest", SLOWER,
                    1.0),
                Bar("not slower than a btrfs snapshot", "stet", "btrfs snapshot", SLOWER, 1.0)]

    def run(self, b):
        n = b.size(10000)
        # Its own: rsync links to its files, and a commit asks before it splits links.
        tree = b.tree("protect", lambda d: b.do(["work", "tree", str(n)], d))
        copy = f"{b.place.scratch}/copy"
        sub = f"{b.place.btrfs}/tree" if b.place.btrfs else None
        if sub:
            b.do(["btrfs", "subvolume", "create", sub], b.place.btrfs)
            b.do(["work", "tree", str(n)], sub)
            os.sync()

        def once(way):
            if way == "stet":
                return b.stet_once(["true"], tree)
            if way == "rsync --link-dest":
                try:
                    return b.time(["rsync", "-a", f"--link-dest={tree}", f"{tree}/", copy],
                                  tree)
                finally:
                    b.place.throw(copy)
            if not sub:
                raise Broken("only root can mount a btrfs for it")
            try:
                return b.time(["btrfs", "subvolume", "snapshot", sub, f"{sub}-snap"], sub)
            finally:
                b.do(["btrfs", "subvolume", "delete", f"{sub}-snap"], b.place.btrfs)

        return rounds(["stet", "rsync --link-dest", "btrfs snapshot"], b.reps(7), Samples(),
                      once, b.order)


ROWS = [StartUp(), TreeSize(), DirtyDisk(), Untar(), GitStatus(), GitSwitch(), Compile(),
        FindStat(), FirstWrite(), Edits(), Sqlite(), Fsync(), Renames(), Protect(), Again(),
        Status(), Rollback()]
