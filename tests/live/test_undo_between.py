# SPDX-License-Identifier: Apache-2.0
"""Two transactions in one directory: what the second one's undo brings back is what it found, which need
not be what the first one left; and what it does again stands. On three filesystems."""
import os

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, shell, undo
from stetlib import differences
from test_commit_identity import named
from test_commit_touch import fixture_place  # noqa: F401
from test_undo_touch import each

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

TREE = "mkdir $f; echo base > $f/x; echo base > $f/y"
# How the first one comes to take the directory away: the tree, its command, and the verb that does.
FIRST = {"undo of what made it": (":", TREE, undo), "redo of what deletes it": (TREE, "rm -r $f", redo),
         "redo of what moves it": (TREE, "mv $f new-$f", redo)}
HOST = {"writes": "echo host >> $f/x", "saves": "echo host > $f/t; mv $f/t $f/x", "adds": "echo host > $f/h",
        "writes, same times": "echo HOST > $f/x; touch -r $f/y $f/x", "attribute": "setfattr -n user.host -v 1 $f/x"}
SECOND = {"changes": "echo two >> $f/x; echo two > $f/h; echo two > $f/y", "deletes": "rm $f/*",
          "attributes": "chmod 600 $f/*", "moves": "mkdir moved-$f; mv $f/* moved-$f"}
ALL = named({f"{h}-{s}": (HOST[h], SECOND[s]) for h in HOST for s in SECOND})


def begin(stet, place, first):
    """The first one, up to where its last step takes the directories away."""
    tree, inside, last = FIRST[first]
    for script, run in ((tree, shell), (inside, lambda script, cwd: stet.sh(script, cwd=cwd).ok())):
        run("; ".join(f"f={f}; {script}" for f in ALL), place)
    commit(stet, place).ok()
    if last is redo:
        undo(stet, place).ok()
    return last


@pytest.mark.parametrize("first", FIRST)
def test_what_the_second_found_is_the_hosts(stet, place, first):
    """The host's edit comes between the two."""
    last = begin(stet, place, first)
    shell(each(0, ALL), place)
    stet.sh(each(1, ALL), cwd=place).ok()
    commit(stet, place, tx="t2").ok()
    undo(stet, place, "t2").ok()
    before = plain(place)
    r = last(stet, place, "t1").ok(CONFLICT)
    assert [f for f in ALL if not names_conflict(r, f)] == [], r
    assert differences(before, plain(place)) == []


@pytest.mark.parametrize("first", FIRST)
def test_what_the_second_did_again_stands(stet, place, first):
    """It is its work, as it was when it was committed."""
    last = begin(stet, place, first)
    stet.sh(each(1, ALL), cwd=place).ok()
    commit(stet, place, tx="t2").ok()
    undo(stet, place, "t2").ok()
    redo(stet, place, "t2").ok()
    before = plain(place)
    r = last(stet, place, "t1").ok(CONFLICT)
    assert [f for f in ALL if not names_conflict(r, f) and not f.endswith("deletes")] == [], r
    assert differences(before, plain(place)) == []


@pytest.mark.parametrize("first", FIRST)
def test_without_the_host_nothing_is_refused(stet, place, first):
    """However often the second and a third one went to and fro meanwhile."""
    last = begin(stet, place, first)
    before = plain(place)
    for name in ("t2", "t3"):
        stet.sh(each(1, ALL), cwd=place).ok()
        commit(stet, place, tx=name).ok()
        for verb in (undo, redo, undo):
            verb(stet, place, name).ok()
    assert differences(before, plain(place)) == []
    last(stet, place, "t1").ok()
    assert [f for f in ALL if os.path.exists(f"{place}/{f}")] == []
