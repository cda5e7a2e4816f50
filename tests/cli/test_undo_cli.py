# SPDX-License-Identifier: Apache-2.0
"""Chains of commits, undos and redos: in which order, of which parts, and what ends them."""
import os
import sqlite3

import pytest
from commitlib import shell

NOTHING = 4  # exit status: there is nothing to be done


def host(work):
    """Every file of the workspace with its content, as one line."""
    found = []
    for top, dirs, files in os.walk(work):
        dirs.sort()
        for name in files:
            path = os.path.join(top, name)
            with open(path, encoding="utf-8") as f:
                found.append(os.path.relpath(path, work) + "=" + f.read().strip())
    return " ".join(sorted(found))


def play(stet, work, steps):
    """Each step: the words, the exit status if it is not 0, what the host has afterwards."""
    for words, *rest in steps:
        status = rest.pop(0) if rest and isinstance(rest[0], int) else 0
        r = stet(*words.split(), cwd=work).ok(status)
        assert "operation 0" not in r.err, (words, r.err)
        if rest:
            assert host(work) == rest[0], (words, r)


# What changes the layers of a pending transaction ends redo.
ENDS = {
    "restore": ["restore a n --from 1"],
    "rollback to": ["rollback --to 1"],
    "explore": ["explore -- sh -c true"],
    "commit at": ["commit --at 1", "undo", "rollback --to 2"],
}


@pytest.mark.parametrize("how", ENDS)
def test_what_ends_redo(stet, work, how):
    shell("echo 0 > a; echo 0 > b", work)
    quiet = ["--quiet", "--checkpoint", "none"]
    stet.sh("echo 1 >a; mkdir n; echo 1 >n/x", cwd=work, opts=quiet).ok()
    stet("checkpoint", cwd=work).ok()
    stet("explore", "--", "sh", "-c", "echo 2 >a; rm -r n b; echo 2 >q", cwd=work).ok()
    stet("checkpoint", cwd=work).ok()
    play(stet, work, [("commit", "a=2 q=2"), ("undo", "a=0 b=0")])
    for words in ENDS[how]:
        stet(*words.split(), cwd=work).ok()
    assert "nothing to redo" in stet("redo", cwd=work).ok(NOTHING).err
    assert "nothing to redo in t1" in stet("redo", "t1", cwd=work).ok(NOTHING).err
    assert host(work) == "a=0 b=0"
    # What it is now can be committed, and taken back, and done again.
    stet("commit", cwd=work).ok()
    done = host(work)
    play(stet, work, [("undo", "a=0 b=0"), ("redo", done), ("undo", "a=0 b=0")])
    stet("check", cwd=work).ok()


def test_a_refused_part_does_not_end_redo(stet, work):
    """A refusal changes nothing: neither the layers, nor what can be done again."""
    shell("mkdir d; echo 0 > d/a; echo 0 > d/b; echo 0 > c", work)
    stet.sh("rm -r d; mkdir d; echo 1 > d/n; echo 1 > c", cwd=work).ok()
    play(stet, work, [("commit", "c=1 d/n=1"), ("undo", "c=0 d/a=0 d/b=0")])
    shell("echo user > c", work)
    play(stet, work, [("commit c", 3), ("redo", 3, "c=user d/a=0 d/b=0")])
    shell("echo 0 > c", work)
    play(stet, work, [("redo", "c=1 d/n=1"), ("undo", "c=0 d/a=0 d/b=0")])


# Files a, b and c (0 on the host; 1 in the transaction), and new ones n1, n2.
CHANGE = "for f in a b c; do echo 1 > $f; done; echo 1 > n1; echo 1 > n2"
OLD = "a=0 b=0 c=0"
NEW = "a=1 b=1 c=1 n1=1 n2=1"
CHAINS = {
    "superseded": [
        ("commit a", "a=1 b=0 c=0"), ("commit b", "a=1 b=1 c=0"), ("undo", "a=1 b=0 c=0"),
        ("commit", NEW), ("undo", "a=1 b=0 c=0"), ("undo", OLD),
        ("redo", "a=1 b=0 c=0"), ("redo", NEW), ("redo", NOTHING, NEW)],
    "rollback supersedes": [
        ("commit", NEW), ("undo", OLD), ("rollback", OLD), ("undo", OLD), ("redo", OLD),
        ("redo", NOTHING), ("undo", OLD), ("redo", OLD), ("undo", OLD), ("commit", NEW)],
    "a part": [
        ("commit", NEW), ("undo t1 n1", "a=1 b=1 c=1 n2=1"), ("redo", NEW),
        ("undo t1 n1", "a=1 b=1 c=1 n2=1"), ("undo", OLD), ("redo", "a=1 b=1 c=1 n2=1"),
        ("redo t1", NEW), ("redo", NOTHING, NEW), ("undo", OLD)],
    "two parts": [
        ("commit", NEW), ("undo t1 n1", "a=1 b=1 c=1 n2=1"), ("undo t1 a", "a=0 b=1 c=1 n2=1"),
        ("redo", "a=1 b=1 c=1 n2=1"), ("undo a", "a=0 b=1 c=1 n2=1"), ("undo t1 n1", 1),
        ("undo", OLD), ("redo", "a=0 b=1 c=1 n2=1"), ("redo", "a=1 b=1 c=1 n2=1"), ("redo", NEW)],
    "the only part": [
        ("commit a", "a=1 b=0 c=0"), ("undo t1 a", OLD), ("undo", NOTHING), ("redo", "a=1 b=0 c=0"),
        ("commit", NEW), ("undo", "a=1 b=0 c=0"), ("undo", OLD), ("redo", "a=1 b=0 c=0"),
        ("redo", NEW)],
    "a part of an older one": [
        ("commit a b", "a=1 b=1 c=0"), ("commit c", "a=1 b=1 c=1"), ("undo t1 a", "a=0 b=1 c=1"),
        ("undo t1 a", 1), ("redo", "a=1 b=1 c=1"), ("undo t1 a", "a=0 b=1 c=1"),
        ("undo", "a=0 b=1 c=0"), ("undo", OLD), ("undo", NOTHING), ("redo", "a=0 b=1 c=0"),
        ("redo", "a=0 b=1 c=1"), ("redo", "a=1 b=1 c=1")],
    "a part, committed anew": [
        ("commit a n1", "a=1 b=0 c=0 n1=1"), ("undo t1 n1", "a=1 b=0 c=0"), ("commit", NEW),
        ("redo", NOTHING), ("undo t1 n1", "a=1 b=1 c=1 n2=1"), ("undo", "a=1 b=0 c=0"),
        ("undo", OLD), ("redo", "a=1 b=0 c=0"), ("redo", "a=1 b=1 c=1 n2=1"), ("redo", NEW)],
    "paths of two commits": [
        ("commit a", "a=1 b=0 c=0"), ("commit b", "a=1 b=1 c=0"), ("undo t1 a b", 1),
        ("undo t1 a", "a=0 b=1 c=0"), ("undo t1 b", OLD)],
    "after a refusal": [
        ("commit", NEW), ("redo", NOTHING), ("undo t1 nowhere", 1), ("redo", NOTHING), ("undo", OLD)],
}


@pytest.mark.parametrize("name", CHAINS)
def test_chain(stet, work, name):
    shell("for f in a b c; do echo 0 > $f; done", work)
    stet.sh(CHANGE, cwd=work).ok()
    play(stet, work, CHAINS[name])
    stet("check", cwd=work).ok()


def test_journals_of_before(stet, work):
    """What was undone when undos did not know yet whether they were taken back."""
    shell("for f in a b c; do echo 0 > $f; done", work)
    stet.sh(CHANGE, cwd=work).ok()
    play(stet, work, [("commit a", "a=1 b=0 c=0"), ("commit b", "a=1 b=1 c=0"), ("undo", "a=1 b=0 c=0"),
                      ("redo", "a=1 b=1 c=0"), ("undo", "a=1 b=0 c=0"), ("commit", NEW),
                      ("undo t1 n1", "a=1 b=1 c=1 n2=1"), ("redo", NEW), ("undo", "a=1 b=0 c=0"),
                      ("undo", OLD)])
    with sqlite3.connect(os.path.join(stet.state, "journal.db")) as db:
        db.execute("UPDATE op SET target = 0 WHERE part = 1")
        for column in ("part", "redone"):
            db.execute(f"ALTER TABLE op DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 5")
    db.close()
    play(stet, work, [("redo", "a=1 b=0 c=0"), ("redo", NEW), ("redo", NOTHING, NEW)])


def listed(stet, work):
    """The paths that status lists."""
    changes = stet("status", "--json", cwd=work).ok().json()["changes"]
    return sorted(os.path.relpath(c["path"], work) for c in changes)


def test_a_part_is_told_of(stet, work):
    stet.sh("echo 1 > a; echo 1 > n1; echo 1 > n2", cwd=work, opts=["--on-success", "commit"]).ok()
    r = stet("undo", "t1", "n1", cwd=work).ok()
    assert r.out == "t1: commit taken back in part; do it after all: stet redo t1\n"
    assert listed(stet, work) == ["a", "n2"]
    r = stet("redo", cwd=work).ok()
    assert r.out == "t1 committed again, in part; take it back: stet undo t1\n"
    assert listed(stet, work) == ["a", "n1", "n2"]
    # An undo that met a conflict has undone nothing.
    stet("undo", "t1", "n1", cwd=work).ok()
    stet("redo", cwd=work).ok()
    shell("echo mine > n1", work)
    stet("undo", cwd=work).ok(3)
    assert "nothing to redo" in stet("redo", cwd=work).ok(NOTHING).err


def test_a_part_of_chosen_paths_is_pending_again(stet, work):
    stet.sh("echo 1 > a; echo 1 > b; echo 1 > c", cwd=work).ok()
    stet("commit", "a", "b", cwd=work).ok()
    r = stet("undo", "t1", "a", cwd=work).ok()
    assert r.out == "t1: commit taken back in part, pending again; do it after all: stet redo t1\n"
    assert listed(stet, work) == ["a", "c"]
    stet("commit", cwd=work).ok()
    assert host(work) == "a=1 b=1 c=1"


# What happened before the fork, what the fork does, and what the host has when that is committed.
FORKS = {
    "undone": (["commit", "undo"], "echo 3 > a", "a=3 b=1 c=1 n1=1 n2=1"),
    "undone, new file": (["commit", "undo"], "echo 3 > n1", "a=1 b=1 c=1 n1=3 n2=1"),
    "undone twice": (["commit", "undo", "redo", "undo"], "echo 3 > a", "a=3 b=1 c=1 n1=1 n2=1"),
    "undone in part": (["commit a b n1", "undo t1 a"], "echo 3 > a; echo 3 > b; echo 3 > n1",
                       "a=3 b=3 c=1 n1=3 n2=1"),
    "committed in part": (["commit a"], "echo 3 > a; echo 3 > b", "a=3 b=3 c=1 n1=1 n2=1"),
    "rolled back, undone": (["rollback", "undo"], "echo 3 > a", "a=3 b=1 c=1 n1=1 n2=1"),
}


@pytest.mark.parametrize("twice", [False, True], ids=["once", "fork of a fork"])
@pytest.mark.parametrize("name", FORKS)
def test_a_fork_knows_what_was_undone(stet, work, name, twice):
    """What stet itself did to the host is nobody else's change."""
    steps, script, expected = FORKS[name]
    shell("for f in a b c; do echo 0 > $f; done", work)
    stet.sh(CHANGE, cwd=work).ok()
    play(stet, work, [(s,) for s in steps])
    if twice:
        stet("fork", "-q", "t1", cwd=work).ok()
    stet("fork", "-q", "t2" if twice else "t1", "--", "sh", "-c", script, cwd=work).ok()
    fork = "t3" if twice else "t2"
    before = host(work)
    stet("commit", fork, cwd=work).ok()
    assert host(work) == expected
    stet("undo", fork, cwd=work).ok()
    assert host(work) == before


@pytest.mark.parametrize("name", FORKS)
def test_a_fork_does_not_know_the_user(stet, work, name):
    """What somebody else did before the fork or after it is a conflict as ever."""
    steps, script, _ = FORKS[name]
    for when in range(2):
        shell("rm -f n1 n2; for f in a b c; do echo 0 > $f; done", work)
        stet.sh(CHANGE, cwd=work).ok()
        tx = stet.transactions()[0]["id"]
        play(stet, work, [(s.replace("t1", tx),) for s in steps])
        edit = "for f in a n1; do echo user > .t; mv .t $f; done"
        if when == 0:
            shell(edit, work)
        stet("fork", "-q", tx, "--", "sh", "-c", script, cwd=work).ok()
        if when == 1:
            shell(edit, work)
        stet("commit", stet.transactions()[0]["id"], cwd=work).ok(3)
        assert "a=user" in host(work)


def test_a_directory_that_moved_whole(stet, work):
    stet.sh("mkdir m; echo 1 > m/n; echo 1 > a", cwd=work).ok()
    stet("commit", cwd=work).ok()
    r = stet("undo", "t1", "m/n", cwd=work).ok(1)
    assert "m was committed as a whole; take all of it back: stet undo t1 DIRECTORY" in r.err
    play(stet, work, [("undo t1 m", "a=1"), ("redo", "a=1 m/n=1"), ("undo", "")])


def test_who_was_there_since(stet, work):
    """Another transaction: it is named, and taking it back first is what helps."""
    shell("echo 0 > a; echo 0 > b", work)
    for i in (1, 2):
        stet.sh(f"echo {i} > a; mkdir d{i}; echo {i} > d{i}/x", cwd=work).ok()
        stet("commit", cwd=work).ok()
    r = stet("undo", "t1", cwd=work).ok(3)
    assert "  a  was changed on the host after the commit, by t2\n" in r.err
    assert "take that back first:  stet undo t2\n" in r.err and "t1/x" not in r.err
    (conflict,) = stet("undo", "t1", "--json", cwd=work).ok(3).json()["error"]["conflicts"]
    assert conflict["by"] == "t2"
    play(stet, work, [("undo t2", "a=1 b=0 d1/x=1"), ("undo t1", "a=0 b=0"), ("redo t2", 3),
                      ("redo t1", "a=1 b=0 d1/x=1")])
    # The user himself is nobody that has a number.
    shell("echo 3 > a", work)
    r = stet("undo", "t1", cwd=work).ok(3)
    assert ", by t" not in r.err and "take that back first" not in r.err


def test_who_was_there_before_the_commit(stet, work):
    shell("echo 0 > a; echo 0 > b", work)
    stet.sh("echo 1 > a", cwd=work).ok()
    stet.sh("echo 2 > a; echo 2 > b", cwd=work).ok()
    stet("commit", "t1", cwd=work).ok()
    r = stet("commit", "t2", cwd=work).ok(3)
    assert "  a  changed in t2, changed on the host, by t1\n" in r.err
