# SPDX-License-Identifier: Apache-2.0
"""An operation that is refused changes nothing: not the host, not what undo and redo need, and not
which operations can be undone or redone. On three filesystems."""
import pytest
from commitlib import CONFLICT, commit, plain, redo, shell, undo
from test_commit_touch import fixture_place  # noqa: F401

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# What the command does to the host's file c/d/b.
WORK = {
    "write": "echo inside > c/d/b",
    "delete": "rm c/d/b",
    "new": "echo inside > c/d/n",
    "mode": "chmod 600 c/d/b",
    "attribute": "setfattr -n user.inside -v 1 c/d/b",
    "type": "rm c/d/b; mkdir c/d/b; echo inside > c/d/b/x",
    "link": "ln c/d/b c/d/n",
    "over a link": "echo o > c/d/o; ln c/d/o c/d/n; rm c/d/b; ln c/d/o c/d/b",
    "directory": "mkdir c/d/n; echo inside > c/d/n/x",
}
# What the host does to the directory around it, and how it takes that back.
LOST = {
    "renamed": ("mv c/d c/x", "mv c/x c/d"),
    "gone": ("mv c gone", "mv gone c"),
    "a file": ("mv c/d c/x; echo host > c/d", "rm c/d; mv c/x c/d"),
    "a link": ("mv c/d c/x; ln -s x c/d", "rm c/d; mv c/x c/d"),
}


def timeless(tree):
    return {n: {k: v for k, v in d.items() if k not in ("mtime", "links")} for n, d in plain(tree).items() if n}


def began(stet, top, work, part):
    """Before, and with the work committed."""
    shell("mkdir -p c/d; echo base > c/d/b; echo base > z", top)
    before = timeless(top)
    stet.sh(f"{work}; echo inside > z; echo rest > rest", cwd=top).ok()
    commit(stet, top, *(["c", "z"] if part else [])).ok()
    return before, timeless(top)


@pytest.mark.parametrize("part", [False, True], ids=["all", "part"])
@pytest.mark.parametrize("work", WORK)
def test_without_the_directory(stet, place, work, part):
    """Whatever the user has decided: what is to be undone has no directory any more."""
    before, done = began(stet, place, WORK[work], part)
    for lost, back in LOST.values():
        for ours in (["--ours", "."], []):
            shell(lost, place)
            now = timeless(place)
            assert undo(stet, place, *ours).rc == CONFLICT
            assert timeless(place) == now
            shell(back, place)
            assert timeless(place) == done
            stet("check").ok()
    undo(stet, place).ok()
    assert timeless(place) == before
    redo(stet, place).ok()
    assert timeless(place) == done
    stet("check").ok()
    undo(stet, place, "--ours", ".").ok()
    assert timeless(place) == before


def test_redo_without_the_directory(stet, place):
    before, done = began(stet, place, "; ".join((WORK["write"], WORK["new"])), False)
    undo(stet, place).ok()
    for lost, back in LOST.values():
        for ours in (["--ours", "."], []):
            shell(lost, place)
            now = timeless(place)
            assert redo(stet, place, *ours).rc == CONFLICT
            assert timeless(place) == now
            shell(back, place)
            assert timeless(place) == before
    redo(stet, place).ok()
    assert timeless(place) == done
    undo(stet, place).ok()
    assert timeless(place) == before


def test_original_that_was_put_aside(stet, place, home):
    """A store that a version of before has left with the original under another name."""
    before, done = began(stet, place, "; ".join((WORK["write"], "echo more > c/d/m; rm c/d/m")), True)
    tops = {str(home), str(place).rsplit("/", 1)[0]}
    moved = [shell(f"find {top} -path '*/old/*' -type f ! -name '*~' -exec sh -c 'grep -qx base {{}} && "
                   "mv {} {}~ && echo {}' ';'", place) for top in tops]
    assert any(moved)
    stet("check").ok()
    undo(stet, place).ok()
    assert timeless(place) == before
    redo(stet, place).ok()
    assert timeless(place) == done


def test_refused_commit_leaves_the_redo(stet, place):
    shell("echo base > a; echo base > b", place)
    stet.sh("echo inside > a; echo inside > b", cwd=place).ok()
    commit(stet, place, "a").ok()
    undo(stet, place, "a").ok()
    shell("echo host > b", place)
    assert commit(stet, place, "b").rc == CONFLICT
    redo(stet, place).ok()
    assert shell("cat a", place) == "inside\n"


def test_refused_commit_leaves_hard_links(stet, place):
    shell("mkdir d; echo base > b", place)
    stet.sh("echo inside > d/x; ln d/x d/y; ln d/x d/z; echo inside > b", cwd=place).ok()
    shell("echo host > b", place)
    assert commit(stet, place, "d/x", "b").rc == CONFLICT
    commit(stet, place, ours=["b"]).ok()
    assert shell("stat -c %h d/x", place) == "3\n"


def test_host_file_under_the_name_of_a_link(stet, place):
    """A redo puts it away for a link, and brings it back when another path makes it turn round."""
    shell("echo base > a; echo base > z", place)
    stet.sh("ln a n; echo inside > z", cwd=place).ok()
    commit(stet, place).ok()
    undo(stet, place).ok()
    shell("echo host > n", place)
    redo(stet, place, "--ours", "n").ok()
    undo(stet, place).ok()
    assert shell("cat n", place) == "host\n"
