# SPDX-License-Identifier: Apache-2.0
"""Commit and undo, durability included, against copying the same files.

All that a run wrote is on the disk before its commit is timed, and all that is copied
before the copying. The copies sync their own filesystem alone, in their favour.
"""
import json
import os
import time

from measure import Broken, Samples, peak, rounds
from place import remove
from rows import FASTER, SLOWER, Bar

WAIT_S = 300
ROOM_MIB = 4096  # what must stay free beside the big file


def run_durable(b, tree, argv):
    """Runs argv in a transaction and waits until that is on the disk."""
    b.do(b.variants["stet"].command(tree, argv), tree)
    end = time.monotonic() + WAIT_S
    while not json.loads(b.do(["stet", "status", "--json"], tree))["on_disk"]:
        if time.monotonic() > end:
            raise Broken("the transaction is not on the disk after minutes")
        time.sleep(0.02)
    os.sync()


def commit_and_undo(b, tree, argv):
    """(ns, ns); the tree is as before."""
    run_durable(b, tree, argv)
    did = b.time(["stet", "commit"], tree)
    undid = b.time(["stet", "undo"], tree)
    b.do(["stet", "rollback"], tree)
    return did, undid


# The limit of the design: nothing but the exchanges, and one sync.
BARE = "bare exchange"
COPIES = {"cp -a": 'cp -a "$1/." "$2/" && sync -f "$2"',
          "rsync -a": 'rsync -a "$1/" "$2/" && sync -f "$2"',
          BARE: 'work exchange "$3" "$1"'}


class Commit:
    def __init__(self, n, full_only=False):
        self.n, self.full_only = n, full_only
        self.name, self.title = f"commit-{n}", f"commit of {n:,} changed small files"
        self.fs = None

    def goals(self):
        return [Bar("against cp -a && sync", "cp -a", "stet commit", FASTER,
                    2.0 if self.fs == "btrfs" else 5.0),
                Bar("not slower than rsync -a && sync", "stet commit", "rsync -a", SLOWER, 1.0),
                Bar("undo as fast as the commit", "stet undo", "stet commit", SLOWER, 1.0)]

    def copy(self, b, upper, how):
        """Onto a tree that no reading has touched."""
        host = f"{b.place.scratch}/copied"
        os.makedirs(host)
        b.do(["work", "tree", str(self.n)], host)
        os.sync()
        argv = ["sh", "-c", how, "sh", upper, host, str(self.n)]
        try:
            ns = b.time(argv, host)
            # What was exchanged is exchanged again: the others are to copy what has changed.
            if how == COPIES[BARE]:
                b.do(argv, host)
            return ns
        finally:
            b.place.throw(host)

    def run(self, b):
        self.fs = b.place.kind
        tree, upper = b.files(self.n), f"{b.place.scratch}/changed"
        s = Samples()
        os.makedirs(upper)
        b.do(["work", "tree", str(self.n)], upper)
        b.do(["work", "append", str(self.n)], upper)

        def once(way):
            if way in COPIES:
                return self.copy(b, upper, COPIES[way])
            did, undid = commit_and_undo(b, tree, ["work", "append", str(self.n)])
            undos.append(undid)
            return did

        undos = []
        rounds(["stet commit", *COPIES], b.reps(5), s, once, b.order)
        if "stet commit" in s.ns:
            s.ns["stet undo"] = undos[1:]
        b.place.throw(upper)
        return s


class CommitGrowth:
    """Linear in changes, flat in the size of the tree."""

    name, title = "commit-growth", "commit by number of changes and size of the tree"
    few, many = 1000, 10000

    def __init__(self):
        self.cases = {}

    def goals(self):
        names = list(self.cases)
        if not names:
            return []
        return [Bar("flat in the size of the tree", names[1], names[0], SLOWER, 1.2),
                Bar("linear in changes, ten times as many", names[2], names[0], SLOWER, 12.0)]

    def run(self, b):
        big = b.size(100000)
        self.cases = {f"{n:,} changes in {t:,} files": (n, b.files(t))
                      for n, t in ((self.few, self.few), (self.few, big), (self.many, big))}

        def once(name):
            n, tree = self.cases[name]
            return commit_and_undo(b, tree, ["work", "append", str(n)])[0]

        return rounds(self.cases, b.reps(5), Samples(), once, b.order)


class CommitBig:
    name, title = "commit-big", "commit of one new file of 10 GiB that is on the disk"
    tidy = True

    def goals(self):
        return [Bar("in less than 50 ms", "stet commit", None, SLOWER, 50.0),
                Bar("undo in less than 50 ms", "stet undo", None, SLOWER, 50.0)]

    def run(self, b):
        mib, v = b.size(10240), os.statvfs(b.place.base)
        if (v.f_bavail * v.f_frsize >> 20) < mib + ROOM_MIB:
            raise Broken("not enough space")
        tree, s = b.files(10), Samples()
        for _ in range(b.reps(3)):
            did, undid = commit_and_undo(b, tree, ["work", "big", str(mib)])
            s.add("stet commit", did)
            s.add("stet undo", undid)
            b.tidy()
        return s


class CommitMemory:
    name, title, unit = "commit-memory", "peak memory of status, diff, commit, undo, redo", "MiB"
    # The last is the dearest: after an undo every path is asked about.
    verbs = (["status"], ["diff", "--stat"], ["commit"], ["undo"], ["redo"], ["undo"], ["commit"])
    goal = 1000000
    limit = 64.0

    def __init__(self):
        self.judged = f"{self.goal:,} changes"

    def goals(self):
        return [Bar(f"less than 64 MiB: {self.judged}", self.judged, None, SLOWER, self.limit,
                    self.unit)]

    def measure(self, b, n):
        tree = f"{b.place.scratch}/memory"
        os.makedirs(tree)
        b.do(["work", "tree", str(n), "1"], tree)
        try:
            run_durable(b, tree, ["work", "append", str(n)])
            return max(peak(["stet", *verb], tree, b.env, b.log) / 1024 for verb in self.verbs)
        finally:
            remove(tree)

    def run(self, b):
        s = Samples()
        # Unit of the samples is a millionth: as nanoseconds are of milliseconds.
        if b.big:
            s.add(self.judged, self.measure(b, self.goal) * 1e6)
            return s
        sizes = (b.size(100000), b.size(200000))
        mib = [self.measure(b, n) for n in sizes]
        for n, m in zip(sizes, mib):
            s.add(f"{n:,} changes", m * 1e6)
        slope = max(mib[1] - mib[0], 0) / (sizes[1] - sizes[0])
        self.judged = f"{self.goal:,} changes (extrapolated)"
        s.add(self.judged, (mib[1] + slope * (self.goal - sizes[1])) * 1e6)
        return s


COMMIT_ROWS = [Commit(1000), Commit(10000), Commit(100000, full_only=True), CommitGrowth(),
               CommitBig(), CommitMemory()]
