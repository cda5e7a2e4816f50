# SPDX-License-Identifier: Apache-2.0
"""What changed on the host meanwhile is never overwritten unasked, and never made up."""
import mmap
import os
import subprocess

import pytest
from commitlib import (CONFLICT, begin, commit, end, names_conflict, plain, same_inodes, shell,
                       undo, wait_for_notes)
from stetlib import differences

# What the host has at "x" before all, and what the command makes of it.
KINDS = {
    "file": ("echo base > x", "echo inside > x"),
    "file, in place": ("printf '%0100d\\n' 1 > x", "printf zzz | dd of=x conv=notrunc status=none"),
    "file, deleted": ("echo base > x", "rm x"),
    "file, mode": ("echo base > x", "chmod 600 x"),
    "file, renamed over": ("echo base > x", "echo inside > y; mv y x"),
    "new file": (":", "echo inside > x"),
    "link": ("ln -s base x", "ln -sfn inside x"),
    "link, deleted": ("ln -s base x", "rm x"),
    "new link": (":", "ln -s inside x"),
    "directory, deleted": ("mkdir x; echo b > x/f", "rm -rf x"),
    "directory, replaced": ("mkdir x; echo b > x/f", "rm -rf x; mkdir x; echo n > x/n"),
    "directory, now a file": ("mkdir x; echo b > x/f", "rm -rf x; echo n > x"),
    "file, now a directory": ("echo base > x", "rm x; mkdir x; echo n > x/n"),
    "new directory": (":", "mkdir x; echo n > x/n"),
    "in a directory": ("mkdir x; echo b > x/f; echo c > x/g", "echo inside > x/f"),
    "new in a directory": ("mkdir x; echo b > x/f", "echo inside > x/n"),
    "deep": ("mkdir -p x/d/e; echo b > x/d/e/f", "echo inside > x/d/e/f"),
    "one of two": ("mkdir x z; echo b > x/f; echo c > x/g; echo z > z/f; echo z > z/g",
                   "echo inside > x/f; rm x/g"),
    "one of two, deep": ("mkdir -p x/d z/d; echo b > x/d/f; echo z > z/d/f", "rm x/d/f"),
}
FILES = "file|file, in place|file, deleted|file, mode|file, renamed over|file, now a directory"
DIRS = "directory, deleted|directory, replaced|directory, now a file"


def map_write(path):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[0:1] = b"M"
        m.flush()


# What the host does: the kinds it can do it to, and how.
EDITS = {
    "write": (FILES, "echo host > x"),
    "append": (FILES, "echo host >> x"),
    "same size": ("file, in place", "printf 2 | dd of=x bs=1 seek=50 conv=notrunc status=none"),
    "same size, old time": ("file, in place", "touch -r x t; printf 2 | dd of=x bs=1 seek=50 "
                            "conv=notrunc status=none; touch -r t x; rm t"),
    "mmap": (FILES, map_write),
    "rename over": (FILES, "echo host > .t; mv .t x"),
    "rename over, old time": (FILES, "echo host > .t; touch -r x .t; mv .t x"),
    "chmod": (FILES, "chmod 640 x"),
    "ACL": (FILES, "setfacl -m u:nobody:r x"),
    "attribute": (FILES, "setfattr -n user.host -v 1 x"),
    "delete": ("file|file, in place|file, mode|file, renamed over|file, now a directory|link|"
               "directory, replaced|directory, now a file", "rm -rf x"),
    "delete and make again": (FILES, "rm x; echo host > x"),
    "make": ("new file|new link|new directory", "echo host > x"),
    "make a link": ("new file|new link|new directory|" + FILES, "ln -sfn host x"),
    "make a directory": ("new file|new link", "mkdir x; echo h > x/h"),
    "make a fifo": ("new file|new directory", "mkfifo x"),
    "other target": ("link|link, deleted", "ln -sfn host x"),
    "link now a file": ("link|link, deleted", "rm x; echo host > x"),
    "add inside": (DIRS, "echo host > x/h"),
    "add a directory inside": (DIRS, "mkdir x/h"),
    "change inside": (DIRS, "echo host > x/f"),
    "now a link": (DIRS + "|in a directory|new in a directory|deep", "mv x x.old; ln -s x.old x"),
    "now a file": (DIRS + "|in a directory|new in a directory|deep", "rm -rf x; echo host > x"),
    "parent deleted": ("in a directory|deep", "rm -rf x"),
    "change the same": ("in a directory", "echo host > x/f"),
    "delete the same": ("in a directory", "rm x/f"),
    "middle deleted": ("deep", "rm -rf x/d"),
    "middle now a link": ("deep", "mv x/d x/old; ln -s old x/d"),
    "make the same name": ("new in a directory", "echo host > x/n"),
    "directories swapped": ("one of two|one of two, deep", "mv x x.old; mv z x"),
}
CASES = [(k, e) for e, (kinds, _) in EDITS.items() for k in KINDS if k in kinds.split("|")]
# Not a conflict on both sides: the same was done, or nothing that counts.
PEACE = {
    "touch": ("file|file, in place|file, deleted|file, mode|file, renamed over", "touch x"),
    "touch to the past": ("file|file, deleted", "touch -d 2001-01-01 x"),
    "rewritten the same": ("file|file, deleted", "cat x > .t; cat .t > x; rm .t"),
    "made again the same": ("file|file, deleted", "cp -p x .t; rm x; mv .t x"),
    "the same change": ("file|new file", "echo inside > x"),
    "the same deletion": ("file, deleted|link, deleted|directory, deleted", "rm -rf x"),
    "the same target": ("link|new link", "ln -sfn inside x"),
    "the same mode": ("file, mode", "chmod 600 x"),
    "the same in a directory": ("in a directory", "echo inside > x/f"),
    "beside it": ("*", "echo host > beside; mkdir dir; echo h > dir/h"),
    "inside, beside it": ("in a directory|new in a directory", "echo host > x/h; rm -f x/g"),
    "mode there and back": (FILES, "m=$(stat -c %a x); chmod 606 x; chmod $m x"),
    "attribute there and back": (FILES, "setfattr -n user.h -v 1 x; setfattr -x user.h x"),
    "renamed there and back": (FILES + "|link|link, deleted|" + DIRS, "mv x .t; mv .t x"),
    "linked for a moment": (FILES, "ln x .t; rm .t"),
    "link touched": ("link|link, deleted", "touch -h x"),
    "directory touched": (DIRS + "|in a directory", "touch x"),
    "there for a moment": (DIRS + "|in a directory", "echo h > x/h; rm x/h"),
    "touched inside": (DIRS + "|in a directory", "touch x/f"),
    "swapped for its copy": ("one of two|one of two, deep|in a directory",
                             "cp -a x .t; mv x .x; mv .t x; rm -r .x"),
    "read": ("*", "cat x >/dev/null 2>&1; ls -R . >/dev/null"),
}
QUIET = [(k, e) for e, (kinds, _) in PEACE.items() for k in KINDS
         if kinds == "*" or k in kinds.split("|")]


def edit(how, top):
    if callable(how):
        how(os.path.join(top, "x"))
    else:
        shell(how, top)


def ids(value):
    return value.replace(", ", "-").replace(" ", "_")


def prepare(work, kind):
    top = work / "c"
    top.mkdir()
    shell(KINDS[kind][0], top)
    return top


def refused(stet, work):
    """A commit is refused as a conflict, and nothing at all has changed."""
    before = same_inodes(work)
    r = commit(stet, work).ok(CONFLICT)
    assert names_conflict(r, "x"), repr(r)
    assert differences(before, same_inodes(work)) == []
    assert stet.transactions()[0]["state"] == "pending"
    return r


@pytest.mark.parametrize("kind,how", CASES, ids=ids)
def test_after_the_run(stet, work, kind, how):
    top = prepare(work, kind)
    stet.sh(f"cd c; {KINDS[kind][1]}", cwd=work).ok()
    edit(EDITS[how][1], top)
    refused(stet, work)


def objects_in(work, top):
    return [os.fsencode(os.path.relpath(os.path.join(d, n), work))
            for d, dirs, files in os.walk(top) for n in dirs + files]


# What is gone, and what came with a directory, has no time to tell by: only if what was there before
# was noted is that known.
TIMELESS = ("delete", "delete the same", "parent deleted", "middle deleted", "directories swapped")


@pytest.mark.parametrize("kind,how", CASES, ids=ids)
def test_during_the_run(stet, work, kind, how):
    """What was there at the end is not what the command saw."""
    top = prepare(work, kind)
    objects = objects_in(work, top)
    p = begin(stet, work, f"cd c; {KINDS[kind][1]}")
    if how in TIMELESS:
        wait_for_notes(stet, p, [o for o in objects if not o.startswith((b"c/z", b"c/x/g"))])
    edit(EDITS[how][1], top)
    end(p)
    refused(stet, work)


def test_deleted_too_soon(stet, work):
    """Deleted before anybody looked, and changed by the command: that comes, nothing is lost."""
    top = prepare(work, "file")
    p = stet.popen("run", "--quiet", "--", "bash", "-c",
                   "echo READY; read line; cd c; rm -f x; echo inside > x", cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    shell("rm x", top)
    end(p)
    before = same_inodes(work)
    commit(stet, work).ok()
    undo(stet, work).ok()
    assert differences(without_top(before), without_top(same_inodes(work))) == []


def is_peace(stet, work, kind, how):
    """The commit goes through, and the tree is what the command alone would have made of it."""
    top = work / "c"
    beside = plain(top).get(b"beside")
    commit(stet, work).ok()
    reference = work.parent / "reference"
    reference.mkdir()
    shell(f"{KINDS[kind][0]}; {KINDS[kind][1]}", reference)
    found, expected = plain(top), plain(reference)
    assert found.get(b"beside") == beside
    for name, d in expected.items():
        if name and not (how == "inside, beside it" and name == b"x/g"):
            assert {k: found[name].get(k) for k in ("type", "mode", "sha", "target")} == \
                {k: d.get(k) for k in ("type", "mode", "sha", "target")}, name
    assert set(expected) <= set(found) | {b"x/g"}
    if b"x" not in expected:
        assert b"x" not in found


@pytest.mark.parametrize("kind,how", QUIET, ids=ids)
def test_no_conflict(stet, work, kind, how):
    top = prepare(work, kind)
    stet.sh(f"cd c; {KINDS[kind][1]}", cwd=work).ok()
    edit(PEACE[how][1], top)
    is_peace(stet, work, kind, how)


def test_touched_at_the_last_moment(stet, work):
    """Just before the commit begins is not while it is under way."""
    wrong = []
    for i in range(20):
        d = work / f"d{i}"
        d.mkdir()
        (d / "f").write_text("host\n")
        stet.sh(f"rm -r d{i}; echo now > d{i}", cwd=work).ok()
        os.utime(d / "f")
        os.stat(d / "f")
        os.utime(d / "f")
        if commit(stet, work).rc:
            wrong.append(i)
            stet("rollback", cwd=work).ok()
    assert wrong == []


# Of these, what the command has changed is seen before the host touches it; see SECURITY.md.
SEEN = [(k, e) for k, e in QUIET if not k.startswith("new ")
        and e not in ("the same change", "the same deletion", "the same target", "the same mode", "beside it",
                      "the same in a directory", "inside, beside it")]


@pytest.mark.parametrize("kind,how", SEEN, ids=ids)
def test_no_conflict_during_the_run(stet, work, kind, how):
    """Touched while the command still runs, but after it has changed the same."""
    top = prepare(work, kind)
    objects = objects_in(work, top)
    p = begin(stet, work, f"cd c; {KINDS[kind][1]}")
    wait_for_notes(stet, p, [o for o in objects if not o.startswith((b"c/z", b"c/x/g"))])
    edit(PEACE[how][1], top)
    end(p)
    is_peace(stet, work, kind, how)


def test_in_the_tick_of_the_beginning(stet, work):
    """The host saves as fast as it can while transactions begin: none is missed."""
    x = work / "x"
    stop = work.parent / "stop"
    script = f"i=0; while [ ! -e {stop} ]; do i=$((i+1)); echo $i > {x}.t; mv {x}.t {x}; done"
    x.write_text("0\n")
    missed = 0
    for _ in range(15):
        p = stet.popen("run", "--quiet", "--", "bash", "-c", "echo inside > x", cwd=work)
        editor = shell_background(script)
        p.communicate(timeout=60)
        stop.touch()
        editor.wait(60)
        stop.unlink()
        last = x.read_text()
        r = commit(stet, work)
        if r.rc == 0:
            # It had seen the last save, or nothing was saved while it ran.
            missed += x.read_text() == "inside\n" and last != "0\n"
            undo(stet, work).ok()
        assert x.read_text() == last
        stet("rollback", cwd=work)
        x.write_text("0\n")
    assert missed == 0


def shell_background(script):
    return subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL)


def two_sides(stet, work):
    top = work / "c"
    top.mkdir()
    shell("for f in a b d/e d/f g/h g/i; do mkdir -p $(dirname $f); echo base > $f; done", top)
    stet.sh("cd c; echo inside > a; echo inside > b; echo inside > d/e; rm -rf g; "
            "echo n > new", cwd=work).ok()
    shell("echo host > a; echo host > b; echo host > d/e; echo host > g/h; echo host > new",
          top)
    commit(stet, work).ok(CONFLICT)
    return top


def without_top(tree):
    """The workspace's own directory is a layer's root: nobody's change."""
    return {k: v for k, v in tree.items() if k}


def test_ours(stet, work):
    top = two_sides(stet, work)
    before = same_inodes(work)
    commit(stet, work, ours=["c"]).ok()
    assert {n: (top / n).read_text() for n in ("a", "b", "d/e", "d/f", "new")} == {
        "a": "inside\n", "b": "inside\n", "d/e": "inside\n", "d/f": "base\n", "new": "n\n"}
    assert not (top / "g").exists()
    undo(stet, work).ok()
    assert differences(without_top(before), without_top(same_inodes(work))) == []


def test_theirs(stet, work):
    top = two_sides(stet, work)
    commit(stet, work, theirs=["c/a", "c/g", "c/new"], ours=["c/b", "c/d"]).ok()
    assert {n: (top / n).read_text() for n in ("a", "b", "d/e", "g/h", "new")} == {
        "a": "host\n", "b": "inside\n", "d/e": "inside\n", "g/h": "host\n", "new": "host\n"}
    assert not (top / "g" / "i").exists()


def test_theirs_speaks_of_conflicts_alone(stet, work):
    """All conflicts to the host: the rest is committed, and the other way round in an undo."""
    shell("echo base > a; echo base > b; mkdir d; echo base > d/c", work)
    stet.sh("echo inside > a; echo inside > b; rm -r d; mkdir n; echo n > n/n", cwd=work).ok()
    (work / "a").write_text("host\n")
    commit(stet, work, theirs=["."]).ok()
    assert {n: (work / n).read_text() for n in ("a", "b", "n/n")} == {
        "a": "host\n", "b": "inside\n", "n/n": "n\n"} and not (work / "d").exists()
    (work / "b").write_text("later\n")
    undo(stet, work).ok(CONFLICT)
    undo(stet, work, "--theirs", ".").ok()
    assert {n: (work / n).read_text() for n in ("a", "b", "d/c")} == {
        "a": "host\n", "b": "later\n", "d/c": "base\n"} and not (work / "n").exists()


def test_theirs_in_a_directory_that_goes(stet, work):
    """The host keeps one file; the directory around it cannot go, the rest does."""
    top = work / "c"
    top.mkdir()
    shell("mkdir -p g/s; echo base > g/h; echo base > g/i; echo base > g/s/t", top)
    stet.sh("rm -rf c/g", cwd=work).ok()
    (top / "g" / "h").write_text("host\n")
    commit(stet, work).ok(CONFLICT)
    commit(stet, work, theirs=["c/g/h"]).ok()
    assert (top / "g" / "h").read_text() == "host\n"


def test_some_decided_is_not_enough(stet, work):
    two_sides(stet, work)
    before = same_inodes(work)
    r = commit(stet, work, theirs=["c/a"], ours=["c/b"]).ok(CONFLICT)
    assert names_conflict(r, "d/e") and not names_conflict(r, "c/a")
    assert differences(before, same_inodes(work)) == []


def test_mode_of_a_directory(stet, work):
    """The host closes a directory in which the command works: it stays closed."""
    top = work / "c"
    top.mkdir()
    stet.sh("echo n > c/n", cwd=work).ok()
    top.chmod(0o700)
    commit(stet, work)
    assert top.stat().st_mode & 0o777 == 0o700


UNDO_EDITS = {
    "write": "echo host > a", "rename over": "echo host > t; mv t a", "chmod": "chmod 600 a",
    "delete": "rm a", "new, write": "echo host > new", "new, delete": "rm new",
    "in a new directory": "echo host > nd/f", "deep in it": "echo host > nd/s/t",
    "added to it": "echo host > nd/h", "added deep in it": "echo host > nd/s/h",
    "new directory moved": "mv nd nd2; ln -s nd2 nd", "deleted made again": "echo host > gone",
    "in a replaced directory": "echo host > rd/n",
    "mode": "chmod 640 m", "content of it": "echo host > m", "link": "ln -sfn host l",
}


@pytest.mark.parametrize("how", UNDO_EDITS, ids=ids)
def test_undo(stet, work, how):
    """After the commit the host is the user's again: undo does not take his work away."""
    top = work / "c"
    top.mkdir()
    shell("echo a > a; echo gone > gone; mkdir -p rd/s; echo o > rd/s/o; echo m > m; "
          "ln -s base l", top)
    stet.sh("cd c; echo inside > a; echo n > new; mkdir -p nd/s; echo f > nd/f; "
            "echo t > nd/s/t; rm gone; rm -rf rd; mkdir rd; echo n > rd/n; chmod 600 m; "
            "ln -sfn inside l", cwd=work).ok()
    commit(stet, work).ok()
    shell(UNDO_EDITS[how], top)
    before = same_inodes(work)
    undo(stet, work).ok(CONFLICT)
    assert differences(before, same_inodes(work)) == []
    assert stet.transactions()[0]["state"] == "committed"


def test_fresh_files_are_no_conflict(stet, work):
    """What was written in the instant before the run has not changed since."""
    for n in range(20):
        (work / "x").write_text(f"{n}\n")
        stet.sh("echo inside > x", cwd=work).ok()
        commit(stet, work).ok()


def test_undo_is_not_afraid_of_others(stet, work):
    """What the user does beside the committed paths stays, and hinders nothing."""
    top = work / "c"
    top.mkdir()
    shell("mkdir d r; echo a > d/a; echo b > d/b; echo o > r/o", top)
    stet.sh("echo inside > c/d/a; echo n > c/d/n; rm -rf c/r; mkdir c/r; echo n > c/r/n",
            cwd=work).ok()
    commit(stet, work).ok()
    shell("echo host > d/b; echo h > d/h; mkdir d/s; echo h > r/h", top)
    undo(stet, work).ok()
    assert {n: (top / "d" / n).read_text() for n in ("a", "b", "h")} == {
        "a": "a\n", "b": "host\n", "h": "h\n"}
    assert {n.name: n.read_text() for n in (top / "r").iterdir()} == {"o": "o\n", "h": "h\n"}
    assert not (top / "d" / "n").exists()


@pytest.mark.parametrize("host", ["rm f", "echo host > f", "rm f; mkdir f"])
def test_what_a_visit_was_the_first_to_change(stet, work, host):
    """It is noted like what the command changed: what the host does to it later is a conflict."""
    shell("echo base > f; echo g > g", work)
    stet.sh("echo 2 > g", cwd=work).ok()
    stet.settle()
    stet("explore", "t1", "--", "sh", "-c", "echo inside >> f", cwd=work).ok()
    stet.settle()
    shell(host, work)
    assert names_conflict(commit(stet, work).ok(CONFLICT), "f")
    # And what was merely touched is none.
    shell("rm -rf f; echo base > f; touch f g", work)
    commit(stet, work).ok()
    assert (work / "f").read_text() == "base\ninside\n"
