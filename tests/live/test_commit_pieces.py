# SPDX-License-Identifier: Apache-2.0
"""Every path of a transaction committed by itself, then the rest: the same as a plain run."""
import os

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, same_inodes, shell, undo
from stetlib import differences
from test_commit_several import contents, expected_after, unchanged, without_top

# What there is, and what the command does: directories that hide all of the host's below them.
HIDING = {
    "moved": ("mkdir -p M/sub s; echo 1 > M/sub/f; echo 2 > M/sub/g", "mv M s/M"),
    "moved, with directories": ("mkdir -p src/a src/b; echo 1 > src/a/f; echo 2 > src/a/g; "
                                "echo 3 > src/b/f", "mv src lib"),
    "moved, empty": ("mkdir -p M/M M/o s", "mv M s/M"),
    "moved, one in the other": ("mkdir -p A/x B/y; echo 1 > A/x/f; echo 2 > B/y/g",
                                "mv A B/y/A; mv B C"),
    "moved, and back in part": ("mkdir -p A/x; echo 1 > A/x/f; echo 2 > A/g",
                                "mv A B; mkdir A; mv B/x A/x; echo 3 > A/n"),
    "exchanged": ("mkdir a b; echo 1 > a/f; echo 2 > b/f; echo 3 > b/g",
                  "mv a t; mv b a; mv t b"),
    "moved over a deleted one": ("mkdir -p d/s o/s; echo 1 > d/s/f; echo 2 > d/k; echo 3 > o/s/f; "
                                 "echo 4 > o/s/n", "rm -rf d; mv o d"),
    "made anew": ("mkdir -p d/s; echo 1 > d/k; echo 2 > d/s/f",
                  "rm -rf d; mkdir -p d/s d/q; echo 2 > d/a; echo 3 > d/s/f; echo 4 > d/q/f"),
    "made anew, read-only": ("mkdir d; echo 1 > d/k", "rm -rf d; mkdir -p d/q; echo 2 > d/a; "
                             "echo 2 > d/b; chmod 555 d"),
    "made anew, without search": ("mkdir d; echo 1 > d/k", "rm -rf d; mkdir -p d/q; echo 2 > d/a; "
                                  "echo 2 > d/q/b; chmod 500 d/q; chmod 555 d"),
    "made anew in a read-only one": ("mkdir -p d/s; echo 1 > d/s/k; chmod 555 d",
                                     "chmod 755 d; rm -rf d/s; mkdir d/s; echo 2 > d/s/a; "
                                     "echo 3 > d/s/b; chmod 555 d/s d"),
    "moved, read-only": ("mkdir -p M/sub s; echo 1 > M/sub/f; echo 2 > M/sub/g; chmod 555 M/sub",
                         "chmod 755 M/sub; mv M s/M; chmod 555 s/M/sub s/M"),
    "new, read-only": ("", "mkdir -p d/q; echo 1 > d/a; echo 2 > d/q/b; echo 3 > d/q/c; "
                       "chmod 555 d/q d"),
}


def pieces(stet, work):
    """Every path that the transaction changed, as a name below the tree."""
    r = stet("diff", "--name-status", "--no-renames", "-z", cwd=work).ok()
    fields = r.out.split("\0")[:-1]
    return sorted(os.path.relpath(os.path.join(work, p), work) for p in fields[1::2])


def timeless(tree):
    out = without_top(plain(tree))
    for d in out.values():
        d.pop("mtime")
    return out


def wanted_after(piece, base, full):
    """A file that has become a directory makes room for what is chosen in that."""
    base = {n: v for n, v in base.items() if not piece.startswith(n + "/")}
    return expected_after([piece], base, full)


def one_piece(stet, work, piece, before, command, full, tree):
    os.makedirs(work)
    shell(before or ":", work)
    stet.sh(command, cwd=work).ok()
    base, states = contents(work), [same_inodes(work)]
    wanted = wanted_after(piece, base, full)
    commit(stet, work, piece).ok()
    assert contents(work) == wanted
    undo(stet, work).ok()
    unchanged(states[0], work)
    redo(stet, work).ok()
    assert contents(work) == wanted
    states.append(same_inodes(work))
    # Of a single change there is no rest.
    rest = stet.transactions()[0]["state"] == "pending"
    if rest:
        commit(stet, work).ok()
    assert contents(work) == full
    assert differences(tree, timeless(work)) == []
    for state in reversed(states if rest else states[:1]):
        undo(stet, work).ok()
        unchanged(state, work)
    redo(stet, work).ok()
    assert contents(work) == wanted
    if rest:
        redo(stet, work).ok()
    assert differences(tree, timeless(work)) == []


def every_piece(stet, home, before, command):
    reference = home / "reference"
    reference.mkdir()
    shell((before or ":") + "; " + command, reference)
    full, tree = contents(reference), timeless(reference)
    first = home / "first"
    first.mkdir()
    shell(before or ":", first)
    stet.sh(command, cwd=first).ok()
    names = pieces(stet, first)
    stet("rollback", cwd=first).ok()
    assert len(names) > 1
    for i, piece in enumerate(names):
        one_piece(stet, home / f"work{i}", piece, before, command, full, tree)
    shell("chmod -R u+rwx .", home)


@pytest.mark.parametrize("case", HIDING, ids=lambda v: v.replace(" ", "_"))
def test_what_hides_the_host(stet, home, case):
    """What a piece has put on the host is not taken for something that the command deleted."""
    every_piece(stet, home, *HIDING[case])


# The same of directories that have taken the place of something else: that makes room.
REPLACED = {
    "file": ("echo 1 > f", "rm f; mkdir f; echo 1 > f/in; echo 2 > f/in2"),
    "link": ("mkdir d; echo 0 > d/in; ln -s d f", "rm f; mkdir f; echo 1 > f/in; echo 2 > f/in2"),
    "dangling": ("ln -s none f", "rm f; mkdir -p f/s; echo 1 > f/s/in; echo 2 > f/in2"),
    "fifo": ("mkfifo f", "rm f; mkdir -p f/s; echo 1 > f/s/in; echo 2 > f/in2"),
    "one of two names": ("echo 1 > f; ln f g", "rm f; mkdir f; echo 1 > f/in; echo 2 > f/in2"),
    "read-only": ("echo 1 > f", "rm f; mkdir f; echo 1 > f/in; echo 2 > f/in2; chmod 555 f"),
    "below another": ("mkdir d; echo 1 > d/f; echo 2 > d/g",
                      "rm d/f; mkdir -p d/f/s; echo 1 > d/f/s/in; echo 2 > d/f/in2; rm d/g"),
}


@pytest.mark.parametrize("case", REPLACED, ids=lambda v: v.replace(" ", "_"))
def test_in_what_has_become_a_directory(stet, home, case):
    every_piece(stet, home, *REPLACED[case])


def became_a_directory(stet, work):
    shell("echo 1 > f", work)
    stet.sh("rm f; mkdir f; echo 1 > f/in; echo 2 > f/in2", cwd=work).ok()


def test_what_makes_room_was_changed(stet, work):
    """It was not chosen, but it would go: that of somebody else is a conflict."""
    became_a_directory(stet, work)
    (work / "f").write_text("his\n")
    was = same_inodes(work)
    assert names_conflict(commit(stet, work, "f/in").ok(CONFLICT), "f")
    unchanged(was, work)
    commit(stet, work, "f/in", ours=["f"]).ok()
    assert contents(work) == {"f/in": "1"}
    undo(stet, work).ok()
    unchanged(was, work)


# What the user puts into a directory that has replaced a file, and takes away again.
HIS = {"file": ("echo his > f/his", "rm f/his"), "empty": ("mkdir f/his", "rmdir f/his"),
       "deep": ("mkdir -p f/his/own; echo his > f/his/own/x", "rm -r f/his")}


@pytest.mark.parametrize("his", HIS)
def test_what_was_put_into_it_since(stet, work, his):
    """There is no room for the file any more: nothing is undone, and nothing of it is lost."""
    became_a_directory(stet, work)
    commit(stet, work, "f/in").ok()
    shell(HIS[his][0], work)
    was = same_inodes(work)
    assert names_conflict(undo(stet, work).ok(CONFLICT), "f")
    unchanged(was, work)
    shell(HIS[his][1], work)
    undo(stet, work).ok()
    assert contents(work) == {"f": "1"}


@pytest.mark.parametrize("his", HIS)
def test_whose_it_is_may_be_said(stet, work, his):
    """The very words of the refusal decide; either way nothing is lost."""
    def names():
        """The time of the directory is the commit's again once that is done again."""
        return {n: {k: v for k, v in d.items() if n != b"f" or k != "mtime"}
                for n, d in same_inodes(work).items()}

    became_a_directory(stet, work)
    commit(stet, work, "f/in").ok()
    shell(HIS[his][0], work)
    was = names()
    said = undo(stet, work).ok(CONFLICT).err
    for side in ("--theirs", "--ours"):
        assert f"stet undo t1 {side} f\n" in said
    undo(stet, work, "t1", "--theirs", "f").ok()
    assert (work / "f/his").exists() and not (work / "f/in").exists()
    redo(stet, work).ok()
    assert names() == was
    undo(stet, work, "t1", "--ours", "f").ok()
    assert contents(work) == {"f": "1"}
    redo(stet, work).ok()
    assert names() == was


@pytest.mark.parametrize("theirs", [False, True])
def test_somebody_in_the_way(stet, work, theirs):
    """The command has made the directory, the host meanwhile a file: a conflict."""
    stet.sh("mkdir d; echo 1 > d/a; echo 2 > d/b; echo 3 > c", cwd=work).ok()
    (work / "d").write_text("host\n")
    was = same_inodes(work)
    if theirs:
        commit(stet, work, "d/a", "c", theirs=["d"]).ok()
        assert contents(work) == {"c": "3", "d": "host"}
        return
    assert names_conflict(commit(stet, work, "d/a").ok(CONFLICT), "d")
    assert differences(was, same_inodes(work)) == []


def test_a_name_is_the_transactions(stet, work):
    """Where the host has a link and the transaction a directory, that is meant."""
    shell("mkdir d; echo 0 > d/x; ln -s d l", work)
    stet.sh("echo 1 > d/x; rm l; mkdir l; echo 2 > l/x", cwd=work).ok()
    stet("commit", "l/x", cwd=work).ok()
    assert contents(work) == {"l/x": "2", "d/x": "0"}
    undo(stet, work).ok()
    stet("commit", "d/x", cwd=work).ok()
    assert (work / "l").is_symlink() and contents(work) == {"d/x": "1"}
    stet("commit", "l", cwd=work).ok()
    assert contents(work) == {"l/x": "2", "d/x": "1"}


def test_a_link_of_the_hosts_is_followed(stet, work):
    """Where the transaction has left it."""
    shell("mkdir d; echo 0 > d/x; ln -s d l", work)
    stet.sh("echo 1 > d/x; echo 1 > d/y", cwd=work).ok()
    stet("commit", "l/x", cwd=work).ok()
    assert (work / "l").is_symlink() and contents(work) == {"d/x": "1"}
