# SPDX-License-Identifier: Apache-2.0
"""Somebody saves, reads or moves things on the host in the very moment of a commit."""
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import binary
from commitlib import CONFLICT, commit, redo, shell, undo
from stetlib import SLOW, Stet, has_user_xattrs

NEEDS = "tmpfs"
# At least; the least number of tries counts as well.
SECONDS = 60 if os.environ.get("STET_LONG") else 3
ROUNDS = 8
# Saves in the moment of a commit: thousands over all builds and users.
SAVES = 300
MOST_SECONDS = 90 * SLOW
FILES = 60

# For each line on its input (a transaction's directory): waits until a change list appears
# there (nothing has been moved yet), then saves files at random until the stop file comes;
# tells what it saved last in each.
EDITOR = r"""
import json, os, random, sys, time
how, work, stop, count, slow = sys.argv[1:4] + [int(sys.argv[4]), float(sys.argv[5])]
random.seed(1)
def save(path, text):
    if how == "in place":
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    else:
        fd = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, text)
    os.close(fd)
    if how != "in place":
        os.rename(path + ".tmp", path)
n = 0
print("READY", flush=True)
for line in sys.stdin:
    txn, last = line.strip(), {}
    print("WAITING", flush=True)
    while not os.path.exists(stop) and not any(f.startswith("plan-") for f in os.listdir(txn)):
        pass
    # Sometimes as long as a slow build takes: it is to come too late, too.
    begin = time.monotonic() + random.random() * random.choice((0.006, 0.06)) * slow
    while time.monotonic() < begin and not os.path.exists(stop):
        pass
    while not os.path.exists(stop):
        n += 1
        i = random.randrange(count)
        save(f"{work}/d{i % 3}/f{i}", b"save %d\n" % n)
        last[i] = n
    print(json.dumps(last), flush=True)
"""

# Opens a path again and again; it must always be there.
READER = r"""
import os, sys
path, stop = sys.argv[1:3]
seen, n = set(), 0
print("READY", flush=True)
while not os.path.exists(stop):
    for _ in range(200):
        fd = os.open(path, os.O_RDONLY)
        seen.add(os.read(fd, 100))
        os.close(fd)
        n += 1
print(n, sorted(seen))
"""


def start(program, *args):
    p = subprocess.Popen([sys.executable, "-c", program, *map(str, args)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "READY\n"
    return p


def txn_dirs(stet):
    top = os.path.join(stet.state, "tx")
    return {os.path.join(top, n) for n in os.listdir(top)} if os.path.exists(top) else set()


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def fill(work):
    for i in range(FILES):
        with open(f"{work}/d{i % 3}/f{i}", "w", encoding="ascii") as f:
            f.write("base\n")


def one_round(stet, work, editor, tally):
    stop = os.path.join(stet.home, "stop")
    fill(work)
    before = txn_dirs(stet)
    stet.sh(f"for i in {{0..{FILES - 1}}}; do echo inside > d$((i % 3))/f$i; done",
            cwd=work).ok()
    # Old ones may have been trimmed meanwhile.
    newest, = txn_dirs(stet) - before
    editor.stdin.write(newest + "\n")
    editor.stdin.flush()
    assert editor.stdout.readline() == "WAITING\n"
    r = commit(stet, work)
    open(stop, "w", encoding="ascii").close()
    saved = json.loads(editor.stdout.readline())
    os.unlink(stop)
    assert r.rc in (0, CONFLICT), repr(r)
    tally[r.rc] += 1
    tally["saves"] += len(saved)
    wrong = []
    for i in range(FILES):
        found = read(f"{work}/d{i % 3}/f{i}")
        expected = f"save {saved[str(i)]}\n" if str(i) in saved else \
            "inside\n" if r.rc == 0 else "base\n"
        if found != expected:
            wrong.append(f"f{i}: {found!r}, not {expected!r}")
    assert not wrong, f"commit ended with {r.rc}\n{r!r}\n" + "\n".join(wrong)
    assert sorted(n for d in range(3) for n in os.listdir(f"{work}/d{d}")) == \
        sorted(f"f{i}" for i in range(FILES))
    if r.rc:
        stet("rollback", cwd=work).ok()


@pytest.fixture(name="fast")
def fixture_fast(filesystem, tmp_path):
    """stet with its home on a file system that keeps nobody waiting."""
    place = filesystem("tmpfs")
    home = f"{place if has_user_xattrs(place) else tmp_path}/{tmp_path.name}"
    os.mkdir(home)
    fast = Stet(binary(), home)
    yield fast
    fast.end_all()


@pytest.mark.parametrize("how", ["in place", "renamed"])
def test_editor_during_the_commit(fast, how):
    """No save is lost, and a refused commit has changed nothing."""
    stet, work = fast, os.path.join(fast.home, "work")
    for d in range(3):
        os.makedirs(f"{work}/d{d}")
    tally = {0: 0, CONFLICT: 0, "saves": 0}
    editor = start(EDITOR, how, work, os.path.join(stet.home, "stop"), FILES, SLOW)
    begin = time.monotonic()

    def enough():
        return tally["saves"] >= SAVES and tally[0] and tally[CONFLICT]

    while time.monotonic() < begin + (SECONDS if enough() else MOST_SECONDS):
        one_round(stet, work, editor, tally)
    editor.stdin.close()
    editor.wait(60)
    assert stet("recover").ok()
    # The race was one: the editor came before, between and after.
    print(tally)
    assert enough(), tally


def test_readers_never_miss_a_file(stet, work):
    stop = os.path.join(stet.home, "stop")
    (work / "f").write_text("host\n")
    stet.sh("echo inside > f", cwd=work).ok()
    readers = [start(READER, work / "f", stop) for _ in range(2)]
    commit(stet, work).ok()
    end = time.monotonic() + SECONDS / 2
    rounds = 0
    while time.monotonic() < end or rounds < ROUNDS:
        rounds += 1
        undo(stet, work).ok()
        redo(stet, work).ok()
    open(stop, "w", encoding="ascii").close()
    for p in readers:
        out, _ = p.communicate(timeout=60)
        assert p.returncode == 0, "a reader found nothing"
        n, seen = out.split(" ", 1)
        assert int(n) > 1000 and set(eval(seen)) == {b"host\n", b"inside\n"}, out


# Swaps a directory and a symbolic link that leads out of the tree, as fast as it can.
SWAPPER = r"""
import os, sys
top, outside, stop = sys.argv[1:4]
os.symlink(outside, top + "/link")
print("READY", flush=True)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
a, b = (top + "/d").encode(), (top + "/link").encode()
while not os.path.exists(stop):
    for _ in range(50):
        libc.renameat2(-100, a, -100, b, 2)
if os.path.islink(top + "/d"):
    libc.renameat2(-100, a, -100, b, 2)
os.unlink(top + "/link")
"""


def test_directory_swapped_for_a_link(stet, work, home, digest):
    """Whatever the host's parents turn into, nothing outside of the tree is touched."""
    stop = str(home / "stop")
    outside = home / "outside"
    outside.mkdir()
    for n in range(20):
        (outside / f"f{n}").write_text("canary\n")
    canary = digest(outside)
    end = time.monotonic() + SECONDS / 2
    rounds = 0
    while time.monotonic() < end or rounds < ROUNDS:
        rounds += 1
        shell("mkdir -p d; for i in $(seq 0 19); do echo base > d/f$i; done", work)
        stet.sh("for i in $(seq 0 9); do echo inside > d/f$i; done; rm d/f1?; "
                "echo new > d/new; mkdir d/nd; echo n > d/nd/n", cwd=work).ok()
        swapper = start(SWAPPER, work, outside, stop)
        r = commit(stet, work)
        open(stop, "w", encoding="ascii").close()
        swapper.communicate(timeout=60)
        os.unlink(stop)
        assert r.rc in (0, CONFLICT), repr(r)
        assert digest(outside) == canary
        if r.rc == 0:
            assert (work / "d" / "f0").read_text() == "inside\n"
            undo(stet, work).ok()
        assert (work / "d" / "f0").read_text() == "base\n"
        assert sorted(os.listdir(work / "d")) == sorted(f"f{n}" for n in range(20))
        stet("rollback", cwd=work).ok()
