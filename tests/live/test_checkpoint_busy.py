# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a command that never rests are what it had done up to one of its steps."""
import json
import os
import shutil
import subprocess

import busylib
import pytest
from stetlib import differences, wait_until

PYTHON = "/usr/bin/python3"
LIB = os.path.abspath(busylib.__file__)
POINTS = 10
# How a layer is looked at with everything stopped: by what was told about it, or by walking.
WAYS = {"told": "0", "walked": "1000000"}


def at_steps(plain, seed, links, wanted):
    """{step: tree} of the same work on a plain tree."""
    trees, was = {}, os.getcwd()
    os.chdir(plain)
    try:
        busy = busylib.Busy(seed, links)
        while busy.n < max(wanted):
            if busy.n in wanted:
                trees[busy.n] = json.loads(json.dumps(busylib.look()[1]))
            busy.step()
        trees[busy.n] = json.loads(json.dumps(busylib.look()[1]))
    finally:
        os.chdir(was)
    return trees


class Busy:
    """The work on a plain tree's copy, in a sandbox, until end()."""

    def __init__(self, stet, work, home, seed, links):
        self.stet, self.work, self.lib, self.plain = stet, work, home / "busylib.py", home / "plain"
        self.plain.mkdir()
        subprocess.run([PYTHON, "-Bc", "import sys; sys.path.insert(0, sys.argv[1]);"
                        "import busylib; busylib.prepare()", os.path.dirname(LIB)], cwd=self.plain,
                       check=True)
        subprocess.run(["cp", "-a", f"{self.plain}/.", work], check=True)
        shutil.copy(LIB, self.lib)
        self.p = stet.popen("run", "-q", "--checkpoint", "none", "--on-success", "keep", "--", PYTHON,
                            "-B", self.lib, "work", str(seed), str(int(links)), cwd=work,
                            stdin=subprocess.PIPE)
        assert self.p.stdout.readline() == b"ready\n", self.p.stderr.read()

    def keep(self):
        return self.stet("checkpoint", "--json", cwd=self.work).ok().json()["last"]

    def end(self):
        self.p.stdin.write(b"\n")
        self.p.stdin.close()
        self.p.stdout.readline()
        assert self.p.wait(60) == 0, self.p.stderr.read()

    def look(self, n):
        """(step, tree) at a checkpoint."""
        return json.loads(self.stet("explore", "-q", "--at", str(n), "--", PYTHON, "-B", self.lib, "look",
                                    cwd=self.work).ok().out)


# Files with several names make it walk all the same.
@pytest.mark.parametrize("way, links", [("told", False), ("told", True), ("walked", True)])
def test_kept_while_busy(stet, work, home, way, links):
    seed = len(way) + links
    stet.env["STET_CHECKPOINT_WATCH"] = WAYS[way]
    busy = Busy(stet, work, home, seed, links)
    points = set()
    # Now and then it had no time to do anything.
    wait_until(lambda: points.add(busy.keep()) or len(points) == POINTS)
    busy.end()
    seen = {n: busy.look(n) for n in sorted(points)}
    trees = at_steps(busy.plain, seed, links,
                     {k - d for k, _ in seen.values() for d in (0, 1) if k >= d})
    for n, (k, tree) in seen.items():
        if tree not in (trees.get(k - 1), trees[k]):
            pytest.fail(f"seed {seed}: checkpoint {n}, step {k}\n" +
                        "\n".join(differences(trees[k], tree)[:20]))


@pytest.mark.parametrize("way", WAYS)
def test_back_while_busy(stet, work, home, way):
    """What going back leaves is what was kept, whatever is open, mapped or being written."""
    stet.env["STET_CHECKPOINT_WATCH"] = WAYS[way]
    busy = Busy(stet, work, home, 20, True)
    points = [busy.keep() for _ in range(3)]
    back = [(n, stet("rollback", "--to", str(n), "--json", cwd=work).ok().json()["after"])
            for n in points + points[:1] + [0]]
    busy.end()
    for n, after in back:
        want, got = busy.look(n), busy.look(after)
        assert want == got, f"back at {n}, as {after}\n" + "\n".join(differences(want[1], got[1])[:20])
