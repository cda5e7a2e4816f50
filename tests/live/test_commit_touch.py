# SPDX-License-Identifier: Apache-2.0
"""Touching without changing is no conflict, and changing always is: on three filesystems, while the
command runs and after it."""
import os
import shutil

import pytest
from commitlib import CONFLICT, begin, commit, end, plain, redo, shell, undo, wait_for_notes

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# What the command does to a file named $f, which holds "base".
WORK = {"write": "echo inside > $f", "append": "echo inside >> $f", "delete": "rm $f",
        "mode": "chmod 600 $f", "over": "echo inside > $f.t; mv $f.t $f"}
# What the host does to it: nothing that differs afterwards...
TOUCH = {
    "touch": "touch $f",
    "past": "touch -d 2001-01-01 $f",
    "chmod": "chmod 606 $f; chmod 644 $f",
    "attribute": "setfattr -n user.h -v 1 $f; setfattr -x user.h $f",
    "acl": "setfacl -m u:nobody:r $f; setfacl -b $f",
    "rename": "mv $f $f.t; mv $f.t $f",
    "link": "ln $f $f.t; rm $f.t",
    "rewrite": "cat $f > $f.t; cat $f.t > $f; rm $f.t",
    "save": "cat $f > $f.t; mv $f.t $f",
    "copy": "cp -p $f $f.t; rm $f; mv $f.t $f",
    "sync": "python3 -c 'import os, sys; fd = os.open(sys.argv[1], os.O_RDWR); "
            "os.pwrite(fd, b\"base\", 0); os.fsync(fd)' $f",
}
# ... or something that does, however well hidden.
EDIT = {
    "write": "echo host > $f",
    "size": "echo BASE > $f",
    "time": "touch -r $f $f.t; echo BASE > $f; touch -r $f.t $f; rm $f.t",
    "over": "echo BASE > $f.t; touch -r $f $f.t; mv $f.t $f",
    "mode": "chmod 640 $f",
    "attribute": "setfattr -n user.h -v 1 $f",
    "acl": "setfacl -m u:nobody:r $f",
}
WHEN = ("during", "after")


# With the sanitizers, which are slow, one filesystem is as good as another.
@pytest.fixture(name="place",
                params=["ext4"] if os.environ.get("STET_BUILD") == "asan" else NEEDS.split())
def fixture_place(request, filesystem):
    top = os.path.join(filesystem(request.param), "w")
    os.mkdir(top, 0o755)
    yield top
    shutil.rmtree(top)


def each(table):
    """{name of a file: what is done to it}: every work with everything of the table."""
    return {f"{w}-{t}": (WORK[w], table[t]) for w in WORK for t in table}


def all_of(files, which):
    return "; ".join(f"f={name}; {does[which]}" for name, does in files.items())


def make(top, files):
    for name in files:
        with open(f"{top}/{name}", "w", encoding="ascii") as f:
            f.write("base\n")
        os.chmod(f"{top}/{name}", 0o644)


def both(stet, top, files, when, command=0):
    """The command, and what the host does during it or after it: which of what the table says."""
    p = begin(stet, top, all_of(files, command))
    if when == "during":
        wait_for_notes(stet, p, [n.encode() for n in files])
        shell(all_of(files, command + 1), top)
    end(p)
    if when == "after":
        shell(all_of(files, command + 1), top)


def play(stet, top, files, when):
    make(top, files)
    both(stet, top, files, when)


@pytest.mark.parametrize("when", WHEN)
def test_touched(stet, place, tmp_path, when):
    files = each(TOUCH)
    play(stet, place, files, when)
    touched = plain(place)
    commit(stet, place).ok()
    reference = tmp_path / "reference"
    reference.mkdir()
    make(reference, files)
    shell(all_of(files, 0), reference)
    found, expected = plain(place), plain(reference)
    for name in expected.keys() | found.keys():
        if name:
            assert {k: found[name][k] for k in ("type", "mode", "sha", "xattrs") if k in found[name]} \
                == {k: expected[name][k] for k in ("type", "mode", "sha", "xattrs")
                    if k in expected[name]}, name
    # The command has set no time of its own with chmod: the host's stays.
    for how in TOUCH:
        name = f"mode-{how}".encode()
        assert found[name]["mtime"] == touched[name]["mtime"], how
    undo(stet, place).ok()
    back = plain(place)
    assert {k: v for k, v in back.items() if k} == {k: v for k, v in touched.items() if k}
    redo(stet, place).ok()
    assert {k: v for k, v in plain(place).items() if k} == {k: v for k, v in found.items() if k}


@pytest.mark.parametrize("when", WHEN)
def test_changed(stet, place, when):
    """Each is refused, and nothing else is, though touched beside them."""
    files = each(EDIT)
    calm = {f"calm-{n}": does for n, does in each({"touch": TOUCH["touch"]}).items()}
    play(stet, place, {**files, **calm}, when)
    r = commit(stet, place, opts=["--json"]).ok(CONFLICT)
    conflicts = {os.path.basename(c["path"]) for c in r.json()["error"]["conflicts"]}
    # To set the mode that the host has set as well is to agree with it.
    assert conflicts == set(files)


# What is no file: what the host has at $f, what the command makes of it, what the host does to it
# that differs in nothing, and that differs.
OTHERS = {
    "link": ("ln -s base $f", {"point": "ln -sfn inside $f", "drop": "rm $f", "file": "rm $f; echo 1 > $f"},
             {"touch": "touch -h $f", "again": "rm $f; ln -s base $f", "rename": "mv $f $f.t; mv $f.t $f",
              "link": "ln -P $f $f.t; rm $f.t"},
             {"point": "ln -sfn host $f", "file": "rm $f; echo host > $f"}),
    "pipe": ("mkfifo $f", {"drop": "rm $f", "file": "rm $f; echo 1 > $f"},
             {"touch": "touch $f", "chmod": "chmod 606 $f; chmod 644 $f", "again": "rm $f; mkfifo $f",
              "acl": "setfacl -m u:nobody:r $f; setfacl -b $f"},
             {"mode": "chmod 600 $f", "acl": "setfacl -m u:nobody:r $f", "link": "rm $f; ln -s base $f"}),
}


def others(which):
    """{name: (what the host has, what the command does, what the host does)}, as OTHERS say."""
    return {f"{kind}-{w}-{h}": (row[0], row[1][w], row[which][h])
            for kind, row in OTHERS.items() for w in row[1] for h in row[which]}


def bare(tree):
    return {n: {k: v for k, v in d.items() if k != "mtime"} for n, d in plain(tree).items() if n}


def play_others(stet, top, files, when):
    shell("umask 022; " + all_of(files, 0), top)
    both(stet, top, files, when, 1)


@pytest.mark.parametrize("when", WHEN)
def test_touched_that_is_no_file(stet, place, when):
    files = others(2)
    play_others(stet, place, files, when)
    touched = bare(place)
    commit(stet, place).ok()
    done = bare(place)
    for name, (_, does, _) in files.items():
        assert (name.encode() in done) == (does != "rm $f"), name
        assert done.get(name.encode()) != touched[name.encode()], name
    undo(stet, place).ok()
    assert bare(place) == touched
    redo(stet, place).ok()
    assert bare(place) == done


@pytest.mark.parametrize("when", WHEN)
def test_changed_that_is_no_file(stet, place, when):
    files, calm = others(3), {f"calm-{n}": does for n, does in others(2).items()}
    play_others(stet, place, {**files, **calm}, when)
    before = plain(place)
    r = commit(stet, place, opts=["--json"]).ok(CONFLICT)
    assert {os.path.basename(c["path"]) for c in r.json()["error"]["conflicts"]} == set(files)
    assert plain(place) == before


def test_touched_before_the_command_came(stet, work):
    """What it held when the transaction began nobody knows then: the user decides."""
    make(work, ["x"])
    p = stet.popen("run", "--quiet", "--", "bash", "-c",
                   "echo READY; read line; echo inside > x", cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    shell("touch x", work)
    end(p)
    commit(stet, work).ok(CONFLICT)
    commit(stet, work, ours=["x"]).ok()
    assert (work / "x").read_text() == "inside\n"
