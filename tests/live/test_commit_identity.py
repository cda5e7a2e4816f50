# SPDX-License-Identifier: Apache-2.0
"""Who lies at a path comes before when it was changed: what is older than the transaction, and was
not there, or was another, is somebody's work all the same. On three filesystems."""
import ctypes
import os
import shutil

import pytest
from commitlib import CONFLICT, begin, commit, end, plain, redo, shell, undo
from test_commit_touch import fixture_place  # noqa: F401
from test_undo_touch import each, timeless

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True


def exchange(top, pairs):
    """What an editor may do that saves by renameat2(): on XFS it leaves no time on a file."""
    libc = ctypes.CDLL(None, use_errno=True)
    for a, b in pairs:
        assert libc.renameat2(-100, os.fsencode(f"{top}/{a}"), -100, os.fsencode(f"{top}/{b}"), 2) == 0, \
            os.strerror(ctypes.get_errno())


def top_of(top, path):
    return os.path.relpath(path, top).split("/")[0]


def refused(place, r, names):
    """Each of them, and nothing else, by the first part of its path."""
    assert {top_of(place, c["path"]) for c in r.ok(CONFLICT).json()["error"]["conflicts"]} == set(names)


def named(rows):
    return {n.replace(" ", "_").replace(",", ""): row for n, row in rows.items()}


# What the host has at $f; what the first transaction makes of it, and what the second.
TWO = named({
    "write": ("echo base > $f", "echo one > $f", "echo two > $f"),
    "over": ("echo base > $f", "echo one > $f.t; mv $f.t $f", "echo two > $f.t; mv $f.t $f"),
    "delete": ("echo base > $f", "echo one > $f", "rm $f"),
    "mode": ("echo base > $f", "echo one > $f", "chmod 600 $f"),
    "link": ("ln -s base $f", "ln -sfn one $f", "ln -sfn two $f"),
    "new": (":", "echo one > $f", "echo two > $f"),
    "in a directory": ("mkdir $f; echo base > $f/x", "echo one > $f/x", "echo two > $f/x"),
    "in a directory, deleted": ("mkdir $f; echo base > $f/x", "echo one > $f/x", "rm -r $f"),
    "new directory": (":", "mkdir $f; echo one > $f/x", "mkdir $f; echo two > $f/x"),
    "new directory, deep": (":", "mkdir -p $f/s/t; echo one > $f/s/t/x", "mkdir -p $f/s/t; echo two > $f/s/t/x"),
    "replaced directory": ("mkdir $f; echo base > $f/x", "rm -r $f; mkdir $f; echo one > $f/x",
                           "echo two > $f/x"),
    "replaced, replaced": ("mkdir $f; echo base > $f/x", "rm -r $f; mkdir $f; echo one > $f/x",
                           "rm -r $f; mkdir $f; echo two > $f/x"),
    "file, directory": ("echo base > $f", "rm $f; mkdir $f; echo one > $f/x", "echo two > $f"),
})


def second_after(stet, place, of):
    """The second runs when the first has ended, and before that is committed."""
    stet.sh(each(1, of), cwd=place).ok()
    stet.sh(each(2, of), cwd=place).ok()
    commit(stet, place, tx="t1").ok()


def second_before(stet, place, of):
    stet.sh(each(2, of), cwd=place).ok()
    stet.sh(each(1, of), cwd=place).ok()
    commit(stet, place, tx="t2").ok()


def second_meanwhile(stet, place, of):
    """The first is committed while the second still runs."""
    stet.sh(each(1, of), cwd=place).ok()
    p = begin(stet, place, each(2, of))
    commit(stet, place, tx="t1").ok()
    end(p)


ORDERS = {"after": (second_after, "t2"), "before": (second_before, "t1"), "meanwhile": (second_meanwhile, "t2")}


@pytest.mark.parametrize("order", ORDERS)
def test_two_transactions(stet, place, order):
    """The second commit never overwrites what the first one has committed."""
    play, second = ORDERS[order]
    shell(each(0, TWO), place)
    play(stet, place, TWO)
    before = plain(place)
    refused(place, commit(stet, place, tx=second, opts=["--json"]), TWO)
    assert plain(place) == before


def test_two_transactions_beside_each_other(stet, place):
    """In the same directories, but never at the same names: nobody is in anybody's way."""
    shell("mkdir -p d/s; for i in 1 2 3 4; do echo base > d/f$i; echo base > d/s/g$i; echo base > r$i; done",
          place)
    stet.sh("echo one > d/f1; rm d/s/g1; echo one > d/n1; mkdir e1; echo one > e1/f; chmod 600 r1", cwd=place).ok()
    stet.sh("echo two > d/f2; rm d/s/g2; echo two > d/n2; mkdir e2; echo two > e2/f; chmod 600 r2; "
            "echo t > r3.t; mv r3.t r3; mv d/f4 d/f5; ln d/f3 d/f6", cwd=place).ok()
    commit(stet, place, tx="t1").ok()
    commit(stet, place, "d", tx="t2").ok()
    commit(stet, place, tx="t2").ok()
    both = timeless(place)
    for _ in range(2):
        undo(stet, place, "t2").ok()
        undo(stet, place, "t2").ok()
        undo(stet, place, "t1").ok()
        redo(stet, place, "t1").ok()
        redo(stet, place, "t2").ok()
        redo(stet, place, "t2").ok()
        assert timeless(place) == both


# The command's work on $f, while the host has an older file in $f.o, which it exchanges for it.
EXCHANGED = named({
    "write": ("echo base > $f", "echo inside > $f"),
    "over": ("echo base > $f", "echo inside > $f.t; mv $f.t $f"),
    "delete": ("echo base > $f", "rm $f"),
    "mode": ("echo base > $f", "chmod 600 $f"),
    "link": ("ln -s base $f", "ln -sfn inside $f"),
})
OLDER = {n: (f"{row[0]}; echo other > $f.o", *row[1:]) for n, row in EXCHANGED.items()}


def exchange_all(place):
    exchange(place, [(n, f"{n}.o") for n in OLDER])


def test_the_host_exchanges_after_the_run(stet, place):
    shell(each(0, OLDER), place)
    stet.sh(each(1, OLDER), cwd=place).ok()
    exchange_all(place)
    before = plain(place)
    refused(place, commit(stet, place, opts=["--json"]), OLDER)
    assert plain(place) == before


def test_the_host_exchanges_after_the_commit(stet, place):
    shell(each(0, OLDER), place)
    stet.sh(each(1, OLDER), cwd=place).ok()
    commit(stet, place).ok()
    gone = {"delete"}
    exchange(place, [(n, f"{n}.o") for n in OLDER if n not in gone])
    shell("; ".join(f"mv {n}.o {n}" for n in gone), place)
    before = plain(place)
    refused(place, undo(stet, place, "--json"), OLDER)
    assert plain(place) == before


def test_the_host_exchanges_after_the_undo(stet, place):
    shell(each(0, OLDER), place)
    stet.sh(each(1, OLDER), cwd=place).ok()
    commit(stet, place).ok()
    undo(stet, place).ok()
    exchange_all(place)
    before = plain(place)
    refused(place, redo(stet, place, "--json"), OLDER)
    assert plain(place) == before


# What the host has at $f, and what the command makes there.
MADE = {
    "new": (":", "mkdir $f; echo inside > $f/x"),
    "new, deep": (":", "mkdir -p $f/s/t; echo inside > $f/s/t/x"),
    "replaced": ("mkdir $f; echo base > $f/x", "rm -r $f; mkdir $f; echo inside > $f/n"),
    "deleted": ("mkdir $f; echo base > $f/x", "rm -r $f"),
    "written": ("mkdir $f; echo base > $f/x", "echo inside > $f/x"),
    "written, deep": ("mkdir -p $f/s/t; echo base > $f/s/t/x", "echo inside > $f/s/t/x"),
    "file": (":", "echo inside > $f"),
}
# A directory of the host's, which is older, comes there.
COME = {
    "moved": "rm -rf $f; mv $f.p $f",
    "put aside": "[ ! -e $f ] || mv $f $f.old; mv $f.p $f",
    "moved above": "mkdir q.$f; mv $f.p q.$f/p; rm -rf $f; mv q.$f/p $f; rmdir q.$f",
}
PREPARED = "mkdir -p $f.p/s/t; echo prepared > $f.p/x; echo prepared > $f.p/s/t/x"
APPEARS = named({f"{m}-{c}": (f"{PREPARED}; {MADE[m][0]}", MADE[m][1], COME[c]) for m in MADE for c in COME})


def all_refused(stet, place, cases):
    """What the host has, what the command does, what the host does then: a conflict each, and nothing moves."""
    shell(each(0, cases), place)
    stet.sh(each(1, cases), cwd=place).ok()
    shell(each(2, cases), place)
    before = plain(place)
    refused(place, commit(stet, place, opts=["--json"]), cases)
    assert plain(place) == before


def test_a_directory_appears(stet, place):
    """What lies in it bears old times, and nobody has said that it may go."""
    all_refused(stet, place, APPEARS)


def test_a_directory_of_both(stet, place):
    """Made here, and come there: where no name is in both there is nothing to decide, and all is kept."""
    shell("mkdir -p p/s; echo prepared > p/x; echo prepared > p/s/x", place)
    stet.sh("mkdir -p nd/t; echo inside > nd/n; echo inside > nd/t/n", cwd=place).ok()
    shell("mv p nd", place)
    host = timeless(place)
    commit(stet, place).ok()
    assert shell("cd nd; find . -type f | sort", place).split() == ["./n", "./s/x", "./t/n", "./x"]
    undo(stet, place).ok()
    assert timeless(place) == host


def test_a_directory_appears_where_one_had_been_deep(stet, place):
    """Not the directory of the file is another, but one above."""
    shell("mkdir -p d/a/b/c e/a/b/c; echo base > d/a/b/c/f; echo other > e/a/b/c/f", place)
    stet.sh("echo inside > d/a/b/c/f", cwd=place).ok()
    exchange(place, [("d/a", "e/a")])
    before = plain(place)
    refused(place, commit(stet, place, opts=["--json"]), ["d"])
    assert plain(place) == before


def test_outside_of_the_directory_it_was_run_in(stet, place):
    """The same rules hold for all that the command could write to."""
    shell("mkdir -p w o; mkdir -p p/s; echo prepared > p/x; echo prepared > p/s/x; echo base > o/f; echo old > o/g",
          place)
    stet.sh("mkdir -p ../o/nd/s; echo inside > ../o/nd/s/x; echo inside > ../o/f", cwd=f"{place}/w").ok()
    shell("mv p o/nd", place)
    exchange(place, [("o/f", "o/g")])
    before = plain(place)
    r = commit(stet, f"{place}/w", opts=["--json"]).ok(CONFLICT)
    assert {os.path.relpath(c["path"], place) for c in r.json()["error"]["conflicts"]} == \
        {"o/f", "o/nd/s/x"}
    assert plain(place) == before


# A copy that nobody inside has changed: how it comes about.
COPIED = {
    "opened": ": >> $f",
    "opened to write": "python3 -c 'import os, sys; os.open(sys.argv[1], os.O_RDWR)' $f",
    "mode": "chmod $(stat -c %a $f) $f",
    "written back": "t=$(stat -c %y $f); cp $f $f.t; cat $f.t > $f; rm $f.t; touch -d \"$t\" $f",
}
# What the host makes of it.
ITS = {
    "deleted": "rm $f",
    "renamed": "mv $f $f.r",
    "written": "echo host > $f",
    "other": "rm $f; ln -s host $f",
    "mode": "chmod 600 $f",
}
SAME = named({f"{c}-{i}": ("echo base > $f; chmod 644 $f", COPIED[c], ITS[i]) for c in COPIED for i in ITS})


def test_copied_and_not_changed(stet, place):
    """What the command has only opened is the host's, whatever becomes of it there."""
    shell(each(0, SAME), place)
    stet.sh(each(1, SAME) + "; echo inside > n", cwd=place).ok()
    shell(each(2, SAME), place)
    before = timeless(place)
    r = commit(stet, place, opts=["--json"]).ok()
    changes = r.json()["changes"]
    assert (changes["added"], changes["changed"], changes["deleted"]) == (1, 0, 0)
    assert stet.transactions()[0]["state"] == "committed"
    after = timeless(place)
    assert after.pop(b"n")
    assert after == before


def test_copied_and_changed(stet, place):
    """The same, but the command has changed something: that is for the user to decide."""
    of = named({f"{c}-{i}": ("echo base > $f; chmod 644 $f; touch -d 2020-01-01 $f", f"{COPIED[c]}; {does}", ITS[i])
                for c in COPIED for i in ITS
                for does in ["chmod 640 $f" if len(c + i) % 2 else "printf BASE | dd of=$f conv=notrunc status=none"]})
    all_refused(stet, place, of)


def test_a_part_does_not_bring_back_a_directory(stet, place):
    """One that the host has deleted, or renamed: as the whole commit does not."""
    shell("mkdir -p d/s e/s; echo base > d/s/f; echo base > e/s/f", place)
    stet.sh("echo inside > d/s/n; echo inside > e/s/n; mkdir g; echo inside > g/n", cwd=place).ok()
    shell("rm -r d; mv e e.old", place)
    before = plain(place)
    for path in ("d/s/n", "e/s/n"):
        refused(place, commit(stet, place, path, opts=["--json"]), [path[0]])
    assert plain(place) == before
    commit(stet, place, "g/n").ok()
    commit(stet, place, "d/s/n", ours=["d"]).ok()
    assert shell("cat d/s/n g/n", place) == "inside\ninside\n"


# What the host does at once when a visit has ended, which the base must not take for what was.
def rename(top):
    for i in range(1, 4):
        os.rename(f"{top}/d/f{i}", f"{top}/d/g{i}")


def unlink(top):
    for i in range(1, 4):
        os.unlink(f"{top}/d/f{i}")


def beside(top):
    os.mkdir(f"{top}/n")
    unlink(top)


WINDOW = {"unlink": unlink, "rename": rename, "directory": lambda top: shutil.rmtree(f"{top}/d"), "beside": beside}


@pytest.mark.parametrize("how", WINDOW)
@pytest.mark.parametrize("many", [0, 1000])
def test_deleted_right_after_a_visit(stet, tmp_path, how, many):
    for turn in range(3):
        work = tmp_path / str(turn)
        (work / "d").mkdir(parents=True)
        for i in range(1, 4):
            (work / f"d/f{i}").write_text("base\n")
        stet.sh("echo inside > x", cwd=work).ok()
        stet("explore", "--", "bash", "-c", "for i in 1 2 3; do rm d/f$i; echo visit > d/f$i; done; "
             f"for ((i = 0; i < {many}; i++)); do echo > m$i; done", cwd=work).ok()
        WINDOW[how](work)
        r = commit(stet, work, opts=["--json"]).ok(CONFLICT)
        found = {os.path.relpath(c["path"], work) for c in r.json()["error"]["conflicts"]}
        assert found and {p.split("/")[0] for p in found} == {"d"}, found


@pytest.mark.parametrize("quiet", [["--quiet"], []])
def test_deleted_right_after_a_run(stet, work, quiet):
    """Too much is changed to be noted before it returns."""
    (work / "d").mkdir()
    for i in range(1, 4):
        (work / f"d/f{i}").write_text("base\n")
    stet("run", *quiet, "--", "bash", "-c", "for i in 1 2 3; do rm d/f$i; echo inside > d/f$i; done; "
         "for ((i = 0; i < 500; i++)); do echo > m$i; done", cwd=work).ok()
    beside(work)
    r = commit(stet, work, opts=["--json"]).ok(CONFLICT)
    assert {os.path.relpath(c["path"], work) for c in r.json()["error"]["conflicts"]} == {"d/f1", "d/f2", "d/f3"}
