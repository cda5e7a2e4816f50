# SPDX-License-Identifier: Apache-2.0
"""Objects with several names, some of them in directories that come or go as a whole: the host gets
what a plain run makes of it, and undo and redo go back and forth between the two."""
import subprocess
import sys

import pytest
from commitlib import CONFLICT, commit, plain, redo, same_inodes, shell, undo
from stetlib import differences

# What the host has, and what the command does.
SHARED = "mkdir a d; echo x > d/f; ln d/f a/g; echo y > d/other"
GONE = {
    "both": (SHARED, "rm -rf d a/g"),
    "the other moves": (SHARED, "rm -rf d; mv a/g b"),
    "the other is written": (SHARED, "rm -rf d; sed -i s/x/z/ a/g"),
    "the other's mode": (SHARED, "rm -rf d; chmod 600 a/g"),
    "the other gets a name": (SHARED, "rm -rf d; ln a/g q"),
    "moved": (SHARED, "mv d e; rm a/g"),
    "made anew": (SHARED, "rm -rf d a/g; mkdir d; echo n > d/f"),
    "now a file": (SHARED, "rm -rf d a/g; echo n > d"),
    "locked": (SHARED + "; chmod 500 d", "chmod 700 d; rm -rf d a/g"),
    "deep, three names": (SHARED + "; mkdir -p d/1/2; ln d/f d/1/2/f", "rm -rf d a/g"),
    "several": (SHARED + "; ln d/f a/h; ln d/f a/i", "rm -rf d a/g a/i; mv a/h b"),
}
NEW = {
    "name outside": (":", "mkdir n; echo 1 > n/f; ln n/f z"),
    "names outside": ("mkdir d", "mkdir -p n/m; echo 1 > n/m/f; ln n/m/f z; ln z d/z"),
    "of a new symlink": (":", "mkdir n; ln -s 1 n/f; ln n/f z"),
    "of the host's file": ("echo x > h", "mkdir n; ln h n/c"),
    "of the host's, other mode": ("echo x > h", "chmod 600 h; mkdir n; ln h n/c; ln h k"),
    "instead of a file": ("echo x > n", "rm n; mkdir n; echo 1 > n/f; ln n/f z"),
}
TWO = "echo x > h; echo y > k"
# A name that the host has already becomes another name of a file that stays.
INSTEAD = {
    "of a file": (TWO, "ln -f h k"),
    "the other way": (TWO, "ln -f k h"),
    "of one with names": (TWO + "; ln k z", "ln -f h k"),
    "one with names": (TWO + "; ln h z", "ln -f h k"),
    "with another mode": (TWO, "chmod 600 h; ln -f h k"),
    "with attributes": (TWO, "setfattr -n user.a -v 1 h; ln -f h k"),
    "two names": (TWO + "; echo z > l", "ln -f h k; ln -f h l"),
    "and a new one": (TWO, "ln -f h k; ln h n"),
    "and one in a new directory": (TWO, "ln -f h k; mkdir n; ln h n/c"),
    "of a link": ("echo x > h; ln -s h k", "ln -f h k"),
    "of a directory": ("echo x > h; mkdir k; echo y > k/f", "rm -r k; ln h k"),
    "of a fifo": ("echo x > h; mkfifo k", "ln -f h k"),
    "the same content": ("echo x > h; cp -p h k; echo 1 > o", "ln -f h k; echo 2 > o"),
    "the same content, other mode": ("echo x > h; cp -p h k; chmod 600 k", "ln -f h k"),
    "of another's name": (TWO + "; ln h z", "ln -f k h"),
    "in other directories": ("mkdir a b; echo x > a/f; echo y > b/f", "ln -f b/f a/f"),
    "in a read-only one": ("mkdir a; echo x > h; echo y > a/f; chmod 555 a",
                           "chmod 755 a; ln -f h a/f; chmod 555 a"),
    "of a link, linked": ("ln -s 1 h; ln -s 2 k", "ln -fP h k"),
    "both new content": (TWO, "echo new > h; ln -f h k"),
    "a new one": (TWO, "echo new > n; ln -f n k"),
    "and the first gone": (TWO, "ln -f h k; rm h"),
}
ONE = "mkdir a d; echo x > d/f; ln d/f a/g"
# One name goes or changes, another gets attributes, which they have in common.
DRESSED = {
    "the other goes": (ONE, "chmod 600 a/g; rm d/f"),
    "the first goes": (ONE, "chmod 600 d/f; rm a/g"),
    "the other is written anew": (ONE, "chmod 600 a/g; rm d/f; echo new > d/f"),
    "the other is a directory": (ONE, "chmod 600 a/g; rm d/f; mkdir d/f"),
    "attributes": (ONE, "setfattr -n user.a -v 1 a/g; rm d/f"),
    "the time": (ONE, "touch -d @1000000000 a/g; rm d/f"),
    "three, one goes": (ONE + "; ln d/f z", "chmod 600 a/g; rm d/f; chmod 600 z"),
}
LOCKED = "mkdir e s; echo x > s/f"
SHUT = {
    "by the command": (LOCKED, "ln s/f e/d; chmod 555 e"),
    "by the host": (LOCKED + "; chmod 555 e", "chmod 755 e; ln s/f e/d; chmod 555 e"),
    "by the host, opened": (LOCKED + "; chmod 555 e", "chmod 755 e; ln s/f e/d"),
    "both": (LOCKED, "ln s/f e/d; chmod 555 e s"),
    "in a new one": ("mkdir s; echo x > s/f", "mkdir -p n/e; ln s/f n/e/d; chmod 555 n/e"),
}
CASES = {**{f"gone, {k}": v for k, v in GONE.items()}, **{f"new, {k}": v for k, v in NEW.items()},
         **{f"shut, {k}": v for k, v in SHUT.items()},
         **{f"instead, {k}": v for k, v in INSTEAD.items()},
         **{f"dressed, {k}": v for k, v in DRESSED.items()}}


def timeless(tree):
    """What no two runs share is left out: the times of what they make."""
    return {k: {n: v for n, v in d.items() if n != "mtime"} for k, d in tree.items()}


def ran(home, *scripts):
    """What the same commands make without a sandbox."""
    top = home / "plain"
    top.mkdir()
    for s in scripts:
        shell(s, top)
    return timeless(plain(top))


@pytest.mark.parametrize("kind", CASES)
def test_back_and_forth(stet, work, kind):
    before, inside = CASES[kind]
    shell(before, work)
    old, names = same_inodes(work), plain(work)
    stet.sh(inside, cwd=work).ok()
    commit(stet, work).ok()
    done, linked = same_inodes(work), plain(work)
    assert differences(ran(work.parent, before, inside), timeless(linked)) == []
    for _ in range(2):
        undo(stet, work).ok()
        assert differences(old, same_inodes(work)) == []
        assert differences(names, plain(work)) == []
        redo(stet, work).ok()
        assert differences(done, same_inodes(work)) == []
        assert differences(linked, plain(work)) == []
        assert "all well" in stet("check").ok().out


# The other name is not chosen, and the host has it already.
PIECES = {
    "new": ("mkdir d; echo x > h", "ln h d/k; echo 1 > o"),
    "instead": ("mkdir d; echo x > h; echo y > d/k", "ln -f h d/k; echo 1 > o"),
    "in a new directory": ("echo x > h", "mkdir d; ln h d/k; echo 1 > o"),
    "two": ("mkdir d; echo x > h; echo y > d/k", "ln -f h d/k; ln h d/l; echo 1 > o"),
}


@pytest.mark.parametrize("kind", PIECES)
def test_a_piece_of_it(stet, work, kind):
    before, inside = PIECES[kind]
    shell(before, work)
    old = same_inodes(work)
    stet.sh(inside, cwd=work).ok()
    commit(stet, work, "d").ok()
    assert (work / "d/k").samefile(work / "h") and not (work / "o").exists()
    part = same_inodes(work)
    undo(stet, work).ok()
    assert differences(old, same_inodes(work)) == []
    redo(stet, work).ok()
    assert differences(part, same_inodes(work)) == []
    commit(stet, work).ok()
    assert differences(ran(work.parent, before, inside), timeless(plain(work))) == []
    # What the command does to the file from here on is no conflict with our own links.
    undo(stet, work).ok()
    stet("explore", "--", "sh", "-c", "echo more >> h", cwd=work).ok()
    commit(stet, work, "h").ok()
    assert (work / "h").read_text() == "x\nmore\n"


def test_no_name_is_left_behind(stet, work):
    """The store keeps what was replaced, and no names of what was not."""
    shell(TWO, work)
    stet.sh("ln -f h k", cwd=work).ok()
    for _ in range(2):
        commit(stet, work).ok()
        assert (work / "h").stat().st_nlink == 2
        undo(stet, work).ok()
        assert (work / "h").stat().st_nlink == (work / "k").stat().st_nlink == 1
    redo(stet, work).ok()
    assert (work / "h").stat().st_nlink == 2


def test_other_attributes_each(stet, work):
    """Two names of one file, and the command saw it become two: it stays so."""
    shell(ONE, work)
    old = same_inodes(work)
    stet.sh("chmod 600 a/g; chmod 640 d/f", cwd=work).ok()
    commit(stet, work).ok()
    assert [oct((work / n).stat().st_mode & 0o777) for n in ("a/g", "d/f")] == ["0o600", "0o640"]
    undo(stet, work).ok()
    assert differences(old, same_inodes(work)) == []
    redo(stet, work).ok()
    assert oct((work / "d/f").stat().st_mode & 0o777) == "0o640"


@pytest.mark.parametrize("mode", ["111", "000"])
def test_an_unreadable_directory(stet, work, mode):
    """Nobody can compare what it holds while it is there, only that all of it goes back."""
    shell(LOCKED, work)
    old = same_inodes(work)
    stet.sh(f"ln s/f e/d; chmod {mode} e", cwd=work).ok()
    commit(stet, work).ok()
    for _ in range(2):
        undo(stet, work).ok()
        assert differences(old, same_inodes(work)) == []
        redo(stet, work).ok()
        assert oct((work / "e").stat().st_mode & 0o777)[2:].zfill(3) == mode
        assert (work / "s/f").stat().st_nlink >= 2


# Waits until a step is taken, does something to the file that the directory held, and tells
# whether the commit had steps to take even then.
WRITER = r"""
import os, sys
when, how, work = sys.argv[1:]
os.chdir(work)
d, g = os.open("d", os.O_RDONLY), os.open("a/g", os.O_PATH)
def write(fd):
    os.write(fd, b"his\n")
    os.close(fd)
print("READY", flush=True)
while os.path.exists(when) == (when == "d"):
    pass
if how == "in the directory":
    write(os.open("f", os.O_WRONLY, dir_fd=d))
elif how == "by the other name":
    write(os.open(f"/proc/self/fd/{g}", os.O_WRONLY))
else:
    os.chmod(f"/proc/self/fd/{g}", 0o604)
print(not os.path.exists("y399"))
"""
ENOUGH = 3  # of those that came in time
STEPS = {"d": "rm a/g", "q": "ln a/g q", "b": "mv a/g b"}


@pytest.mark.parametrize("how", ["in the directory", "by the other name", "mode"])
@pytest.mark.parametrize("when", STEPS)
def test_written_meanwhile(stet, work, when, how):
    """That we move the other name hides nothing that somebody does to the file."""
    shell(f"{SHARED}; echo abc > d/f", work)
    in_time = 0
    for _ in range(10 * ENOUGH):
        stet.sh(f"rm -rf d; {STEPS[when]}; mkdir y{{100..399}}", cwd=work).ok()
        with subprocess.Popen([sys.executable, "-c", WRITER, when, how, work], stdout=subprocess.PIPE,
                              text=True) as writer:
            assert writer.stdout.readline() == "READY\n"
            r = commit(stet, work)
            if r.rc == CONFLICT and (work / "d").exists():
                writer.terminate()  # it may have missed the moment
            was_in_time = writer.stdout.read() == "True\n"
        if was_in_time:
            in_time += 1
            assert r.rc == CONFLICT, repr(r)
            assert (work / "a/g").samefile(work / "d/f")
            assert (work / "d/f").read_text() == ("abc\n" if how == "mode" else "his\n")
            assert not (work / "y100").exists()
        assert r.rc in (0, CONFLICT), repr(r)
        if r.rc == 0:
            undo(stet, work).ok()
        stet("rollback", cwd=work).ok()
        shell("echo abc > d/f; chmod 644 d/f", work)
        if in_time == ENOUGH:
            return
    pytest.fail("the writer never came in time")


@pytest.mark.parametrize("change", ["echo 2 > n/f", "echo 2 > z", "chmod 600 z", "echo 2 > n/new",
                                    "touch -r z ../t; echo 2 > n/f; touch -r ../t n/f"])
def test_changed_after_a_redo(stet, work, change):
    """What is excused is our own doing, and nothing later."""
    stet.sh(NEW["name outside"][1], cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    redo(stet, work).ok()
    shell(change, work)
    changed = plain(work)
    assert undo(stet, work).rc == CONFLICT
    assert differences(changed, plain(work)) == []
