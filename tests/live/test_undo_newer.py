# SPDX-License-Identifier: Apache-2.0
"""A part was committed, then the transaction went on at the same paths: undo takes the commit back
all the same, and what is pending stays as it is."""
import os

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, same_inodes, shell, undo
from stetlib import differences

# What the host has, what the command makes of it, the paths that are committed, and what the
# transaction does afterwards.
CASES = {
    "new": (":", "echo 1 > a", "a", "echo 2 > a"),
    "new, saved anew": (":", "echo 1 > a", "a", "echo 2 > t; mv t a"),
    "new, deleted": (":", "echo 1 > a", "a", "rm a"),
    "new, now a directory": (":", "echo 1 > a", "a", "rm a; mkdir a; echo 2 > a/f"),
    "new link": (":", "ln -s 1 a", "a", "ln -sfn 2 a"),
    "changed": ("echo 0 > a", "echo 1 > a", "a", "echo 2 > a"),
    "changed, appended": ("echo 0 > a", "echo 1 > a", "a", "echo 2 >> a"),
    "changed, mode": ("echo 0 > a", "echo 1 > a", "a", "chmod 600 a"),
    "changed, deleted": ("echo 0 > a", "echo 1 > a", "a", "rm a"),
    "changed, now a link": ("echo 0 > a", "echo 1 > a", "a", "ln -sfn 2 a"),
    "link": ("ln -s 0 a", "ln -sfn 1 a", "a", "ln -sfn 2 a"),
    "deleted, made anew": ("echo 0 > a", "rm a", "a", "echo 2 > a"),
    "file to directory": ("echo 0 > a", "rm a; mkdir a; echo 1 > a/f", "a", "rm -r a; echo 2 > a"),
    "directory to file": ("mkdir a; echo 0 > a/f", "rm -r a; echo 1 > a", "a", "echo 2 > a"),
    "directory, deleted": (":", "mkdir a; echo 1 > a/f", "a", "rm -r a"),
    "directory, made anew": (":", "mkdir a; echo 1 > a/f", "a", "rm -r a; mkdir a; echo 2 > a/g"),
    "in a directory": ("mkdir d; echo 0 > d/a", "echo 1 > d/a; echo 1 > d/n", "d", "echo 2 > d/a; rm d/n"),
    "in one that is gone": ("mkdir d; echo 0 > d/a", "echo 1 > d/a; echo 1 > d/n", "d", "rm -r d"),
    "in one that is a file": ("mkdir d; echo 0 > d/a", "echo 1 > d/a; echo 1 > d/n", "d",
                              "rm -r d; echo 2 > d"),
    "in one made anew": ("mkdir d; echo 0 > d/a", "echo 1 > d/a; echo 1 > d/n", "d",
                         "rm -r d; mkdir d; echo 2 > d/z"),
    "in a new one": (":", "mkdir -p d/e; echo 1 > d/e/a; echo 1 > d/e/b", "d/e/a", "echo 2 > d/e/a"),
    "in a new one, gone": (":", "mkdir -p d/e; echo 1 > d/e/a; echo 1 > d/b", "d/e/a", "rm -r d/e"),
    "beside": ("mkdir d; echo 0 > d/a; echo 0 > d/b", "echo 1 > d/a; echo 1 > d/b; echo 1 > d/c",
               "d/a d/b", "echo 2 > d/a; chmod 700 d; echo 2 > d/z"),
    "one of two names": (":", "echo 1 > a; ln a b", "a b", "echo 2 > t; mv t a"),
}


def seen(top):
    """The tree without times, which no two runs share."""
    return {k: {n: v for n, v in d.items() if n != "mtime"} for k, d in plain(top).items()}


def ran(home, *scripts):
    """What the same commands make without a sandbox."""
    top = home / "plain"
    top.mkdir()
    for s in scripts:
        shell(s, top)
    return seen(top)


def prepared(stet, work, kind):
    """The host's tree before and after the commit, with the transaction gone on since."""
    before, inside, paths, later = CASES[kind]
    shell(before, work)
    old = same_inodes(work)
    stet.sh(f"{inside}; echo 1 > rest", cwd=work).ok()
    commit(stet, work, *paths.split()).ok()
    done = same_inodes(work)
    assert differences(old, done) != []
    stet("explore", "-q", "--", "bash", "-ec", later, cwd=work).ok()
    assert differences(done, same_inodes(work)) == []
    return old, done


def is_well(stet):
    assert "all well" in stet("check").ok().out


@pytest.mark.parametrize("kind", CASES)
def test_undo_redo(stet, work, kind):
    """Back and forth, exactly; in the end the newest version is committed as if nothing had been."""
    before, inside, _, later = CASES[kind]
    old, done = prepared(stet, work, kind)
    pending = stet.changes(cwd=work)
    for _ in range(2):
        undo(stet, work).ok()
        assert differences(old, same_inodes(work)) == []
        is_well(stet)
        redo(stet, work).ok()
        assert differences(done, same_inodes(work)) == []
        assert stet.changes(cwd=work) == pending
        is_well(stet)
    undo(stet, work).ok()
    commit(stet, work).ok()
    assert differences(ran(work.parent, before, inside, later, "echo 1 > rest"), seen(work)) == []
    undo(stet, work).ok()
    assert differences(old, same_inodes(work)) == []
    is_well(stet)


@pytest.mark.parametrize("kind", CASES)
def test_a_stack_of_commits(stet, work, kind):
    """The newer version is committed on top: two undos, two redos."""
    old, done = prepared(stet, work, kind)
    commit(stet, work).ok()
    newest = same_inodes(work)
    for _ in range(2):
        for verb, tree in ((undo, done), (undo, old), (redo, done), (redo, newest)):
            verb(stet, work).ok()
            assert differences(tree, same_inodes(work)) == []
            is_well(stet)
    stet("prune", cwd=work).ok()
    is_well(stet)


def test_another_name_of_what_stays(stet, work):
    """In the directory that is put aside it stays what it is."""
    shell("echo 0 > y; chmod 640 y", work)
    old = same_inodes(work)
    stet.sh("chmod 600 y; mkdir -p n/m; ln y n/m/x; echo 1 > n/z; echo 1 > rest", cwd=work).ok()
    commit(stet, work, "y", "n").ok()
    done = same_inodes(work)
    stet("explore", "-q", "--", "bash", "-ec", "rm -r n; mkdir -p n/m; echo 2 > n/m/z", cwd=work).ok()
    undo(stet, work).ok()
    assert differences(old, same_inodes(work)) == []
    redo(stet, work).ok()
    assert differences(done, same_inodes(work)) == []
    assert os.stat(work / "y").st_ino == os.stat(work / "n/m/x").st_ino
    undo(stet, work, "--ours", "n").ok()
    commit(stet, work).ok()
    assert shell("cd n; find . -type f", work) == "./m/z\n"
    is_well(stet)


def test_chosen_paths(stet, work):
    """One of two, named; the other stays committed."""
    shell("echo 0 > a", work)
    stet.sh("echo 1 > a; echo 1 > b; echo 1 > c", cwd=work).ok()
    commit(stet, work, "a", "b").ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > a; echo 2 > b", cwd=work).ok()
    for name, was in (("a", "0\n"), ("b", None)):
        undo(stet, work, "t1", name).ok()
        assert (work / name).read_text() == was if was else not (work / name).exists()
        redo(stet, work).ok()
        assert (work / name).read_text() == "1\n"
        undo(stet, work, "t1", name).ok()
    commit(stet, work).ok()
    assert [(work / n).read_text() for n in "abc"] == ["2\n", "2\n", "1\n"]
    is_well(stet)


def test_back_at_a_checkpoint(stet, work):
    """What a checkpoint brought back to the layer is in the way like anything else."""
    shell("echo 0 > a", work)
    stet.sh("echo 1 > a; echo 1 > b; echo 1 > c", cwd=work, opts=["--checkpoint", "none"]).ok()
    stet("checkpoint", cwd=work).ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > a; echo 2 > b", cwd=work).ok()
    commit(stet, work, "a", "b").ok()
    stet("rollback", "--to", "1", cwd=work).ok()
    undo(stet, work).ok(4)
    undo(stet, work, "t1").ok()
    assert (work / "a").read_text() == "0\n" and not (work / "b").exists()
    redo(stet, work).ok()
    assert [(work / n).read_text() for n in "ab"] == ["2\n", "2\n"]
    undo(stet, work).ok()
    commit(stet, work).ok()
    assert [(work / n).read_text() for n in "abc"] == ["1\n", "1\n", "1\n"]
    is_well(stet)


@pytest.mark.parametrize("kind", ["new", "changed"])
def test_conflicts_as_ever(stet, work, kind):
    """What the user did after the commit, or after its undo, is asked about; told to go on, it is
    kept."""
    old, _ = prepared(stet, work, kind)
    shell("echo user > a", work)
    users = same_inodes(work)
    assert names_conflict(undo(stet, work).ok(CONFLICT), "a")
    assert differences(users, same_inodes(work)) == []
    undo(stet, work, "--ours", "a").ok()
    assert {k: v for k, v in old.items() if k} == {k: v for k, v in same_inodes(work).items() if k}
    redo(stet, work).ok()
    assert (work / "a").read_text() == "user\n"
    undo(stet, work, "--ours", "a").ok()
    shell("echo later > a", work)
    assert names_conflict(redo(stet, work).ok(CONFLICT), "a")
    redo(stet, work, "--ours", "a").ok()
    assert (work / "a").read_text() == "user\n"
    undo(stet, work).ok()
    assert (work / "a").read_text() == "later\n"
    is_well(stet)


def test_a_directory_that_lost_its_ground(stet, work):
    """Inside only a file of the committed directory was changed: without the rest, that is asked."""
    stet.sh("mkdir n; echo 1 > n/x; echo 1 > n/y; echo 1 > rest", cwd=work).ok()
    commit(stet, work, "n").ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > n/x", cwd=work).ok()
    undo(stet, work).ok()
    assert os.listdir(work) == []
    assert names_conflict(commit(stet, work).ok(CONFLICT), "n")
    redo(stet, work).ok()
    commit(stet, work, ours=["n/x"]).ok()
    assert [(work / "n" / f).read_text() for f in "xy"] == ["2\n", "1\n"]
    is_well(stet)


def test_directories_stay_as_they_are_pending(stet, work):
    """What is put back beside it neither dates nor opens a directory that was changed since."""
    shell("mkdir d; echo 0 > d/a; echo 0 > d/b; touch -d 2001-01-01 d", work)
    stet.sh("echo 1 > d/a; echo 1 > d/b; echo 1 > d/c; touch -d 2002-02-02 d", cwd=work).ok()
    commit(stet, work, "d/a", "d/b").ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > d/a; chmod 711 d; touch -d 2003-03-03 d",
         cwd=work).ok()
    undo(stet, work).ok()
    assert shell("date -r d +%Y; stat -c %a d", work) == "2001\n755\n"
    redo(stet, work).ok()
    assert shell("stat -c %a d", work) == "755\n"
    undo(stet, work).ok()
    commit(stet, work).ok()
    assert shell("date -r d +%Y; stat -c %a d; cat d/a d/b d/c", work) == "2003\n711\n2\n1\n1\n"
    is_well(stet)
