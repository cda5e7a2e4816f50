# SPDX-License-Identifier: Apache-2.0
"""Commits to a filesystem that can neither exchange two names nor keep from replacing one."""
import ctypes
import os
import threading

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, same_inodes, shell, undo
from stetlib import differences

NEEDS = "fuse"

HOST = """
mkdir -p d/s full; echo a > d/a; echo b > d/s/b; echo f > full/f; echo file > file
echo gone > gone; ln -s a link; mkfifo fifo; echo t > typed; chmod 600 file
find . -depth -print0 | xargs -0 touch -h -d '2021-01-02 03:04:05.123456789'
"""
COMMAND = """
echo more >> file; rm gone; ln -sfn b link; rm -rf full; echo now > full; rm typed
mkdir typed; echo in > typed/in; mkdir -p new/deep; echo n > new/deep/n; echo c > d/c
chmod 640 d/a; rm fifo; mkfifo fifo
find . -depth -newermt 2023-01-01 -print0 | xargs -0r touch -h -d '2022-02-03 04:05:06.5'
"""


@pytest.fixture(name="place")
def fixture_place(filesystem, tmp_path):
    if not os.path.exists("/dev/fuse"):
        pytest.skip("impossible here: no FUSE")
    where = f"{filesystem('fuse')}/{tmp_path.name}"
    os.mkdir(where)
    return where


def same(a, b):
    """But for the workspace's own directory, which is nobody's change."""
    assert differences({k: v for k, v in a.items() if k}, {k: v for k, v in b.items() if k}) == []


def test_it_lacks_them(place):
    """If this ever fails, the tests below need another filesystem."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("a", "b"):
        with open(f"{place}/{name}", "w", encoding="ascii"):
            pass
    for flags, to in ((1, "c"), (2, "b")):
        assert libc.renameat2(-100, f"{place}/a".encode(), -100, f"{place}/{to}".encode(),
                              flags) == -1


def test_commit_undo_redo(stet, place, tmp_path):
    reference = str(tmp_path / "reference")
    os.mkdir(reference)
    shell(HOST, place)
    shell(HOST, reference)
    before = same_inodes(place)
    stet.sh(COMMAND, cwd=place).ok()
    shell(COMMAND, reference)
    commit(stet, place).ok()
    same(plain(reference), plain(place))
    undo(stet, place).ok()
    same(before, same_inodes(place))
    redo(stet, place).ok()
    same(plain(reference), plain(place))
    assert "all well" in stet("check").ok().out


def test_chosen_paths(stet, place):
    shell(HOST, place)
    stet.sh(COMMAND, cwd=place).ok()
    commit(stet, place, "file", "new/deep/n").ok()
    with open(f"{place}/file", encoding="ascii") as f:
        assert f.read() == "file\nmore\n"
    assert sorted(os.listdir(f"{place}/new")) == ["deep"]
    assert os.path.exists(f"{place}/gone")
    undo(stet, place).ok()
    assert not os.path.exists(f"{place}/new")
    commit(stet, place).ok()
    assert not os.path.exists(f"{place}/gone")


def test_conflict(stet, place):
    shell(HOST, place)
    stet.sh(COMMAND, cwd=place).ok()
    shell("echo mine > file", place)
    r = commit(stet, place).ok(CONFLICT)
    assert names_conflict(r, "file")
    with open(f"{place}/file", encoding="ascii") as f:
        assert f.read() == "mine\n"
    assert os.path.exists(f"{place}/gone")


def test_nobody_misses_a_file(stet, place):
    """A reader that opens a file again and again while it is replaced, there and back."""
    shell("for i in $(seq 20); do echo old > f$i; done", place)
    stet.sh("for i in $(seq 20); do echo new > f$i; done", cwd=place).ok()
    stop, missed = threading.Event(), []

    def read():
        while not stop.is_set():
            for i in range(1, 21):
                try:
                    with open(f"{place}/f{i}", encoding="ascii") as f:
                        f.read()
                except OSError as e:
                    missed.append(e)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for r in readers:
        r.start()
    try:
        commit(stet, place).ok()
        for _ in range(3):
            undo(stet, place).ok()
            redo(stet, place).ok()
    finally:
        stop.set()
        for r in readers:
            r.join()
    assert missed == []
