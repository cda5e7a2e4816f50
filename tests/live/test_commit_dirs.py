# SPDX-License-Identifier: Apache-2.0
"""Attributes of directories at a commit: what others have given one is theirs, and one that is made for
a part has the command's own from the beginning. On three filesystems."""
import os

import pytest
from commitlib import CONFLICT, commit, plain, redo, shell, undo
from stetlib import differences
from test_commit_identity import named, refused
from test_commit_touch import fixture_place  # noqa: F401
from test_undo_attributes import given

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# What the command gives the directory d; what somebody else gives it when that is undone.
INSIDE = {
    "attribute": "setfattr -n user.inside -v 1 d",
    "acl": "setfacl -m u:$(id -u):rwx d",
    "default acl": "setfacl -d -m u:$(id -u):rwx d",
}
OTHER = {
    "attribute": "setfattr -n user.other -v 1 d",
    "the same attribute": "setfattr -n user.inside -v other d",
    "acl": "setfacl -m g:$(id -g):rwx d",
    "default acl": "setfacl -d -m g:$(id -g):rx d",
}
BASE = "mkdir d; echo base > d/f; setfattr -n user.base -v 1 d"


@pytest.mark.parametrize("who", ["host", "transaction", "transaction, undone"])
@pytest.mark.parametrize("gives", OTHER)
@pytest.mark.parametrize("does", INSIDE)
def test_given_after_the_undo(stet, place, does, gives, who):
    shell(BASE, place)
    stet.sh(INSIDE[does], cwd=place, opts=("--name", "mine")).ok()
    commit(stet, place, tx="mine").ok()
    undo(stet, place, "mine").ok()
    if who == "host":
        shell(OTHER[gives], place)
    else:
        stet.sh(OTHER[gives], cwd=place, opts=("--name", "other")).ok()
        commit(stet, place, tx="other").ok()
    if who.endswith("undone"):
        undo(stet, place, "other").ok()
        commit(stet, place, tx="mine").ok()
        return
    before = plain(place)
    refused(place, stet("commit", "mine", "--accept-risky", "--json", cwd=place), ["d"])
    assert plain(place) == before
    commit(stet, place, tx="mine", theirs=["d"]).ok()
    assert given(place, ["d"]) == {"d": {k: before[b"d"][k] for k in ("mode", "xattrs", "uid", "gid")}}


def test_given_to_what_a_fork_knows(stet, place):
    """It knows what its origin knew of the attributes, and so does a fork of the fork."""
    shell(BASE, place)
    stet.sh(INSIDE["attribute"] + "; echo n > n", cwd=place, opts=("--name", "mine")).ok()
    commit(stet, place, tx="mine").ok()
    undo(stet, place, "mine").ok()
    stet("fork", "mine", "--name", "two", cwd=place).ok()
    stet("fork", "two", "--name", "three", cwd=place).ok()
    shell(OTHER["attribute"], place)
    for name in ("two", "three"):
        assert "d" in commit(stet, place, tx=name).ok(CONFLICT).err
    shell("setfattr -x user.other d", place)
    for name in ("three", "two", "mine"):
        commit(stet, place, tx=name).ok()
        undo(stet, place, name).ok()


def test_there_and_back_again(stet, place):
    """The order in which a filesystem lists attributes depends on their past, and says nothing."""
    shell(BASE + "; setfattr -n user.a -v 1 d; setfattr -n user.z -v 1 d", place)
    stet.sh("setfattr -x user.a d; setfattr -n user.m -v 1 d; setfattr -n user.z -v 2 d", cwd=place).ok()
    base = plain(place)
    for _ in range(3):
        commit(stet, place).ok()
        undo(stet, place).ok()
        assert differences(base, plain(place)) == []
        redo(stet, place).ok()
        undo(stet, place).ok()
        shell("for n in a z base; do setfattr -x user.$n d; setfattr -n user.$n -v 1 d; done", place)


# Of a new directory d, in which x is chosen and y is not.
MADE = named({
    "mode": "chmod 700 $f",
    "closed to its owner": "chmod 555 $f",
    "attribute": "setfattr -n user.inside -v 1 $f",
    "acl": "setfacl -m u:$(id -u):rwx $f",
    "acl, no group": "setfacl -m u:$(id -u):rwx,g::- $f",
    "narrow mask": "setfacl -m u:$(id -u):rwx,m::r $f",
    "default acl": "setfacl -m d:u:$(id -u):rwx $f",
    "setgid and acl": "chmod g+s $f; setfacl -m u:$(id -u):rwx,d:g:$(id -g):rx $f",
})
AROUND = {"plain": ":", "default acl around": "setfacl -d -m u:$(id -u):rwx,g::rwx .", "setgid around": "chmod g+s ."}


@pytest.mark.parametrize("around", AROUND)
def test_made_for_a_part(stet, place, around):
    shell(AROUND[around], place)
    before = plain(place)
    script = "; ".join(f"f={n}/d; mkdir -p $f; echo x > $f/x; echo y > $f/y; {how}" for n, how in MADE.items())
    stet.sh(script, cwd=place).ok()
    dirs = [*MADE, *[f"{n}/d" for n in MADE]]
    commit(stet, place, *[f"{n}/d/x" for n in MADE]).ok()
    part = given(place, dirs)
    undo(stet, place).ok()
    assert differences(before, plain(place)) == []
    redo(stet, place).ok()
    assert given(place, dirs) == part
    undo(stet, place).ok()
    commit(stet, place).ok()
    full = given(place, dirs)
    assert part == full
    undo(stet, place).ok()
    # In the place of something else.
    stet("rollback", cwd=place).ok()
    shell("; ".join(f"mkdir {n}; echo old > {n}/d" for n in MADE), place)
    stet.sh("; ".join(f"f={n}/d; rm $f; mkdir $f; echo x > $f/x; echo y > $f/y; {how}" for n, how in MADE.items()),
            cwd=place).ok()
    before = plain(place)
    commit(stet, place, *[f"{n}/d/x" for n in MADE]).ok()
    part = given(place, dirs[len(MADE):])
    undo(stet, place).ok()
    assert differences(before, plain(place)) == []
    commit(stet, place).ok()
    assert part == given(place, dirs[len(MADE):])
    shell("chmod -R u+rwX .", place)


@pytest.mark.parametrize("gives", ["attribute", "acl", "default acl"])
@pytest.mark.parametrize("parts", [["d/x"], ["d/x", "d/y"]], ids=["one", "two"])
def test_given_to_what_was_made_for_a_part(stet, place, parts, gives):
    stet.sh("mkdir d; setfattr -n user.inside -v 1 d; for n in x y z; do echo $n > d/$n; done", cwd=place).ok()
    for part in parts:
        commit(stet, place, part).ok()
    shell(OTHER[gives], place)
    before = plain(place)
    refused(place, stet("commit", "--json", cwd=place), ["d"])
    assert plain(place) == before
    commit(stet, place, theirs=["d"]).ok()
    assert given(place, ["d"]) == {"d": {k: before[b"d"][k] for k in ("mode", "xattrs", "uid", "gid")}}
    assert sorted(os.listdir(f"{place}/d")) == [os.path.basename(p) for p in parts]
