# SPDX-License-Identifier: Apache-2.0
"""Checkpoints against a model: the same random work on a plain tree, copied at each checkpoint.

STET_MODEL_STEPS says how much is done (tests/run model: thousands); a short one is part of the
live suite.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import modellib
import pytest
from stetlib import differences

NEEDS = "ext4 xfs btrfs tmpfs"
STEPS = int(os.environ.get("STET_MODEL_STEPS", "4000"))
BATCH = 25
ACTOR = os.path.abspath(modellib.__file__)
PYTHON = "/usr/bin/python3"


def ask(cwd, prefix, actor, *questions):
    """Lets an actor answer, behind a command that starts it."""
    p = subprocess.run([*prefix, PYTHON, "-B", actor], cwd=cwd, check=False, text=True,
                       input="".join(json.dumps(q) + "\n" for q in questions),
                       capture_output=True, timeout=120)
    assert p.returncode == 0, p.stderr
    return [json.loads(line) for line in p.stdout.splitlines()]


class Plain:
    """The model: a directory, and a copy of it for each checkpoint."""

    def __init__(self, top):
        self.top, self.now, self.kept = top, top / "now", {}

    def do(self, *questions):
        return ask(self.now, [], ACTOR, *questions)

    def keep(self, n):
        self.kept[n] = self.top / f"kept{n}"
        self.copy(self.now, self.kept[n])

    def copy(self, a, b):
        if b.exists() or b.is_symlink():
            subprocess.run(["rm", "-rf", b], check=True)
        subprocess.run(["cp", "-a", a, b], check=True)

    def back(self, n):
        self.copy(self.kept[n], self.now)

    def restore(self, n, rel):
        a, b = self.kept[n] / rel, self.now / rel
        if not os.path.lexists(a):
            if b.is_dir() and not b.is_symlink():
                shutil.rmtree(b)
            elif os.path.lexists(b):
                b.unlink()
            return
        made = []
        for up in reversed(list(b.relative_to(self.now).parents)):
            if not (self.now / up).exists():
                (self.now / up).mkdir()
                made.append(up)
        self.copy(a, b)
        for up in made:
            shutil.copystat(self.kept[n] / up, self.now / up)


class Ended:
    """stet, on a transaction that has ended: each piece of work is a visit."""

    def __init__(self, stet, work):
        self.stet, self.work, self.lib = stet, work, work.parent / "lib"
        self.lib.mkdir()
        for name in ("modellib.py", "stetlib.py"):
            shutil.copy(os.path.join(os.path.dirname(ACTOR), name), self.lib)
        stet.run("true", opts=["--on-success", "keep"], cwd=work).ok()

    def do(self, *questions):
        argv = ["env", "-i", *(f"{k}={v}" for k, v in self.stet.environ().items()),
                self.stet.path, "explore", "-q", "--"]
        return ask(self.work, argv, self.lib / "modellib.py", *questions)

    def keep(self):
        made = self.stet("checkpoint", "--json", cwd=self.work).ok().json()
        return made["last"]

    def back(self, n):
        return self.stet("rollback", "--to", str(n), "--json", cwd=self.work).ok().json()

    def restore(self, n, rel):
        return self.stet("restore", "--from", str(n), "--json", "./" + rel, cwd=self.work)


class Live(Ended):
    """stet, on a transaction that runs: the actor stays, with what it has open."""

    def __init__(self, stet, work):
        super().__init__(stet, work)
        self.actor = stet.popen("run", "-q", "--", PYTHON, "-B", self.lib / "modellib.py", cwd=work,
                                stdin=subprocess.PIPE, stderr=None)
        self.do({"digest": 1})

    def do(self, *questions):
        answers = []
        for q in questions:
            self.actor.stdin.write(json.dumps(q).encode() + b"\n")
            self.actor.stdin.flush()
            answers.append(json.loads(self.actor.stdout.readline()))
        return answers

    def end(self):
        self.actor.stdin.close()
        assert self.actor.wait(60) == 0


def same(model, seen, what):
    assert model == seen, f"{what}\n" + "\n".join(differences(model, seen)[:30])


def drive(real, plain, seed, steps, batch=BATCH):
    r = random.Random(seed)
    full = {}

    def check(what):
        (now,) = real.do({"digest": 1})
        bare = json.loads(json.dumps(now))
        for d in bare.values():
            d.pop("mtime")
        (model,) = plain.do({"digest": 1, "times": False})
        same(model, bare, f"seed {seed}: {what}")
        return now

    plain.keep(0)
    full[0] = check("at first")
    done = 0
    while done < steps:
        q = {"seed": r.randrange(1 << 30), "n": batch}
        assert real.do(q) == plain.do(q), f"seed {seed}, work {q}"
        done += batch
        n = real.keep()
        if n not in full:
            full[n] = check(f"after {done} steps, at checkpoint {n}")
            plain.keep(n)
        if r.random() < .4:
            n = r.choice(sorted(full))
            real.back(n)
            plain.back(n)
            same(full[n], check(f"back at {n}"), f"seed {seed}: times back at {n}")
        elif r.random() < .4:
            n = r.choice(sorted(full))
            known = sorted(full[n].keys() | full[max(full)].keys())
            rel = r.choice(known[1:] or [""])
            links = [d for d in list(full[n].values()) + list(full[max(full)].values())
                     if d.get("nlink", 1) > 1]
            # A copy of one of several names is a file of its own; which is as good.
            if rel and not links and real.restore(n, rel).rc == 0:
                plain.restore(n, rel)
                check(f"{rel} from {n}")


def prepare(where, tree, seed):
    """The same first tree twice: for the model, and for stet."""
    work, model = where / "work", where / "model"
    work.mkdir()
    model.mkdir()
    tree(work, {"a": "a\n", "d": {"b": "b\n", "e": {"c": "c\n", "f": "f\n"}, "g": {}},
                "s": ("link", "a"), "big": b"x" * 300_000, "h": {str(i): "h\n" for i in range(8)}})
    subprocess.run([PYTHON, "-B", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import modellib;"
                    "modellib.work(int(sys.argv[2]), 60)", os.path.dirname(ACTOR), str(seed)],
                   cwd=work, check=True)
    # Overlays do not keep links of the host's together (docs/adr/0010).
    for base, _, files in os.walk(work):
        for name in files:
            full = os.path.join(base, name)
            if os.lstat(full).st_nlink > 1:
                os.unlink(full)
    subprocess.run(["cp", "-a", work, model / "now"], check=True)
    return work, Plain(model)


@pytest.fixture(name="place", params=["ext4", "xfs", "btrfs", "tmpfs"])
def fixture_place(request, filesystem):
    """A directory on one filesystem after the other; the model lies there, too."""
    where = pathlib.Path(filesystem(request.param)) / f"model-{os.getpid()}"
    where.mkdir()
    yield where
    subprocess.run(["rm", "-rf", where], check=True)


@pytest.mark.parametrize("seed", range(3))
def test_ended(stet, place, tree, seed):
    work, plain = prepare(place, tree, seed)
    drive(Ended(stet, work), plain, seed, STEPS // 12)


@pytest.mark.parametrize("seed", range(10, 14))
def test_live(stet, place, tree, seed):
    work, plain = prepare(place, tree, seed)
    # Told what has changed, or walking to find out.
    stet.env["STET_CHECKPOINT_WATCH"] = "0" if seed % 2 else ""
    real = Live(stet, work)
    drive(real, plain, seed, STEPS // 4)
    real.end()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
