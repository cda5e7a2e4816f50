# SPDX-License-Identifier: Apache-2.0
"""Mounts of others that come and go while a run starts, and while it goes on."""
import glob
import os
import signal
import subprocess
import threading

import pytest
from stetlib import has_user_xattrs, processes_with, wait_until

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

    def __init__(self, stet, work, *opts):
        self.p = stet.popen("run", "--quiet", *(opts or ["--no-policy"]), "--", "sh", "-c",
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


def test_between_a_command_and_its_checks(stet, work, place):
    """Each check is a sandbox of its own in the same layers."""
    p = stet.popen("exec", "-c", "echo READY >&2; read _ < gate", "-c", "[ $(cat a) = one ]", "--",
                   "sh", "-c", "echo one > a; mkfifo gate", cwd=work)
    assert p.stderr.readline() == b"READY\n"
    umount(place)
    (pid,) = processes_with("read _ < gate", "/bin/sh\0-c")
    with open(f"/proc/{pid}/root{work}/gate", "w", encoding="ascii") as f:
        f.write("\n")
    _, err = p.communicate(timeout=60)
    assert (p.returncode, (work / "a").exists()) == (0, True), err


def test_what_a_check_changes_has_its_checkpoint(stet, place):
    """The command has left the layer alone; what comes after it may not."""
    (place / "sub").mkdir()
    (place / "sub/f").write_text("x")
    stet("exec", "--keep-on-failure", "-c", "echo hi > a; rm -rf sub; false", "--", "true",
         cwd=place).ok(1)
    assert "rm -rf sub" in stet("log", cwd=place).ok().out


KILL = """
version: 1
rules:
  - {id: test.kill, verdict: kill, program: ["*"], operands: [KILLME], why: it is a test}
"""


def test_ended_by_a_verdict(stet, work, place, home):
    (home / "policy.yaml").write_text(KILL)
    running = Running(stet, work, "--policy", home / "policy.yaml")
    running.say("echo one > a; sleep 1000 & sleep 1000 &")
    umount(place)
    running.p.stdin.write(b"/bin/echo KILLME\n")
    out, err = running.p.communicate(timeout=60)
    assert (running.p.returncode, out) == (128 + signal.SIGKILL, b""), err
    assert stet.transactions()[0]["state"] == "rolled back"


@pytest.mark.parametrize("opts, script, rc", [
    (["--timeout", "300ms"], "trap '' TERM; while :; do sleep 0.01; done", 124),
    (["--output-limit", "1000"], "yes", 137)])
def test_ended_by_a_limit(stet, work, place, opts, script, rc):
    """What was decided for that case is done."""
    for action, state in (("keep", "pending"), ("rollback", "rolled back")):
        if not os.path.ismount(place):
            mount_at(place)
        p = stet.popen("run", "--quiet", "--no-policy", *opts, "--on-failure", action, "--", "sh",
                       "-c", f"echo one > a; echo READY; {script}", cwd=work)
        assert p.stdout.readline() == b"READY\n"
        umount(place)
        _, err = p.communicate(timeout=60)
        assert (p.returncode, stet.transactions()[0]["state"]) == (rc, state), err
        if action == "keep":
            stet("commit", cwd=work).ok()
            stet("undo", cwd=work).ok()


def test_gone_right_after_a_large_run(stet, work, place):
    """What PID 1 has told is not forgotten by who notes the rest in the background."""
    stet.sh("for i in $(seq 3000); do echo > f$i; done", cwd=work).ok()
    subprocess.run(["umount", "-l", place], check=True)
    stet("commit", cwd=work).ok()
    assert len(os.listdir(work)) == 3000


def test_nothing_is_left_below(stet, work, tmp_path):
    """A start that comes too late makes no store in what the mount had covered."""
    places = [tmp_path / f"p{i}" for i in range(3)]
    come_and_go(places, lambda: [stet.run("true", cwd=work) for _ in range(60)])
    assert [os.listdir(p) for p in places] == [[], [], []]


def come_and_go(places, meanwhile):
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
        return meanwhile()
    finally:
        stop.set()
        thread.join()


def test_they_come_and_go_while_many_start(stet, work, tmp_path):
    """As where containers are started and stopped all the time."""
    stet.ready()
    places = [tmp_path / f"p{i}" for i in range(3)]
    results = come_and_go(places, lambda: [stet.run("sh", "-c", "echo x > a", cwd=work)
                                           for _ in range(40)])
    for r in results:
        assert (r.rc, r.err) == (0, "")
