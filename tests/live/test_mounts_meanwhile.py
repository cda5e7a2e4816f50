# SPDX-License-Identifier: Apache-2.0
"""Mounts of others that come and go while a run starts, and while it goes on."""
import glob
import os
import subprocess
import threading

import pytest
from stetlib import has_user_xattrs, wait_until

NEEDS = "tmpfs"  # and so a table of mounts of our own: other tests are not disturbed
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="impossible here: only root mounts")


def mount_at(where):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", where], check=True)


def umount(where):
    """Who starts, or looks, may have it open for a moment."""
    wait_until(lambda: subprocess.run(["umount", "-q", where], check=False,
                                      stderr=subprocess.DEVNULL).returncode == 0)


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    """A filesystem of its own that is none of the workspace's; root has a layer in it."""
    where = tmp_path / "place"
    where.mkdir()
    mount_at(where)
    if not has_user_xattrs(where):
        umount(where)
        pytest.skip("impossible here: a tmpfs holds no layers")
    yield where
    if os.path.ismount(where):
        umount(where)


class Running:
    """A run whose command does one line of shell after the other, as they are said."""

    def __init__(self, stet, work):
        self.p = stet.popen("run", "--quiet", "--no-policy", "--", "sh", "-c",
                            "while read line; do eval \"$line\"; echo DONE; done",
                            cwd=work, stdin=subprocess.PIPE)
        self.say("true")

    def say(self, line):
        self.p.stdin.write(line.encode() + b"\n")
        self.p.stdin.flush()
        assert self.p.stdout.readline() == b"DONE\n", self.p.stderr.read()

    def end(self):
        _, err = self.p.communicate(timeout=60)
        return self.p.returncode, err.decode()


@pytest.fixture(name="running")
def fixture_running(stet, work):
    return Running(stet, work)


def changes(stet, work):
    return {os.path.relpath(p, os.fsencode(work)): k
            for p, k in stet.changes(cwd=work).items()}


def test_unused_and_gone(stet, work, place, running):
    """It can go while the run goes on, and nothing that is asked then or later misses it."""
    running.say("echo one > a")
    umount(place)
    assert changes(stet, work) == {b"a": "A"}
    stet("checkpoint", cwd=work).ok()
    running.say("echo two > a; echo > b")
    assert "+two" in stet("diff", "1..", cwd=work).ok().out
    stet("rollback", "--to", "1", cwd=work).ok()
    running.say("[ $(cat a) = one ] && ! [ -e b ] && echo > c")
    assert running.end() == (0, "")
    assert changes(stet, work) == {b"a": "A", b"c": "A"}
    assert stet("explore", "-q", "--", "cat", "a", cwd=work).ok().out == "one\n"
    stet("commit", cwd=work).ok()
    assert (work / "a").read_text() == "one\n" and (work / "c").exists()
    stet("undo", cwd=work).ok()
    assert os.listdir(work) == []
    stet("redo", cwd=work).ok()
    assert sorted(os.listdir(work)) == ["a", "c"]


def test_what_goes_on_keeps_nothing_busy(stet, work, place, running):
    """Also not once somebody notes what the command comes to (ADR 22)."""
    running.say("echo one > a")
    wait_until(lambda: glob.glob(f"{stet.state}/tx/*/seen"))
    subprocess.run(["umount", place], check=True)
    assert running.end() == (0, "")
    assert changes(stet, work) == {b"a": "A"}


def test_gone_and_ended_by_kill(stet, work, place, running):
    """Nobody was left to tell what was in it: that is said, and nothing is done by half."""
    running.say("echo one > a")
    umount(place)
    running.p.kill()
    running.p.wait()
    r = stet("commit", cwd=work)
    assert r.rc != 0 and f"the filesystem of {place}: mount that again" in r.err
    assert os.listdir(work) == []


@pytest.mark.parametrize("how", ["> %s/x", "mkdir -p %s/d/e", "rm %s/old", "chmod 700 %s",
                                 "echo more >> %s/old", "chown 1 %s",
                                 "setfacl -m u:1:r %s"])
def test_used_and_gone(stet, work, place, running, how):
    (place / "old").write_text("old\n")
    running.say("echo one > a; " + how % place)
    umount(place)
    missed = f"the filesystem of {place}: mount that again"
    r = stet("status", cwd=work)
    assert r.rc != 0 and missed in r.err
    rc, err = running.end()
    assert rc == 125 and "ended with status 0, but t1" in err and missed in err
    r = stet("commit", cwd=work)
    assert r.rc != 0 and missed in r.err
    assert os.listdir(work) == []
    stet("rollback", cwd=work).ok()


def test_unused_by_the_command_used_by_a_visit(stet, work, place):
    """What a run left alone may be used by who explores it, and is missed then."""
    stet.sh("echo one > a", cwd=work).ok()
    p = stet.popen("explore", "-q", "--", "sh", "-c", f"> {place}/x; echo READY; read _", cwd=work,
                   stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"READY\n", p.stderr.read()
    umount(place)
    p.communicate(b"\n", 60)
    r = stet("commit", cwd=work)
    assert r.rc != 0 and "mount that again" in r.err


def test_an_exec_is_committed_all_the_same(stet, work, place):
    p = stet.popen("exec", "--", "sh", "-c", "echo READY; read _; echo one > a", cwd=work,
                   stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"READY\n", p.stderr.read()
    umount(place)
    _, err = p.communicate(b"\n", 60)
    assert (p.returncode, (work / "a").exists()) == (0, True), err


def test_they_come_and_go_while_many_start(stet, work, tmp_path):
    """As where containers are started and stopped all the time."""
    stet.ready()
    places = [tmp_path / f"p{i}" for i in range(3)]
    stop = threading.Event()

    def churn():
        for p in places:
            p.mkdir()
        while not stop.is_set():
            for p in places:
                mount_at(p)
            for p in places:
                umount(p)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        results = [stet.run("sh", "-c", "echo x > a", cwd=work) for _ in range(40)]
    finally:
        stop.set()
        thread.join()
    for r in results:
        assert (r.rc, r.err) == (0, "")
