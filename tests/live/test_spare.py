# SPDX-License-Identifier: Apache-2.0
"""Directories of a transaction that changed nothing serve the next one, and only then."""
import concurrent.futures
import fcntl
import os
import re

import pytest
from stetlib import wait_until


def store(stet):
    return os.path.join(stet.home, ".local/state/stet/tx")


def spares(stet):
    return sorted(n for n in os.listdir(store(stet)) if n.startswith("spare-"))


def inode(stet):
    names = spares(stet)
    assert len(names) == 1, os.listdir(store(stet))
    return os.stat(os.path.join(store(stet), names[0])).st_ino


def run_true(stet, work):
    """`true`; was it over so soon (LONG_MS in init.c, SOON_MS in witness.c) that nothing of it
    lingers, and nobody took notes? As a rule."""
    said = stet.run("true", opts=["--debug"], cwd=work).ok().err
    last = max(map(int, re.findall(r"^stet: +(\d+) us: ", said, re.M)))
    return "forgotten later" not in said and last < 40000


def leave_one(stet, work):
    """A run that leaves its directories to the next; on a busy machine not each does."""
    wait_until(lambda: run_true(stet, work), 60)
    return inode(stet)


def test_the_next_one_takes_it(stet, work):
    first, taken = leave_one(stet, work), 0
    while taken < 3:
        if not run_true(stet, work):
            first, taken = leave_one(stet, work), 0
            continue
        assert inode(stet) == first
        taken += 1
    stet.sh("echo x > f; mkdir d", cwd=work).ok()
    assert not spares(stet)
    assert sorted(stet.changes(cwd=work, below=work)) == [b"d", b"f"]
    # One that is pending keeps its own: the next makes another.
    assert leave_one(stet, work) != first


def test_each_of_several_at_once_has_its_own(stet, work):
    stet.run("true", cwd=work).ok()
    a, b = (stet.popen("run", "--", "sh", "-c", f"echo {n} > {n}; exec cat", cwd=work,
                       stdin=-1, stdout=-1, stderr=-1) for n in "ab")
    for p in (a, b):
        p.communicate(b"", timeout=60)
        assert p.returncode == 0
    for tx in stet.transactions():
        if tx["state"] == "pending":
            assert len(stet.changes(tx["id"], cwd=work)) == 1


@pytest.mark.parametrize("script", [
    "echo x > /tmp/left",
    "mkdir /var/tmp/left",
    "setfattr -n user.left -v x /tmp",
    "setfacl -d -m u::rwx /tmp",
    "cat f; exec 3<>f",
    "mkdir d; rmdir d; touch f2; rm f2; : > ~/.left; rm ~/.left",
])
def test_nothing_of_the_last_one_is_seen(stet, work, script):
    """Whether it is kept or not: the next finds what it would find in new directories."""
    (work / "f").write_text("x\n")
    look = ("getfacl -cp /tmp /var/tmp; getfattr -d -m - /tmp /var/tmp . ~; "
            "stat -c '%n %a %u %g %y' ~ . f; ls -la /tmp /var/tmp | grep -v ' \\.\\.*$'; "
            "mkdir -p x/y; ls -A ~")
    stet.run("true", cwd=work).ok()
    stet("prune", cwd=work).ok()
    want = stet.sh(look, cwd=work).ok().out
    stet("rollback", cwd=work).ok()
    stet.sh(script, cwd=work, opts=("--on-success", "rollback"))
    stet.sh(script, cwd=work)
    if stet("status", cwd=work).rc == 0:
        stet("rollback", cwd=work)
    stet.run("true", cwd=work).ok()
    assert stet.sh(look, cwd=work).ok().out == want


def test_prune_leaves_none(stet, work):
    leave_one(stet, work)
    stet("prune", cwd=work).ok()
    assert not spares(stet)


def test_one_that_is_still_looked_at(stet, work):
    """Who starts looks after runs that died, and may hold one that has ended since."""
    first = leave_one(stet, work)
    fd = os.open(os.path.join(store(stet), spares(stet)[0]), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    # Where the first went may be where the next one puts what it cannot leave: then it leaves none.
    wait_until(lambda: run_true(stet, work) and spares(stet), 60)
    assert inode(stet) != first
    os.close(fd)
    stet("prune").ok()
    assert os.listdir(store(stet)) == []


def test_many_that_end_and_start(stet, work):
    stet.ready()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for r in pool.map(lambda _: stet("exec", "--", "true", cwd=work), range(200)):
            assert (r.rc, r.err) == (0, "")
