# SPDX-License-Identifier: Apache-2.0
"""Commits in pieces against a model: whatever is committed in whatever order, the transaction looks
the same from inside, the host has it all in the end, and nothing of it after as many undos.

STET_MODEL_STEPS says how much is done, as in test_model.py.
"""
import json
import random
import sys

import pytest
from stetlib import differences
from test_model import STEPS, Ended, fixture_place, prepare  # noqa: F401

NEEDS = "ext4 xfs btrfs tmpfs"
WORK = 40
PIECES = 6
# Of a directory that replaces something else nothing can be committed by itself.
IN_ONE_PIECE = "what it replaces would have to go first"
SEEDS = max(STEPS // 600, 2)


def bare(digest):
    """Without what a commit in pieces cannot keep: times of directories, names that share a file."""
    seen = json.loads(json.dumps(digest))
    for d in seen.values():
        for key in ("mtime", "nlink", "group"):
            d.pop(key, None)
    return seen


class Tree:
    def __init__(self, stet, place, tree, seed):
        self.seed, self.stet = seed, stet
        self.work, self.plain = prepare(place, tree, seed)
        self.real = Ended(stet, self.work)
        self.first = self.host()
        q = {"seed": 1000 + seed, "n": WORK}
        assert self.real.do(q) == self.plain.do(q)
        (self.last,) = (bare(d) for d in self.plain.do({"digest": 1}))

    def host(self):
        at = self.plain.now
        try:
            self.plain.now = self.work
            (now,) = self.plain.do({"digest": 1})
        finally:
            self.plain.now = at
        return bare(now)

    def inside(self):
        (now,) = self.real.do({"digest": 1})
        return bare(now)

    def expect(self, wanted, seen, what):
        assert wanted == seen, f"seed {self.seed}: {what}\n" + \
            "\n".join(differences(wanted, seen)[:30])

    def well(self, what):
        """Once all is committed there is no inside any more."""
        if self.stet.transactions()[0]["state"] == "pending":
            self.expect(self.last, self.inside(), f"inside, {what}")
        self.stet("check").ok()

    def changed(self):
        now = self.host()
        return sorted(p for p in now.keys() | self.last.keys()
                      if p and now.get(p) != self.last.get(p))


@pytest.mark.parametrize("nth", range(SEEDS))
def test_pieces(stet, place, tree, request, nth):
    # Not the same on every filesystem.
    seed = nth * 4 + NEEDS.split().index(request.node.callspec.params["place"])
    t, r, done = Tree(stet, place, tree, seed), random.Random(seed), 0
    t.well("at first")
    for _ in range(PIECES):
        left = t.changed()
        if not left:
            break
        chosen = r.sample(left, min(len(left), r.randrange(1, 4)))
        said = stet("commit", "--accept-risky", "--", *("./" + p for p in chosen), cwd=t.work)
        if IN_ONE_PIECE in said.err:
            continue
        assert said.rc == 0, f"seed {seed}: {chosen}\n{said.err}"
        done += 1
        t.well(f"after {chosen}")
    if t.changed():
        said = stet("commit", "--accept-risky", cwd=t.work)
        assert said.rc == 0, f"seed {seed}: the rest\n{said.err}"
        done += 1
    t.expect(t.last, t.host(), "all committed")
    for verb, goal in (("undo", t.first), ("redo", t.last), ("undo", t.first)):
        for _ in range(done):
            stet(verb, cwd=t.work).ok()
        t.expect(goal, t.host(), verb)
        stet("check").ok()
    t.well("at the end")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
