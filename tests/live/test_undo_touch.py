# SPDX-License-Identifier: Apache-2.0
"""Touching without changing what a commit has left, or what its undo has put back, is no conflict,
and changing always is: on three filesystems."""
import os

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, shell, undo
from test_commit_touch import TOUCH, fixture_place  # noqa: F401

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# What the host has at $f, and what the command makes of it.
WORK = {
    "write": ("echo base > $f", "echo inside > $f"),
    "over": ("echo base > $f", "echo inside > $f.t; mv $f.t $f"),
    "mode": ("echo base > $f", "chmod 600 $f"),
    "tagged": ("echo base > $f", "setfattr -n user.t -v 1 $f; echo inside >> $f"),
    "new": (":", "echo inside > $f"),
    "link": ("echo base > $f; echo other > $f.o", "ln -f $f.o $f"),
}
# What is no file: the host's, the command's; touched, changed.
OTHERS = {
    "link": ("ln -s base $f", "ln -sfn inside $f",
             {"touch": "touch -h $f", "again": "t=$(readlink $f); rm $f; ln -s $t $f",
              "rename": "mv $f $f.t; mv $f.t $f", "link": "ln -P $f $f.t; rm $f.t"},
             {"point": "ln -sfn host $f", "file": "rm $f; echo host > $f"}),
    "pipe": ("mkfifo $f", "rm $f; (umask 077; mkfifo $f)",
             {"touch": "touch $f", "chmod": "m=$(stat -c %a $f); chmod 606 $f; chmod $m $f",
              "again": "m=$(stat -c %a $f); rm $f; mkfifo -m $m $f"},
             {"mode": "chmod 611 $f", "acl": "setfacl -m u:nobody:r $f"}),
    "new": (":", "ln -s inside $f", {"touch": "touch -h $f"}, {"point": "ln -sfn host $f"}),
}
GONE = {"delete": ("echo base > $f", "rm $f")}
# With its mode and attributes, which it has by now.
SAME = {**TOUCH, "save": "cp --preserve=all $f $f.t; mv $f.t $f",
        "copy": "cp --preserve=all $f $f.t; rm $f; mv $f.t $f",
        "chmod": "m=$(stat -c %a $f); chmod 606 $f; chmod $m $f",
        "acl": "m=$(stat -c %a $f); setfacl -m u:nobody:r $f; setfacl -b $f; chmod $m $f"}
del SAME["sync"]
EDIT = {
    "write": "echo host > $f",
    "time": "touch -r $f $f.t; tr a-z A-Z < $f > $f.u; cat $f.u > $f; touch -r $f.t $f; rm $f.?",
    "over": "tr a-z A-Z < $f > $f.t; touch -r $f $f.t; mv $f.t $f",
    "mode": "chmod 611 $f",
    "attribute": "setfattr -n user.h -v 1 $f",
    "acl": "setfacl -m u:nobody:r $f",
}


def files(work, table):
    return {f"{w}-{t}": (*work[w], table[t]) for w in work for t in table}


def each(which, of):
    return "; ".join(f"f={name}; {does[which]}" for name, does in of.items())


def timeless(tree):
    return {n: {k: v for k, v in d.items() if k not in ("mtime", "links")}
            for n, d in plain(tree).items() if n}


def ran(stet, top, of):
    """Committed; what was there before."""
    shell(each(0, of), top)
    before = timeless(top)
    stet.sh(each(1, of), cwd=top).ok()
    commit(stet, top).ok()
    return before


def test_touched_after_the_commit(stet, place):
    of = files(WORK, SAME)
    before = ran(stet, place, of)
    done = timeless(place)
    shell(each(2, of), place)
    undo(stet, place).ok()
    assert timeless(place) == before
    redo(stet, place).ok()
    assert timeless(place) == done
    undo(stet, place).ok()
    assert timeless(place) == before


def test_touched_after_the_undo(stet, place):
    of = files({**WORK, **GONE}, SAME)
    before = ran(stet, place, of)
    done = timeless(place)
    undo(stet, place).ok()
    shell(each(2, {n: d for n, d in of.items() if not n.startswith("new")}), place)
    redo(stet, place).ok()
    assert timeless(place) == done
    undo(stet, place).ok()
    assert timeless(place) == before


def others(which):
    return {f"{kind}-{h}": (*row[:2], row[which][h]) for kind, row in OTHERS.items() for h in row[which]}


def test_touched_that_is_no_file(stet, place):
    of = others(2)
    before = ran(stet, place, of)
    done = timeless(place)
    shell(each(2, of), place)
    undo(stet, place).ok()
    assert timeless(place) == before
    shell(each(2, {n: d for n, d in of.items() if not n.startswith("new")}), place)
    redo(stet, place).ok()
    assert timeless(place) == done


def test_changed_that_is_no_file(stet, place):
    of, calm = others(3), {f"calm-{n}": d for n, d in others(2).items()}
    ran(stet, place, {**of, **calm})
    shell(each(2, {**of, **calm}), place)
    refused(stet, place, undo, of, set())


# Attributes are put back where they are: what else the host has done to the file stays.
KEPT = {"mode-time", "mode-attribute"}


def refused(stet, place, verb, of, kept):
    before = plain(place)
    r = verb(stet, place, "--json").ok(CONFLICT)
    assert {os.path.basename(c["path"]) for c in r.json()["error"]["conflicts"]} == set(of) - kept
    assert plain(place) == before


def test_changed_after_the_commit(stet, place):
    """Each is refused, and nothing else is, though touched beside them."""
    of, calm = files(WORK, EDIT), files(WORK, {"touch": "touch $f"})
    ran(stet, place, {**of, **calm})
    shell(each(2, {**of, **calm}), place)
    refused(stet, place, undo, of, KEPT)


def test_changed_after_the_undo(stet, place):
    work = {k: v for k, v in WORK.items() if k != "new"}
    of, calm = files(work, EDIT), files(work, {"touch": "touch $f"})
    ran(stet, place, {**of, **calm})
    undo(stet, place).ok()
    shell(each(2, {**of, **calm}), place)
    refused(stet, place, redo, of, KEPT | {"mode-acl"})


@pytest.mark.parametrize("how", ["touch d/s/f", "cat d/s/f > t; cat t > d/s/f; rm t", "chmod 600 d/f; chmod 644 d/f"])
def test_touched_in_a_new_directory(stet, work, how):
    stet.sh("mkdir -p d/s; echo 1 > d/f; echo 2 > d/s/f; setfattr -n user.t -v 1 d/f", cwd=work).ok()
    commit(stet, work).ok()
    shell(how, work)
    undo(stet, work).ok()
    assert not (work / "d").exists()
    redo(stet, work).ok()
    assert (work / "d/s/f").read_text() == "2\n"


def test_another_name_of_a_link_in_a_new_directory(stet, work):
    """One of its names is committed, and taken back: that is nobody's change of the others."""
    stet.sh("mkdir -p d e; ln -s x d/l; ln -P d/l e/l; mkfifo d/p; ln d/p e/p", cwd=work).ok()
    commit(stet, work, "d").ok()
    commit(stet, work, "e").ok()
    undo(stet, work).ok()
    undo(stet, work).ok()
    assert not (work / "d").exists() and not (work / "e").exists()
    redo(stet, work).ok()
    redo(stet, work).ok()
    assert os.readlink(work / "e/l") == "x"


@pytest.mark.parametrize("how", ["echo 3 > d/s/f", "echo 3 > d/s/g", "chmod 600 d/f", "touch d/s/f; echo 3 > d/f"])
def test_changed_in_a_new_directory(stet, work, how):
    stet.sh("mkdir -p d/s; echo 1 > d/f; echo 2 > d/s/f", cwd=work).ok()
    commit(stet, work).ok()
    shell(how, work)
    before = plain(work)
    assert names_conflict(undo(stet, work).ok(CONFLICT), "d")
    assert plain(work) == before


def test_there_and_back_by_git(stet, work):
    """Every file is another one afterwards, and none has changed."""
    git = "git -c user.name=t -c user.email=t@localhost"
    shell("git init -q .; for i in {1..150}; do echo $i > f$i; done; "
          f"git add .; {git} commit -qm 1", work)
    before = timeless(work)
    stet.sh("for i in {1..150}; do echo more >> f$i; done", cwd=work).ok()
    commit(stet, work).ok()
    stet.settle()
    shell(f"{git} stash -q; {git} stash pop -q", work)
    undo(stet, work).ok()
    after = timeless(work)
    assert {n: d for n, d in after.items() if not n.startswith(b".git")} == \
        {n: d for n, d in before.items() if not n.startswith(b".git")}
