# SPDX-License-Identifier: Apache-2.0
"""Random sequences: commands in several transactions, edits of the host in between, and commit,
undo, redo and rollback in any order, each judged as a cell of the matrix is.

The model is plain: a command is run on a copy of the tree without stet to know its goal; an undo
goes from what the commit left to what was there before it, a redo back again.
"""
import random
import subprocess

from matrixlib import (Cell, NoCell, Wrong, concerns_of, finding, host_does, judge, new_stet,
                       plant, remove, same, snap, touched)
from rows import COMMANDS, EDITS, NONE

STEPS = 24


class Transaction:
    """What was begun, and which way it can go."""

    def __init__(self, name, script, base, goal):
        self.name, self.script, self.base, self.goal = name, script, base, goal
        self.state, self.done, self.undone = "pending", None, None

    def verbs(self):
        return {"pending": ["commit", "commit", "commit", "rollback"],
                "committed": ["undo"], "gone": ["undo"], "undone": ["redo", "redo", "rollback"],
                "over": []}[self.state]

    def way(self, verb, now):
        """(base, goal) of a verb."""
        if verb == "rollback" or self.state == "gone":
            return now, now
        return {"commit": (self.base, self.goal), "undo": self.done, "redo": self.undone}[verb]

    def went(self, verb, before, after):
        if verb == "rollback":
            self.state = "gone" if self.state == "pending" else "over"
        elif self.state == "gone":
            self.state = "pending"
        elif verb == "undo":
            self.state, self.undone = "undone", (after, before)
        else:
            self.state, self.done = "committed", (after, before)


class Sequence:
    """One tree, some transactions, a seed."""

    def __init__(self, stet, seed):
        self.stet, self.r, self.log = stet, random.Random(seed), []
        self.top = f"{stet.home}/w/r{seed}"
        self.txns = []
        plant(self.top)

    def command(self):
        n = len(self.txns) + 1
        row = self.r.choice(list(COMMANDS))
        script = (COMMANDS[row][0] + "; echo made > b/c").replace("made", f"made{n}")
        plain, before = f"{self.top}-plain{n}", snap(self.top)
        # Inside, a write by one name of a file parts it from the others.
        subprocess.run(["cp", "-a", "--no-preserve=links", self.top, plain], check=True)
        r = subprocess.run(["sh", "-ec", script], cwd=plain, check=False,
                           stderr=subprocess.DEVNULL)
        try:
            goal = snap(plain)
        except PermissionError:
            goal = None  # a directory that its owner may not search
        subprocess.run(["chmod", "-R", "u+rwX", plain], check=True)
        subprocess.run(["rm", "-rf", plain], check=True)
        if r.returncode or goal is None:
            return
        name = f"s{n}-{next(self.stet.numbers)}"
        self.log.append(f"{name}: {script}")
        r = self.stet("run", "--no-policy", "--quiet", "--name", name, "--", "sh", "-ec", script,
                      cwd=self.top)
        if r.rc:
            raise Wrong("failed", f"the run: {r.err}")
        if moved := same(before, snap(self.top)):
            raise Wrong("changed before the commit", "; ".join(moved))
        self.txns.append(Transaction(name, script, before, goal))

    def edit(self):
        row = self.r.choice([e for e in EDITS if e != NONE])
        try:
            host_does(self.stet, self.top, EDITS[row])
            self.log.append(f"host: {EDITS[row]}")
        except NoCell:
            pass

    def verb(self):
        able = [t for t in self.txns if t.verbs()]
        if not able:
            return
        t = self.r.choice(able)
        verb = self.r.choice(t.verbs())
        before = snap(self.top)
        base, goal = t.way(verb, before)
        words = ["--accept-risky"] if verb == "commit" else []
        r = self.stet(verb, t.name, *words, cwd=self.top)
        after = snap(self.top)
        self.log.append(f"{verb} {t.name} -> {r.rc}")
        if r.rc == 0 and "has nothing to commit" in r.out + r.err:
            if touched(before, after):
                raise Wrong("not what was wanted", "nothing to commit, and changed")
            return
        ours = concerns_of(t.script, t.base, t.goal) | touched(base, goal)
        if judge(base, before, goal, ours, after, r):
            t.went(verb, before, after)

    def run(self, steps):
        for _ in range(steps):
            self.r.choice([self.command, self.edit, self.verb, self.verb])()


def run_random(path, home, place, seed):
    """(1, findings)."""
    stet = new_stet(path, home)
    s, found = Sequence(stet, seed), []
    cell = Cell("random", f"seed {seed}", "*")
    try:
        s.run(STEPS)
        r = stet("check")
        if r.rc:
            raise Wrong("check", r.out)
    except (Wrong, OSError, AssertionError, subprocess.SubprocessError) as e:
        f = finding(place, cell, e)
        found.append(f._replace(text="\n      ".join([f.text, *s.log])))
    stet.end_all()
    remove(stet)
    return 1, found
