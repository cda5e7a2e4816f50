# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a transaction that has ended: the verbs about them."""
import json
import os
import shutil
import subprocess

import pytest
from stetlib import digest, differences

TREE = {"a": "a\n", "b": "b\n", "d": {"c": "c\n", "e": {"f": "f\n"}}, "l": ("link", "a")}
# Not by rm: the policy would have a checkpoint taken before each.
RM = ("python3 -c 'import os, shutil, sys\nfor n in sys.argv[1:]: "
      "(shutil.rmtree if os.path.isdir(n) else os.remove)(n)'")
FIRST = f"echo one > a; {RM} d; mkdir n; echo n > n/n; ln n/n n/m; echo gone > g"
SECOND = f"{RM} n; mkdir d; echo d > d/d; {RM} b; echo two > a; {RM} g"


@pytest.fixture(name="ended")
def fixture_ended(stet, work, tree):
    """A transaction with two checkpoints, 1 and 2."""
    tree(work, TREE)
    stet.sh(FIRST, cwd=work, opts=["--quiet", "--checkpoint", "none"]).ok()
    stet("checkpoint", "-m", "first", cwd=work).ok()
    stet("explore", "-q", "--", "sh", "-c", SECOND, cwd=work).ok()
    stet("checkpoint", cwd=work).ok()
    return work


def log(stet, work):
    return [json.loads(x) for x in stet("log", "--json", cwd=work).ok().out.splitlines()]


def names(stet, work, *words):
    """{path: letter} of a diff."""
    out = stet("diff", "--name-status", "--no-renames", *words, cwd=work).ok().out
    return dict(reversed(x.split("\t")) for x in out.splitlines())


def inside(stet, work):
    return stet("explore", "-q", "--", "sh", "-c",
                "find . -type f -exec grep -H . {} + | sort", cwd=work).ok().out


ONE = "./a:one\n./b:b\n./g:gone\n./n/m:n\n./n/n:n\n"
TWO = "./a:two\n./d/d:d\n"


def test_timeline(stet, ended):
    two, one = log(stet, ended)
    assert (one["checkpoint"], one["note"], one["named"], one["cause"]) == (1, "first", True,
                                                                           "request")
    assert one["changes"] == {"added": 4, "changed": 1, "deleted": 4, "bytes": 13}
    assert two["changes"]["added"] == 2 and two["changes"]["deleted"] == 5
    lines = stet("log", cwd=ended).ok().out.splitlines()
    assert len(lines) == 4 and "first" in lines[2] and "begin" in lines[3]


def test_nothing_changed(stet, ended):
    r = stet("checkpoint", "--json", cwd=ended).ok().json()
    assert r["checkpoint"] is None and r["last"] == 2
    assert stet("checkpoint", cwd=ended).ok().out.startswith("nothing has changed since")


def test_the_note_is_kept_if_nothing_changed(stet, work, home):
    """The checkpoint of the call itself comes first: it is the one that was meant."""
    shutil.copy(stet.path, home / "stet")
    stet.sh(f"echo 1 > a; {home}/stet checkpoint -m mine; echo 2 > a; /bin/true", cwd=work).ok()
    assert [(p["note"], p["named"]) for p in log(stet, work)][-1] == ("mine", False)
    stet("checkpoint", "-m", "last", cwd=work).ok()
    r = stet("checkpoint", "-m", "the end", cwd=work).ok()
    assert "which has the note now" in r.out
    last = log(stet, work)[0]
    assert (last["note"], last["named"]) == ("last; the end", True)
    assert stet("checkpoint", "-m", "no", "--json", cwd=work).ok().json()["noted"]
    assert log(stet, work)[0]["note"] == "last; the end; no"
    for _ in range(3):
        stet("checkpoint", "-m", "y" * 4096, cwd=work).ok()
    assert stet("checkpoint", "-m", "z" * 4096, cwd=work).rc == 1


def test_the_users_note_is_not_for_the_inside(stet, work, home):
    shutil.copy(stet.path, home / "stet")
    script = f"echo 1 > a; echo ready; read -r x; {home}/stet checkpoint -m theirs"
    p = stet.popen("run", "-q", "--", "sh", "-c", script, cwd=work, stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    stet("checkpoint", "-m", "mine", cwd=work).ok()
    p.communicate(b"\n", timeout=60)
    assert p.returncode == 0
    assert [(q["note"], q["named"]) for q in log(stet, work) if q["note"]] == [("mine", True)]


def test_diff(stet, ended):
    assert names(stet, ended, "1") == {"a": "M", "d/c": "D", "d/e/f": "D", "d/e/": "D", "d/": "D",
                                       "n/": "A", "n/n": "A", "n/m": "A", "g": "A"}
    assert names(stet, ended, "1..2") == {"a": "M", "b": "D", "d/": "A", "d/d": "A", "g": "D",
                                          "n/n": "D", "n/m": "D", "n/": "D"}
    assert names(stet, ended, "2") == names(stet, ended, "t1", "1..2")
    assert names(stet, ended, "2..1", "a") == {"a": "M"}
    assert "-one\n+two\n" in stet("diff", "1..2", "a", cwd=ended).ok().out
    shown = stet("show", "1", "--json", cwd=ended).ok().json()
    assert shown["point"]["note"] == "first" and len(shown["changes"]) == 9
    assert not [d for d in os.listdir(os.path.join(stet.state, "tx")) if d.startswith("tmp")]


def test_diff_to_the_present(stet, ended):
    assert names(stet, ended, "2..") == {}
    assert names(stet, ended, "1..") == names(stet, ended, "1..2")
    stet("explore", "-q", "--", "sh", "-c",
         "echo three > a; echo new > new; ln new twin; mv d e; echo b > b; "
         "head -c 300000 /dev/zero > big", cwd=ended).ok()
    assert names(stet, ended, "2..") == {"a": "M", "b": "A", "big": "A", "d/": "D", "d/d": "D", "e/": "A",
                                         "e/d": "A", "new": "A", "twin": "A"}
    assert "-two\n+three\n" in stet("diff", "2..", "a", cwd=ended).ok().out
    r = stet("diff", "2..", "--json", cwd=ended).ok().json()
    assert (r["from"], r["to"]) == (2, None)
    assert len(log(stet, ended)) == 2, "looking makes no checkpoint"
    stet("checkpoint", cwd=ended).ok()
    assert names(stet, ended, "2..") == names(stet, ended, "2..3") and names(stet, ended, "3..") == {}


def test_to_and_back(stet, ended):
    host = digest(ended)
    assert inside(stet, ended) == TWO
    r = stet("rollback", "--to", "1", "--json", cwd=ended).ok().json()
    assert (r["before"], r["after"]) == (2, 3)
    assert inside(stet, ended) == ONE
    assert stet("rollback", "--to", "1", cwd=ended).ok().out.endswith("at checkpoint 1 already\n")
    stet("rollback", "--to", "0", cwd=ended).ok()
    assert stet.changes(cwd=ended) == {}
    stet("rollback", "--to", "2", cwd=ended).ok()
    assert inside(stet, ended) == TWO
    assert [p["checkpoint"] for p in log(stet, ended)] == [5, 4, 3, 2, 1]
    assert not differences(host, digest(ended))


def test_what_is_not_kept_yet_is_kept(stet, ended):
    stet("explore", "-q", "--", "sh", "-c", "echo more > more", cwd=ended).ok()
    r = stet("rollback", "--to", "1", "--dry-run", "--json", cwd=ended).ok().json()
    assert r["totals"]["deleted"] == 3 and len(log(stet, ended)) == 2
    r = stet("rollback", "--to", "1", "--json", cwd=ended).ok().json()
    assert (r["before"], r["after"]) == (3, 4)
    assert [p["cause"] for p in log(stet, ended)[:2]] == ["rollback", "before rollback"]
    stet("rollback", "--to", "3", cwd=ended).ok()
    assert "./more:more\n" in inside(stet, ended)


@pytest.mark.parametrize("path, seq, seen", [
    ("n", "1", "./a:two\n./d/d:d\n./n/m:n\n./n/n:n\n"),
    ("a", "0", "./a:a\n./d/d:d\n"),
    ("d/e/f", "0", "./a:two\n./d/d:d\n./d/e/f:f\n"),
    ("d", "0", "./a:two\n./d/c:c\n./d/e/f:f\n"),
    ("b", "1", "./a:two\n./b:b\n./d/d:d\n"),
    (".", "1", ONE),
    ("/", "1", ONE),
])
def test_restore(stet, ended, path, seq, seen):
    stet("restore", path, "--from", seq, cwd=ended).ok()
    assert inside(stet, ended) == seen
    stet("rollback", "--to", "2", cwd=ended).ok()
    assert inside(stet, ended) == TWO


def test_restore_below_a_directory_that_is_gone(stet, ended):
    stet("rollback", "--to", "1", cwd=ended).ok()
    stet("restore", "d/e/f", "--from", "0", cwd=ended).ok()
    assert inside(stet, ended) == ONE.replace("./g", "./d/e/f:f\n./g")


@pytest.mark.parametrize("path, rc", [
    ("nix", 1), ("d/nix", 1), ("a/nix", 1), ("../nix", 1), ("d/d", 0), ("a", 0), ("d/c", 0)])
def test_restore_of_what_is_nowhere(stet, ended, path, rc):
    """A slip of the pen is no success; what is as it was, there or deleted, is one."""
    before = inside(stet, ended)
    r = stet("restore", path, "--from", "2", cwd=ended).ok(rc)
    said = f"{path} was not there at any checkpoint of t1, and is not now; stet status"
    assert said in r.err if rc else "nothing differs there" in r.out
    # One word of several is enough to do nothing.
    stet("restore", "b", path, "--from", "1", cwd=ended).ok(rc)
    assert (inside(stet, ended) == before) == (rc != 0)


def test_restore_twice(stet, ended):
    """What a checkpoint knew is no slip, even if restoring has removed it."""
    for said in ("restored from", "nothing differs"):
        assert said in stet("restore", "d/d", "--from", "1", cwd=ended).ok().out


def test_undo_after_the_way_to_a_checkpoint(stet, ended):
    """It was done last: undo does not reach behind it for something else."""
    for words, what in ((["rollback", "--to", "1"], "rollback of t1 to"),
                        (["restore", "b", "--from", "0"], "restore of t1 from")):
        before = stet(*words, "--json", cwd=ended).ok().json()["before"]
        host = os.listdir(ended)
        r = stet("undo", cwd=ended).ok(4)
        assert f"is the {what} checkpoint {words[-1]}; take that back: " \
               f"stet rollback t1 --to {before}\n" in r.err
        assert os.listdir(ended) == host
        stet("rollback", "--to", str(before), cwd=ended).ok()
        assert inside(stet, ended) == TWO


def test_undo_of_something_older_is_said_so(stet, work):
    stet("exec", "--", "sh", "-c", "echo one > a", cwd=work).ok()
    stet.sh("echo two > a; echo > b", cwd=work).ok()
    stet("checkpoint", cwd=work).ok()
    stet("rollback", "--to", "0", cwd=work).ok()
    assert "or undo the commit before it: stet undo t1" in stet("undo", cwd=work).ok(4).err
    assert (work / "a").read_text() == "one\n"
    stet("undo", "t1", cwd=work).ok()
    assert not (work / "a").exists()
    # What comes after it is undone as ever.
    stet("rollback", "t2", cwd=work).ok()
    stet("undo", cwd=work).ok()
    assert stet.transactions()[0]["state"] == "pending"


def test_commit_at(stet, ended):
    stet("commit", "--at", "1", "--accept-risky", cwd=ended).ok()
    assert (ended / "a").read_text() == "one\n" and not (ended / "d").exists()
    assert (ended / "n/n").stat().st_ino == (ended / "n/m").stat().st_ino
    stet("undo", cwd=ended).ok()
    stet("rollback", "--to", "2", cwd=ended).ok()
    assert inside(stet, ended) == TWO


def test_fork_and_explore_at(stet, ended):
    r = stet("explore", "--at", "1", "--", "sh", "-c", "cat a; echo x > a; cat a", cwd=ended).ok()
    assert r.out == "one\nx\n"
    r = stet("fork", "--at", "1", "--name", "again", "--json", cwd=ended).ok()
    assert json.loads(r.err)["at"] == 1
    r = stet("fork", "t1", "--at", "1", "--json", "--", "sh", "-c", "cat a; echo y > y", cwd=ended)
    assert r.ok().out == "one\n"
    both = names(stet, ended, "again")
    assert both == names(stet, ended, "t1", "0..1")
    assert names(stet, ended, json.loads(r.err.splitlines()[-1])["txn"]["id"]) == {**both, "y": "A"}
    # Its own beginning is what it was made of.
    stet("rollback", "again", "--to", "0", cwd=ended).ok()
    assert names(stet, ended, "again") == both


@pytest.mark.parametrize("words, rc, message", [
    (["rollback", "--to", "9"], 1, "t1 has no checkpoint 9; see: stet log t1"),
    (["rollback", "--to", "x"], 1, "--to: 'x' is not the number of a checkpoint; see: stet log"),
    (["rollback", "--kill"], 1, "--kill goes with --to"),
    (["diff", "1..9"], 1, "t1 has no checkpoint 9; see: stet log t1"),
    (["show", "x"], 1, "show: which checkpoint?"),
    (["restore", "a"], 1, "restore: --from N is missing; stet log lists the checkpoints"),
    (["restore", "d/d/x", "--from", "1"], 1, "d/d/x was not there at any checkpoint of t1"),
    (["commit", "--at", "9"], 1, "t1 has no checkpoint 9"),
    (["fork", "--at", "9"], 125, "t1 has no checkpoint 9"),
])
def test_refusals(stet, ended, words, rc, message):
    r = stet(*words, cwd=ended).ok(rc)
    assert message in r.err
    assert inside(stet, ended) == TWO


def test_after_a_rollback_nothing_can_be_changed(stet, ended):
    stet("rollback", cwd=ended).ok()
    assert "t1 is rolled back" in stet("rollback", "--to", "1", cwd=ended).ok(4).err
    assert names(stet, ended, "1..2")["a"] == "M"



def test_thinning(stet, work):
    """Beyond a number the older ones go, but for those that somebody asked for."""
    few = {"STET_CHECKPOINT_MAX": "6"}
    stet.sh("echo 0 > f", cwd=work, opts=["--quiet"]).ok()
    for i in range(1, 12):
        stet("explore", "-q", "--", "sh", "-c", f"(echo {i}; head -c 16000 /dev/zero) > f; "
             f"echo {i} > f{i}", cwd=work).ok()
        if i == 2:
            stet("checkpoint", cwd=work, env=few).ok()
        stet("fork", "-q", "--name", f"n{i}", cwd=work, env=few).ok()
        stet("rollback", f"n{i}", cwd=work).ok()
    left = {p["checkpoint"]: p for p in log(stet, work)}
    assert len(left) == 6 and max(left) == 11 and left[2]["named"]
    for n in left:
        out = stet("explore", "--at", str(n), "--", "sh", "-c", "head -1 f; ls | wc -l",
                   cwd=work).ok()
        assert out.out == f"{n}\n{n + 1}\n", n
    stet("rollback", "--to", str(min(left)), cwd=work).ok()
    stet("rollback", "--to", "11", cwd=work).ok()
    (own,) = [d for d, _, files in os.walk(stet.state) if "11.ck" in files]
    kept = [f"{d}/{f}" for d, _, files in os.walk(os.path.dirname(own)) for f in files
            if os.path.basename(d) == "ck" and len(f) == 16]
    # Every pack holds a file that is still there; what else was in it has been given back.
    assert 100 << 10 < sum(os.stat(f).st_blocks * 512 for f in kept) < 180 << 10
