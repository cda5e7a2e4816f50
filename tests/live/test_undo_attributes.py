# SPDX-License-Identifier: Apache-2.0
"""Attributes that the host has given a directory since are the host's: an undo or redo leaves what it
does not change itself, and asks about the rest. On three filesystems."""
import os
import stat
import time

import pytest
from commitlib import CONFLICT, begin, commit, end, plain, redo, shell, undo
from stetlib import differences
from test_commit_identity import named, refused
from test_commit_touch import fixture_place  # noqa: F401
from test_undo_touch import each, timeless

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# What the command does in the host's directory $f, or to it without touching what the host changes.
INSIDE = {
    "write": "echo inside > $f/x",
    "new": "echo inside > $f/n",
    "delete": "rm $f/x",
    "deep": "rm $f/s/x; mkdir $f/s/d",
}
# What the host gives the directory; and nothing is to become of it.
GIVEN = {
    "mode": "chmod 700 $f",
    "wider": "chmod 777 $f",
    "attribute": "setfattr -n user.host -v 1 $f",
    "acl": "setfacl -m u:nobody:rx $f",
    "default acl": "setfacl -d -m u:nobody:rx $f",
}
BASE = "mkdir -p $f/s; echo base > $f/x; echo base > $f/s/x; chmod 755 $f; setfattr -n user.base -v 1 $f"
KEPT = named({f"{w}-{g}": (BASE, INSIDE[w], GIVEN[g]) for w in INSIDE for g in GIVEN})


def given(place, names):
    """The directories alone: their modes and attributes."""
    tree = plain(place)
    return {n: {k: v for k, v in tree[n.encode()].items() if k in ("mode", "xattrs", "uid", "gid")} for n in names}


def test_of_a_directory_around(stet, place):
    shell(each(0, KEPT), place)
    stet.sh(each(1, KEPT), cwd=place).ok()
    commit(stet, place).ok()
    for verb in (undo, redo, undo):
        shell(each(2, KEPT), place)
        before = given(place, KEPT)
        verb(stet, place).ok()
        assert given(place, KEPT) == before
        shell("; ".join(f"chmod 755 {n}; setfacl -b {n}; setfattr -x user.host {n} 2> /dev/null || :" for n in KEPT),
              place)


# The command sets something itself: what the host sets besides stays, and of the same the user decides.
OWN = {
    "mode": "chmod 711 $f",
    "attribute": "setfattr -n user.inside -v 1 $f",
    "changed attribute": "setfattr -n user.base -v 2 $f",
    "attribute gone": "setfattr -x user.base $f",
}
OTHER = {"attribute": "setfattr -n user.host -v 1 $f"}
SAME = {"mode": "chmod 700 $f", "attribute": "setfattr -n user.inside -v 2 $f",
        "changed attribute": "setfattr -n user.base -v 3 $f", "attribute gone": "setfattr -n user.base -v 3 $f"}


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_besides_what_the_command_has_set(stet, place, kind):
    base = BASE if kind == "directory" else "echo base > $f; chmod 755 $f; setfattr -n user.base -v 1 $f"
    of = named({f"{w}-{g}": (base, OWN[w], OTHER[g]) for w in OWN for g in OTHER})
    shell(each(0, of), place)
    before = given(place, of)
    stet.sh(each(1, of), cwd=place).ok()
    commit(stet, place).ok()
    done = given(place, of)
    shell(each(2, of), place)
    undo(stet, place).ok()
    assert shell(f"getfattr --absolute-names -n user.host --only-values {' '.join(of)}", place) == "1" * len(of)
    shell("; ".join(f"setfattr -x user.host {n}" for n in of), place)
    assert given(place, of) == before
    shell(each(2, of), place)
    redo(stet, place).ok()
    assert shell(f"getfattr --absolute-names -n user.host --only-values {' '.join(of)}", place) == "1" * len(of)
    shell("; ".join(f"setfattr -x user.host {n}" for n in of), place)
    assert given(place, of) == done


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_the_same_as_the_command_has_set(stet, place, kind):
    base = BASE if kind == "directory" else "echo base > $f; chmod 755 $f; setfattr -n user.base -v 1 $f"
    of = named({w: (base, OWN[w], SAME[w]) for w in OWN})
    shell(each(0, of), place)
    stet.sh(each(1, of), cwd=place).ok()
    commit(stet, place).ok()
    shell(each(2, of), place)
    before = plain(place)
    refused(place, undo(stet, place, "--json"), of)
    assert plain(place) == before
    shell(each(1, {n: (0, {"attribute_gone": ":"}.get(n, does)) for n, (_, does, _) in of.items()}), place)
    shell("setfattr -x user.base attribute_gone", place)
    undo(stet, place).ok()
    shell(each(2, of), place)
    before = plain(place)
    refused(place, redo(stet, place, "--json"), of)
    assert plain(place) == before
    redo(stet, place, *[a for n in of for a in ("--ours", f"{place}/{n}")]).ok()


# A directory goes as a whole, or becomes something else.
GOES = {"deleted": "rm -r $f", "moved": "mv $f $f.n", "file": "rm -r $f; echo inside > $f"}
WHERE = {"it": "$f", "below": "$f/s"}


@pytest.mark.parametrize("when", ["commit", "redo"])
def test_of_a_directory_that_is_to_go(stet, place, when):
    of = named({f"{w}-{g}-{at}": (BASE, GOES[w], GIVEN[g].replace("$f", WHERE[at]))
                for w in GOES for g in GIVEN for at in WHERE})
    calm = named({f"calm-{w}": (BASE, GOES[w], "chmod 700 $f; chmod 755 $f; setfattr -n user.t -v 1 $f/s; "
                                "setfattr -x user.t $f/s; echo > $f/t; rm $f/t") for w in GOES})
    both = {**of, **(calm if when == "commit" else {})}
    shell(each(0, both), place)
    stet.sh(each(1, both), cwd=place).ok()
    stet.settle()
    if when == "redo":
        commit(stet, place).ok()
        undo(stet, place).ok()
    shell(each(2, both), place)
    before = plain(place)
    refused(place, {"commit": lambda: commit(stet, place, opts=["--json"]),
                    "redo": lambda: redo(stet, place, "--json")}[when](), of)
    assert plain(place) == before


def test_after_a_part_was_committed(stet, place):
    """What the first commit found in the directory was the host's: the second does not take it for its own."""
    of = named({f"{w}-{g}": (BASE, f"echo inside > $f/n; {GOES[w]}" if w == "deleted" else "echo inside > $f/n; rm $f/x",
                             GIVEN[g]) for w in ("deleted",) for g in GIVEN})
    shell(each(0, of), place)
    stet.sh("; ".join(f"echo inside > {n}/n; echo inside > {n}/x" for n in of), cwd=place).ok()
    shell(each(2, of), place)
    commit(stet, place, *[f"{n}/n" for n in of]).ok()
    stet("explore", "t1", "--", "rm", "-r", *of, cwd=place).ok()
    before = plain(place)
    refused(place, commit(stet, place, opts=["--json"]), of)
    assert plain(place) == before


def times(place):
    return {n: d["mtime"] for n, d in plain(place).items() if n}


@pytest.mark.parametrize("verb", ["commit", "undo", "redo"])
def test_what_is_refused_half_way_leaves_everything(stet, place, verb):
    """Somebody has a file open for writing, which is seen only in the step itself."""
    shell("mkdir -p a/s b z; for d in a a/s b z; do echo base > $d/f; echo base > $d/g; done; "
          "find . -exec touch -d 2001-01-01 {} +", place)
    stet.sh("echo inside > a/n; echo inside > a/f; rm a/s/f; rm -r b; chmod 711 a/s; echo inside > z/f", cwd=place).ok()
    does = {"commit": commit, "undo": undo, "redo": redo}
    for before in {"commit": [], "undo": ["commit"], "redo": ["commit", "undo"]}[verb]:
        does[before](stet, place).ok()
    stet.settle()
    # What the host does besides, in the same directories.
    shell("echo host > a/h; echo host > a/s/h; echo host > z/h", place)
    time.sleep(0.02)
    shell("rm z/h", place)
    before, when = plain(place), times(place)
    with open(f"{place}/z/f", "r+", encoding="ascii"):
        does[verb](stet, place).ok(CONFLICT)
    assert times(place) == when
    assert plain(place) == before
    does[verb](stet, place).ok()
    assert os.path.exists(f"{place}/a/h") and os.path.exists(f"{place}/a/s/h")
    # That they have changed stays to be seen.
    after = times(place)
    assert after[b"a"] >= when[b"a"] and after[b"a/s"] >= when[b"a/s"]


ATTRIBUTES = {"mode": "chmod 700 {}", "attribute": "setfattr -n user.inside -v 1 {}"}


@pytest.mark.parametrize("what", ATTRIBUTES)
def test_what_was_undone_before_is_not_done_again(stet, place, what):
    """The attributes of a directory, taken back by themselves; then the rest, there and back."""
    shell("mkdir d; echo base > d/f", place)
    before = given(place, ["d"])
    stet.sh(f"{ATTRIBUTES[what].format('d')}; echo inside > d/f; echo inside > n", cwd=place).ok()
    commit(stet, place).ok()
    undo(stet, place, "t1", "d").ok()
    for verb in (undo, redo, undo):
        verb(stet, place).ok()
        assert given(place, ["d"]) == before


def test_what_the_host_has_taken_back_itself(stet, place):
    """Then the undo does nothing there, nor has its redo anything to do."""
    shell("mkdir d e; echo base > d/f", place)
    stet.sh("chmod 700 d; setfattr -n user.inside -v 1 e; echo inside > n", cwd=place).ok()
    commit(stet, place).ok()
    shell("chmod 755 d; setfattr -x user.inside e", place)
    before = given(place, ["d", "e"])
    for verb in (undo, redo):
        verb(stet, place).ok()
        assert given(place, ["d", "e"]) == before


@pytest.mark.parametrize("how", ["chmod 711 d", "setfattr -n user.host -v 1 d"])
def test_before_a_second_commit(stet, place, how):
    """The first one's undo has been at the directory since: that is no excuse."""
    shell("mkdir d; echo base > d/f", place)
    stet.sh("chmod 700 d; echo inside > d/f", cwd=place).ok()
    commit(stet, place).ok()
    undo(stet, place).ok()
    commit(stet, place).ok()
    undo(stet, place).ok()
    shell(how, place)
    before = plain(place)
    refused(place, commit(stet, place, opts=["--json"]), ["d"])
    assert plain(place) == before


def test_given_while_the_command_runs(stet, place):
    """A part that is committed does not make the host's mode ours."""
    shell("mkdir d; chmod 755 d; echo base > d/f; echo base > d/g", place)
    p = begin(stet, place, "echo inside > d/f; echo inside > d/n")
    shell("chmod 711 d", place)
    end(p)
    commit(stet, place, "d/n").ok()
    before = plain(place)
    r = commit(stet, place, opts=["--json"])
    assert given(place, ["d"])["d"]["mode"] & 0o7777 == 0o711, r
    assert r.rc == 0 or plain(place) == before


@pytest.mark.parametrize("mode", ["600", "602", "400", "200", "100", "000"])
def test_of_one_that_its_owner_cannot_enter(stet, place, mode):
    """The command leaves the directories so; what it did in them is taken back and done again."""
    shell("mkdir -p d/s; echo base > d/f; echo base > d/g; echo base > d/s/f", place)
    before = plain(place)
    stet.sh(f"echo inside > d/f; rm d/g; echo inside > d/n; rm d/s/f; chmod {mode} d/s d", cwd=place).ok()
    commit(stet, place).ok()
    for verb in (undo, redo, undo):
        verb(stet, place).ok()
    assert differences(before, plain(place)) == []


def test_of_a_directory_that_a_part_needed(stet, work):
    """It goes with the undo of the part, unless the host has given it another mode."""
    stet.sh("mkdir n; echo 1 > n/1; echo 2 > n/2", cwd=work).ok()
    for args in (["commit", "n/1"], ["undo"], ["redo"]):
        stet(*args, cwd=work).ok()
    os.chmod(work / "n", 0o711)
    assert "n  was changed on the host after the commit" in stet("undo", cwd=work).ok(CONFLICT).err
    assert stat.S_IMODE(os.stat(work / "n").st_mode) == 0o711 and (work / "n/1").exists()
    stet("undo", "--ours", "n", cwd=work).ok()
    assert not (work / "n").exists()
