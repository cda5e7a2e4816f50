# SPDX-License-Identifier: Apache-2.0
"""What was committed once is committed again, after an undo or on top: what the host has done since to what
the first commit left, or its undo put back, is reported however old it looks. On three filesystems."""
import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, shell, undo
from stetlib import differences
from test_commit_touch import fixture_place  # noqa: F401

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

OLD = "; touch -d 2020-01-01 f g; sleep 0.05"
SIZES = {"small": "echo base > f; echo base > g" + OLD, "large": "head -c 5M /dev/zero > f; cp f g" + OLD}
# The host's edit leaves size and mtime what they were.
EDITS = {"attribute": "setfattr -n user.host -v 1 f", "acl": "setfacl -m u:daemon:r f; chmod 644 f",
         "content": "touch -r f t; printf H | dd of=f conv=notrunc status=none; touch -r t f; rm t"}
INSIDE = {"changed": "echo inside >> f", "deleted": "rm f", "saved": "cp g f.t; echo inside >> f.t; mv f.t f"}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("size", SIZES)
def test_after_an_undo(stet, place, size, edit, inside):
    shell(SIZES[size], place)
    stet.sh(INSIDE[inside], cwd=place).ok()
    for _ in range(2):
        commit(stet, place).ok()
        undo(stet, place).ok()
    shell(EDITS[edit], place)
    before = plain(place)
    assert names_conflict(commit(stet, place).ok(CONFLICT), "f")
    assert differences(before, plain(place)) == []


@pytest.mark.parametrize("later", ["echo later >> f", "rm f", "chmod 600 f"])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("size", SIZES)
def test_on_top_of_a_part(stet, place, size, edit, later):
    shell(SIZES[size], place)
    stet.sh("echo inside >> f; echo inside >> g; echo inside > n", cwd=place).ok()
    commit(stet, place, "f").ok()
    stet("explore", "-q", "--", "sh", "-ec", later, cwd=place).ok()
    shell(EDITS[edit], place)
    before = plain(place)
    assert names_conflict(commit(stet, place).ok(CONFLICT), "f")
    assert differences(before, plain(place)) == []


@pytest.mark.parametrize("size", SIZES)
def test_with_another_one_in_between(stet, place, size):
    """What that has taken away and put back is what it was."""
    shell(SIZES[size], place)
    stet.sh("echo inside >> f; rm g", cwd=place).ok()
    commit(stet, place).ok()
    undo(stet, place).ok()
    stet.sh("echo other >> f; echo other >> g", cwd=place).ok()
    commit(stet, place, tx="t2").ok()
    undo(stet, place, "t2").ok()
    commit(stet, place, tx="t1").ok()


@pytest.mark.parametrize("undos", [[[]], [["./f"], []]], ids=["all", "part"])
def test_what_was_decided_is_asked_again(stet, place, undos):
    """For the one commit, whichever list its undo had."""
    shell("echo base > f", place)
    stet.sh("echo inside > f; echo inside > n", cwd=place).ok()
    shell("echo host > f", place)
    commit(stet, place, ours=["f"]).ok()
    shell("echo host > other", place)
    for paths in undos:
        undo(stet, place, "t1", *paths).ok()
    before = plain(place)
    assert names_conflict(commit(stet, place).ok(CONFLICT), "f")
    assert differences(before, plain(place)) == []
