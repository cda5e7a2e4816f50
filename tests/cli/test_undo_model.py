# SPDX-License-Identifier: Apache-2.0
"""Random chains of commits, undos, redos and rollbacks against a model of a few lines."""
import os
import random

import pytest
from commitlib import shell

FILES = ["a", "b", "c", "d/e", "n1", "n2", "m/n"]
OLD = {"a": "0", "b": "0", "c": "0", "d/e": "0"}
CHANGE = ("echo 1 > a; echo 1 > b; rm c; echo 1 > d/e; echo 1 > n1; echo 1 > n2; "
          "mkdir m; echo 1 > m/n")
NEW = {"a": "1", "b": "1", "d/e": "1", "n1": "1", "n2": "1", "m/n": "1"}
CHAINS, STEPS = 6, 14


class Model:
    """What is committed, as a set of names; the operations, each with what it changed."""

    def __init__(self):
        self.state = "pending"
        self.ops = []  # [kind, names, undone]; kind: commit, rollback
        self.undone = []  # the stack: (operation, names or None for all, state before)

    def committed(self):
        return {n for kind, names, undone in self.ops if kind == "commit" and not undone
                for n in names}

    def host(self):
        done = self.committed()
        found = {n: t for n, t in OLD.items() if n not in done}
        found.update({n: NEW[n] for n in done if n in NEW})
        return found

    def newest(self):
        return next((o for o in reversed(self.ops) if not o[2]), None)

    def commit(self, names):
        left = set(FILES) - self.committed()
        chosen = left if names is None else left & set(names)
        if self.state != "pending" or (names is not None and set(names) - left):
            return False
        if not chosen:
            return None  # nothing to do: not the business of this test
        self.ops.append(["commit", chosen, False])
        self.undone = []
        self.state = "pending" if left - chosen else "committed"
        return True

    def rollback(self):
        if self.state != "pending":
            return False
        self.ops.append(["rollback", set(), False])
        self.undone = []
        self.state = "rolled back"
        return True

    def undo(self, name=None):
        op = self.newest()
        if name is not None:
            op = next((o for o in reversed(self.ops) if o[0] == "commit" and not o[2]
                       and name in o[1]), None)
        if not op:
            return False
        if name is not None and (op is not self.newest() or op[1] != {name}):
            self.undone.append((op, name, self.state))
            op[1].remove(name)
            return True
        self.undone.append((op, None, self.state))
        op[2] = True
        self.state = "pending"
        return True

    def redo(self):
        if not self.undone:
            return False
        op, name, self.state = self.undone.pop()
        if name is None:
            op[2] = False
        else:
            op[1].add(name)
        return True


def host(work):
    found = {}
    for top, _, files in os.walk(work):
        for f in files:
            path = os.path.join(top, f)
            with open(path, encoding="utf-8") as text:
                found[os.path.relpath(path, work)] = text.read().strip()
    return found


def words_of(rng):
    kind = rng.choice(["commit", "commit", "part", "part", "undo", "undo", "undo one", "undo one",
                       "redo", "redo", "redo", "rollback"])
    if kind == "part":
        return ["commit", "t1"] + rng.sample(FILES, rng.randint(1, 3))
    if kind == "undo one":
        return ["undo", "t1", rng.choice(FILES)]
    return [kind, "t1"]


def typed(words):
    """A directory that was committed whole is undone whole."""
    return ["m" if w == "m/n" else w for w in words]


def expected(model, words):
    if words[0] == "commit":
        return model.commit(words[2:] or None)
    if words[0] == "undo":
        return model.undo(*words[2:])
    return getattr(model, words[0])()


@pytest.mark.parametrize("seed", range(CHAINS * (20 if os.environ.get("STET_LONG") else 1)))
def test_chains(stet, work, seed):
    rng = random.Random(seed)
    shell("mkdir d; for f in a b c d/e; do echo 0 > $f; done", work)
    stet.sh(CHANGE, cwd=work).ok()
    model, said = Model(), []
    done = 0
    while done < STEPS:
        words = words_of(rng)
        want = expected(model, words)
        if want is None:
            continue
        r = stet(*typed(words), cwd=work)
        said.append(" ".join(words) + (" -> refused" if not want else ""))
        assert (r.rc == 0) == want, (seed, said, r)
        assert host(work) == model.host(), (seed, said, r)
        assert stet.transactions()[0]["state"] == model.state, (seed, said)
        done += want
    stet("check", cwd=work).ok()
