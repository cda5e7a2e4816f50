# SPDX-License-Identifier: Apache-2.0
"""--backend btrfs: the command works on the real tree, which has a snapshot."""
import json
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


def but(seen, *names):
    """Without these (and what is in them), and the top, whose time is of who was there last."""
    return {n: d for n, d in seen.items() if n and n.split(b"/")[0] not in names and n not in names}


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
    store = [d for d, dirs, _ in os.walk(sub.parent) if {"snap", "end", "after"} & set(dirs)]
    assert not store


OTHERS = """
echo mine > mine; mkdir own; echo 1 > own/1; echo mine > new/mine; echo more >> l2; rm m2
touch a; chmod 700 d
"""


def test_what_others_did_since_stays(stet, sub):
    """New files, edits, deletions and modes; in what the command has made, too."""
    for name in ("l2", "m2"):
        (sub / name).write_text("1\n")
    before = look(sub)
    run(stet, sub, WORK, "--no-policy").ok()
    after = look(sub)
    subprocess.run(["sh", "-c", OTHERS], cwd=sub, check=True)
    assert stet.changes(cwd=sub, below=sub) == expected_changes(before, after)
    r = json.loads(stet("rollback", "--json", cwd=sub).ok().out)
    # d; what was changed; and new/, own/ with what is in them
    assert r["kept"] == 6, r
    others = (b"mine", b"own", b"new", b"l2", b"m2")
    now = look(sub)
    assert now.pop(b"d")["mode"] != before.pop(b"d")["mode"]
    assert not differences(but(before, *others), but(now, *others))
    assert sorted(os.listdir(sub / "new")) == ["mine"] and (sub / "own/1").exists()
    assert (sub / "mine").exists() and (sub / "l2").read_text() == "1\nmore\n"
    assert not (sub / "m2").exists() and os.stat(sub / "d").st_mode & 0o777 == 0o700


def test_what_both_changed_is_asked_for(stet, sub):
    """Path by path; until it is decided nothing is done."""
    run(stet, sub, "echo 1 > a; echo 1 > b; rm d/c; rm -r d/e; echo 1 > d/e; echo 1 > n; echo 1 > m").ok()
    os.unlink(sub / "a")
    (sub / "b").write_text("mine\n")
    (sub / "d/c").write_text("mine, too\n")
    os.unlink(sub / "n")
    (sub / "m").write_text("m\n")  # what it was
    before = look(sub)
    for words in (["--dry-run"], [], ["--ours", "b"], ["--theirs", "a", "--ours", "a"]):
        r = stet("rollback", *words, cwd=sub).ok(1 if len(words) == 4 else 3)
        assert not differences(before, look(sub))
    error = json.loads(stet("rollback", "--json", cwd=sub).ok(3).out)["error"]
    assert [os.path.relpath(c["path"], sub) for c in error["conflicts"]] == ["a", "b", "d/c"]
    r = stet("rollback", "--ours", "b", cwd=sub).ok(3)
    assert "stet rollback t1 --ours b --theirs a --theirs d/c" in r.err, r.err
    stet("rollback", "--ours", "b", "--theirs", "a", "--theirs", "d/c", cwd=sub).ok()
    assert (sub / "b").read_text() == "b\n" and (sub / "d/c").read_text() == "mine, too\n"
    assert not (sub / "a").exists() and not (sub / "n").exists() and (sub / "d/e/f").read_text() == "f\n"


def test_kinds_that_others_changed(stet, sub):
    """A file of theirs where a file is to be again, and what is to come back below one of theirs."""
    run(stet, sub, "rm a; mkdir a; rm d/c").ok()
    (sub / "a/mine").write_text("1")
    os.rename(sub / "d", sub / "moved")
    (sub / "d").write_text("1")
    r = stet("rollback", "--ours", "d/c", cwd=sub).ok(3)
    assert "a/mine" in r.err and "d/c" in r.err and "--ours a" not in r.err, r.err
    stet("rollback", "--theirs", "d/c", "--theirs", "a/mine", cwd=sub).ok()
    assert (sub / "a/mine").exists() and (sub / "d").read_text() == "1" and (sub / "moved/e/f").exists()


def test_whose_end_nobody_saw(stet, sub):
    before = look(sub)
    p = stet.popen("run", "-q", "--backend", "btrfs", "--", "sh", "-c", "echo 1 > a; echo 1 > n; echo; read x",
                   cwd=sub, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    p.kill()
    p.wait()
    (sub / "mine").write_text("1")
    r = stet("rollback", cwd=sub).ok(3)
    assert "nobody saw the end of t1" in r.err and "mine" in r.err, r.err
    stet("rollback", "--theirs", "mine", "--ours", ".", cwd=sub).ok()
    assert (sub / "mine").read_text() == "1"
    assert not differences(but(before), but(look(sub), b"mine"))


def test_a_visit_in_place(stet, sub):
    """What it does is the transaction's, unless others have worked there since: then it is theirs."""
    run(stet, sub, "echo 1 > one").ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > two", cwd=sub).ok()
    assert stet.changes(cwd=sub, below=sub) == {b"one": "A", b"two": "A"}
    (sub / "mine").write_text("1")
    stet("explore", "-q", "--", "sh", "-c", "echo 3 > three", cwd=sub).ok()
    stet("rollback", cwd=sub).ok()
    assert not (sub / "one").exists() and not (sub / "two").exists()
    assert (sub / "mine").exists() and (sub / "three").exists()


def test_a_rollback_that_was_interrupted(stet, sub):
    """Gone, and not yet put back: that is no work of others. What they do meanwhile is."""
    before = look(sub)
    run(stet, sub, "echo 1 > a; echo 1 > b; echo 1 > n; echo 1 > n2").ok()
    (store,) = [d for d, dirs, _ in os.walk(sub.parent)
                if {"snap", "end"} <= set(dirs) and os.path.exists(f"{d}/end/n2")]
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", sub, f"{store}/after"], check=True)
    for name in ("a", "n"):
        os.unlink(sub / name)
    (sub / "mine").write_text("1")
    stet("rollback", cwd=sub).ok()
    assert (sub / "mine").read_text() == "1"
    assert not differences(but(before), but(look(sub), b"mine"))


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
