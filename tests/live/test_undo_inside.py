# SPDX-License-Identifier: Apache-2.0
"""What the host does inside of a directory that a commit, its undo or its redo moves as a whole is
found, however deep and however well hidden: on three filesystems."""
import pytest
from commitlib import CONFLICT, commit, redo, shell, undo
from test_commit_touch import fixture_place  # noqa: F401
from test_undo_touch import each, refused, timeless

NEEDS = "ext4 xfs btrfs"

MAKE = "mkdir -p $f/s/t; echo base > $f/s/t/f; echo top > $f/g; ln $f/g $f/s/h"
# What the command does with the directory $f, which the host has...
TAKEN = {
    "deleted": "rm -r $f",
    "moved": "mv $f $f.n",
    "file": "rm -r $f; echo inside > $f",
    "link": "rm -r $f; ln -s nowhere $f",
}
# ... or which the command makes.
MADE = {"new": MAKE, "moved here": f"f=$f.o; {MAKE}; mv $f ${{f%.o}}"}
# What the host does in it.
EDIT = {
    "write": "echo host > $f/s/t/f",
    "append": "echo host >> $f/g",
    "time": "touch -r $f/s/t/f $f.t; echo BASE > $f/s/t/f; touch -r $f.t $f/s/t/f; rm $f.t",
    "over": "touch -r $f/s/t/f $f.t; echo BASE > $f.t; touch -r $f/s/t/f $f.t; mv $f.t $f/s/t/f",
    "file": "echo host > $f/s/t/n",
    "file, time": "touch -r $f/s/t $f.t; echo host > $f/s/t/n; touch -r $f.t $f/s/t; rm $f.t",
    "directory": "mkdir $f/s/t/n",
    "old directory": "mv $f.p $f/s/n",
    "old directory, time": "touch -r $f $f.t; mv $f.p $f/n; touch -r $f.t $f; rm $f.t",
    "mode": "chmod 611 $f/s/t/f",
    "mode of a directory": "chmod 711 $f/s/t",
    "mode of it": "chmod 711 $f",
    "attribute": "setfattr -n user.h -v 1 $f/s/t/f",
    "attribute of a directory": "setfattr -n user.h -v 1 $f/s",
    "attribute of it": "setfattr -n user.h -v 1 $f",
}
CALM = {
    "touch": "touch $f/s/t/f",
    "rewrite": "cat $f/g > $f.t; cat $f.t > $f/g; rm $f.t",
    "save": "cp -p $f/s/t/f $f.t; cat $f.t > $f/s/t/f; rm $f.t",
    "link": "ln $f/s/t/f $f.t; rm $f.t",
}
PREPARED = "; mkdir $f.p; echo prepared > $f.p/f"


def rows(before, inside, edits):
    """{name: the host's before, the command, the host's after}"""
    return {f"{w}-{t}".replace(" ", "_").replace(",", ""): (before + PREPARED, inside[w], edits[t])
            for w in inside for t in edits}


def conflicting(stet, place, verb, of):
    """Each of them is refused, nothing else is, and nothing has been touched."""
    refused(stet, place, verb, of, set())


def committed(stet, place, of):
    shell(each(0, of), place)
    stet.sh(each(1, of), cwd=place).ok()
    commit(stet, place).ok()
    stet.settle()


def test_redo_of_what_takes_a_directory_away(stet, place):
    of, calm = rows(MAKE, TAKEN, EDIT), rows(MAKE, {"calm": TAKEN["deleted"]}, CALM)
    committed(stet, place, {**of, **calm})
    undo(stet, place).ok()
    shell(each(2, {**of, **calm}), place)
    conflicting(stet, place, redo, of)


@pytest.mark.parametrize("way", ["ours", "theirs"])
def test_it_may_be_told_to_go_on(stet, place, way):
    of = rows(MAKE, TAKEN, {k: EDIT[k] for k in ("write", "old directory", "mode of it")})
    committed(stet, place, of)
    done = timeless(place)
    undo(stet, place).ok()
    shell(each(2, of), place)
    hosts = timeless(place)
    redo(stet, place, *[a for n in of for a in (f"--{way}", f"{place}/{n}")]).ok()
    if way == "ours":
        gone = {n.encode() for n in of if "deleted" in n or "moved" in n}
        assert not gone & set(timeless(place))
        assert {n: d for n, d in timeless(place).items() if not n.endswith(b".p") and b".p/" not in n} == \
            {n: d for n, d in done.items() if not n.endswith(b".p") and b".p/" not in n}
        undo(stet, place).ok()
    assert {n: d for n, d in timeless(place).items() if b".n" not in n} == \
        {n: d for n, d in hosts.items() if b".n" not in n}
    stet("check", cwd=place).ok()


def test_undo_of_what_has_made_a_directory(stet, place):
    of, calm = rows(":", MADE, EDIT), rows(":", {"calm": MADE["new"]}, CALM)
    committed(stet, place, {**of, **calm})
    shell(each(2, {**of, **calm}), place)
    conflicting(stet, place, undo, of)


def test_our_own_work_in_it_is_no_conflict(stet, place):
    """Two commits in a directory that a third one deletes; all of them there and back."""
    shell("mkdir -p d/s/t d/s/u; echo 1 > d/g; echo 2 > d/s/u/f; echo 3 > d/s/t/f", place)
    stet.sh("echo inside > d/g; chmod 600 d/s/u/f; echo 4 > d/s/n; rm -r d/s/t; chmod 700 d/s; "
            "echo pending > p", cwd=place).ok()
    commit(stet, place, "d/g", "d/s/n").ok()
    commit(stet, place, "d").ok()
    stet("explore", "t1", "--", "rm", "-r", "d", cwd=place).ok()
    commit(stet, place, "d").ok()
    for _ in range(2):
        for _ in range(3):
            undo(stet, place).ok()
        for _ in range(3):
            redo(stet, place).ok()
    stet("check", cwd=place).ok()


def test_it_says_where(stet, work):
    shell(f"f=d; {MAKE}", work)
    stet.sh("rm -r d", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    shell("echo host >> d/s/t/f", work)
    assert "changed on the host after the undo: s/t/f" in redo(stet, work).ok(CONFLICT).err
