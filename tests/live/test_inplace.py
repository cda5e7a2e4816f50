# SPDX-License-Identifier: Apache-2.0
"""--backend btrfs: the command works on the real tree, which has a snapshot."""
import os
import pathlib
import subprocess

import pytest
from stetlib import differences, digest, expected_changes

NEEDS = "btrfs ext4"

TREE = {"a": "a\n", "b": "b\n", "d": {"c": "c\n", "e": {"f": "f\n"}}, "l": ("link", "a"),
        "big": b"x" * 300_000, "same": "same\n", "gone": {"x": "x\n"}, "m": "m\n"}
WORK = """
echo more >> a; rm b; mv d/e d/g; ln -s nowhere d/n; mkdir new; echo n > new/n; ln new/n new/m
touch -r same /tmp/t; printf 'SAME\\n' > same; touch -r /tmp/t same
chmod 600 m; rm -r gone; echo file > gone; printf y | dd of=big bs=1 seek=1000 conv=notrunc 2>/dev/null
"""


@pytest.fixture(name="sub")
def fixture_sub(filesystem, tree):
    """A subvolume of our own with a tree in it, and a name that nobody else has."""
    top = pathlib.Path(filesystem("btrfs"))
    sub = top / f"sub-{os.getpid()}-{len(os.listdir(top))}"
    subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
    tree(sub, TREE)
    return sub


def look(sub):
    """All but which inodes there are: what is put back is a file of its own."""
    return {n: {k: v for k, v in d.items() if k not in ("ctime", "ino")}
            for n, d in digest(sub).items()}


def run(stet, sub, script, *opts):
    return stet("run", "-q", "--backend", "btrfs", *opts, "--", "sh", "-c", script, cwd=sub)


def test_back_to_the_snapshot(stet, sub):
    before = look(sub)
    run(stet, sub, WORK, "--no-policy").ok()
    after = look(sub)
    assert differences(before, after), "it works on the real tree"
    assert stet.changes(cwd=sub, below=sub) == expected_changes(before, after)
    shown = stet("diff", "--no-renames", cwd=sub).ok().out
    assert "+more\n" in shown and "-same\n+SAME\n" in shown and "-b\n" in shown
    assert stet("rollback", "--dry-run", cwd=sub).ok().out
    assert not differences(after, look(sub))
    stet("rollback", cwd=sub).ok()
    assert not differences(before, look(sub))
    assert "+more\n" in stet("diff", "t1", cwd=sub).ok().out, "what it was can be seen still"
    assert "worked in place" in stet("undo", cwd=sub).ok(4).err
    stet("prune", cwd=sub).ok()
    assert not differences(before, look(sub))
    store = [d for d, dirs, _ in os.walk(sub.parent) if {"snap", "after"} & set(dirs)]
    assert not store


def test_keeping_it(stet, sub):
    run(stet, sub, "echo kept > kept").ok()
    assert "kept" in stet("commit", cwd=sub).ok().out
    assert (sub / "kept").read_text() == "kept\n"
    assert "t1 is pruned" in stet("rollback", "t1", cwd=sub).ok(4).err
    assert (sub / "kept").exists()


def test_decided_at_the_end(stet, sub):
    before = look(sub)
    run(stet, sub, "echo 1 > a; exit 3", "--on-failure", "rollback").ok(3)
    assert not differences(before, look(sub))
    run(stet, sub, "echo 1 > a", "--on-success", "commit").ok()
    assert (sub / "a").read_text() == "1\n"
    run(stet, sub, "true").ok()
    assert all(t["state"] != "pending" for t in stet.transactions())


def test_nothing_is_proposed_that_cannot_be(stet, sub):
    """What was decided in place is final."""
    loud = ["run", "--backend", "btrfs"]
    r = stet(*loud, "--on-failure", "rollback", "--", "sh", "-c", "echo 1 > a; exit 3", cwd=sub).ok(3)
    said = r.out + r.err
    r = stet("status", "t1", cwd=sub).ok()
    said += r.out + r.err + stet("commit", "t1", cwd=sub).ok(4).err
    assert "stet diff t1" in said and "stet undo" not in said, said
    r = stet(*loud, "--on-success", "commit", "--", "sh", "-c", "echo 1 > a", cwd=sub).ok()
    assert "committed" in r.out + r.err and "stet undo" not in r.out + r.err, r


def test_what_is_captured_as_always(stet, sub, home):
    run(stet, sub, f"echo 1 > {home}/elsewhere; echo 1 > here").ok()
    assert (sub / "here").exists() and not os.path.exists(home / "elsewhere")
    stet("rollback", cwd=sub).ok()
    assert not (sub / "here").exists() and not os.path.exists(home / "elsewhere")


def test_subvolumes_below_are_left_alone(stet, sub):
    inner = sub / "inner"
    subprocess.run(["btrfs", "-q", "subvolume", "create", inner], check=True)
    (inner / "precious").write_text("1")
    run(stet, sub, "echo 1 > a; echo 2 > inner/written").ok()
    stet("rollback", cwd=sub).ok()
    assert (sub / "a").read_text() == "a\n"
    assert sorted(os.listdir(inner)) == ["precious", "written"], "no part of the snapshot"


def test_refused(stet, sub, filesystem, home):
    (sub / "dir").mkdir()
    plain = pathlib.Path(filesystem("btrfs")) / f"plain-{os.getpid()}"
    plain.mkdir(exist_ok=True)
    for where in (sub / "dir", plain, pathlib.Path(filesystem("ext4")), home):
        r = stet("run", "--backend", "btrfs", "--", "touch", "f", cwd=where).ok(125)
        assert "is not a btrfs subvolume" in r.err, r.err
        assert not (where / "f").exists()
    r = stet("run", "--backend", "btrfs", "--checkpoint", "30s", "--", "true", cwd=sub).ok(125)
    assert "no checkpoints" in r.err
    run(stet, sub, "echo 1 > a").ok()
    for words in (["checkpoint"], ["rollback", "--to", "0"], ["restore", "a", "--from", "0"], ["fork"]):
        assert "in place" in stet(*words, cwd=sub).err
