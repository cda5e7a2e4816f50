# SPDX-License-Identifier: Apache-2.0
"""Many transactions at once, and supervisors that are killed."""
import fcntl
import os
import signal
import subprocess
import uuid

import pytest
from stetlib import differences, processes_with, wait_until


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return sorted(line.split()[4] for line in f)


def test_twenty_in_one_directory(stet, work, digest):
    (work / "shared").write_text("host\n")
    stet.ready()
    before, table = digest(work), mounts()
    script = ('for i in $(seq 20); do echo "$1 $i" >> shared; done; echo "$1" > "own-$1"; '
              'cat shared; ls')
    running = [stet.popen("run", "--quiet", "--name", f"run-{n}", "--", "bash", "-c", script,
                          "bash", str(n), cwd=work) for n in range(20)]
    for n, p in enumerate(running):
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
        lines = out.decode().splitlines()
        assert lines[:21] == ["host"] + [f"{n} {i}" for i in range(1, 21)]
        assert lines[21:] == [f"own-{n}", "shared"]
    for n in range(20):
        assert stet.changes(f"run-{n}", below=work) == {b"shared": "M",
                                                        f"own-{n}".encode(): "A"}
    ids = [t["id"] for t in stet.transactions()]
    assert len(ids) == len(set(ids)) == 20
    assert differences(before, digest(work)) == []
    assert mounts() == table


def test_rollback_of_one_leaves_the_others(stet, work):
    for n in range(3):
        stet.sh(f"echo {n} > f", cwd=work, opts=["--name", f"run-{n}"]).ok()
    stet("rollback", "run-1").ok()
    stet("prune").ok()
    assert {t["name"]: t["state"] for t in stet.transactions()} == {
        "run-0": "pending", "run-2": "pending"}
    assert stet.changes("run-2", below=work) == {b"f": "A"}


def start(stet, work, script, *opts):
    """Starts a run; returns it when its command has said READY."""
    # Not bash: that ignores SIGQUIT whatever one does.
    shell = "bash" if "exec -a" in script or "trap" in script else "sh"
    p = stet.popen("run", "--quiet", *opts, "--", shell, "-c", script, cwd=work)
    line = p.stdout.readline()
    assert line == b"READY\n", (line, p.stderr.read() if line == b"" else "")
    return p


def finish(p):
    p.stdout.close()
    p.stderr.close()
    p.wait(60)


def test_killed_supervisor(stet, work, digest):
    """No process and no mount is left; the transaction is there to be looked at."""
    (work / "a").write_text("a\n")
    stet.ready()
    before, table = digest(work), mounts()
    mark = f"mark-{uuid.uuid4()}"
    p = start(stet, work, f"echo changed > a; echo new > b; "
              f"(trap '' TERM HUP; setsid bash -c 'exec -a {mark} sleep 1000') & "
              f"until pgrep -f ^{mark} >/dev/null; do :; done; echo READY; "
              f"exec -a {mark} sleep 1000")
    assert stet.transactions()[0]["state"] == "running"
    p.send_signal(signal.SIGKILL)
    finish(p)
    wait_until(lambda: not processes_with(mark), message="processes are left")
    assert mounts() == table
    assert stet.transactions()[0]["state"] == "interrupted"
    assert stet.changes(cwd=work, below=work) == {b"a": "M", b"b": "A"}
    assert "changed" in stet("diff", cwd=work).ok().out
    stet("rollback", cwd=work).ok()
    assert stet.transactions()[0]["state"] == "rolled back"
    stet("prune").ok()
    assert differences(before, digest(work)) == []


def kill_inner(p):
    """kill -9 of the sandbox's own PID 1, as the kernel does it when memory is short."""
    with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
        for pid in f.read().split():
            os.kill(int(pid), signal.SIGKILL)


def test_killed_sandbox(stet, work):
    """What the command did until then is not lost."""
    p = start(stet, work, "echo new > b; echo READY; sleep 1000")
    kill_inner(p)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 137
    assert err.endswith(b"stet: the sandbox ended unexpectedly\n")
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    assert stet.changes(cwd=work, below=work) == {b"b": "A"}


@pytest.mark.parametrize("opts,states", [([], []), (["--keep-on-failure"], ["pending"])])
def test_killed_sandbox_of_an_atomic_one(stet, work, opts, states):
    p = stet.popen("exec", *opts, "--", "bash", "-c", "echo x > b; echo READY; sleep 1000",
                   cwd=work)
    assert p.stdout.readline() == b"READY\n"
    kill_inner(p)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 125 and b"stet: the sandbox ended unexpectedly" in err
    assert [t["state"] for t in stet.transactions() if t["state"] != "rolled back"] == states
    assert not (work / "b").exists()


def test_explore_of_a_killed_one(stet, work):
    p = start(stet, work, "echo new > b; echo READY; sleep 1000")
    p.send_signal(signal.SIGKILL)
    finish(p)
    wait_until(lambda: stet.transactions()[0]["state"] == "interrupted")
    assert stet("explore", "--", "cat", "b", cwd=work).ok().out == "new\n"


def test_looking_is_not_holding(stet, work):
    """Any number may look at a transaction that died: none of them makes it seem to run."""
    p = start(stet, work, "echo READY; sleep 1000")
    p.send_signal(signal.SIGKILL)
    finish(p)
    wait_until(lambda: stet.transactions()[0]["state"] == "interrupted")
    tx = os.path.join(stet.home, ".local/state/stet/tx")
    looks = [os.open(os.path.join(tx, n), os.O_RDONLY) for n in os.listdir(tx)]
    for fd in looks:
        fcntl.flock(fd, fcntl.LOCK_SH)
    assert stet.transactions()[0]["state"] == "interrupted"
    for fd in looks:
        os.close(fd)
    stet("rollback", cwd=work).ok()


def test_running_one_cannot_be_rolled_back(stet, work):
    p = start(stet, work, "echo READY; sleep 1000")
    try:
        r = stet("rollback", cwd=work)
        assert r.rc == 4, repr(r)
        assert stet.transactions()[0]["state"] == "running"
        stet("prune").ok()
        assert stet.transactions()[0]["state"] == "running"
    finally:
        p.terminate()
        finish(p)


def test_status_of_a_running_one(stet, work):
    p = start(stet, work, "echo new > b; echo READY; sleep 1000")
    try:
        assert stet.changes(cwd=work, below=work) == {b"b": "A"}
    finally:
        p.terminate()
        finish(p)


@pytest.mark.parametrize("sig,rc", [(signal.SIGTERM, 143), (signal.SIGINT, 130),
                                    (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
def test_signals_are_passed_on(stet, work, sig, rc):
    p = start(stet, work, "echo READY; exec sleep 1000")
    p.send_signal(sig)
    p.wait(60)
    assert p.returncode in (rc, -sig)
    finish(p)


def test_a_signal_can_be_handled_inside(stet, work):
    p = start(stet, work, "trap 'echo GOT; exit 7' TERM; echo READY; while :; do sleep 0.05; done")
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=60)
    assert (p.returncode, out) == (7, b"GOT\n")


def test_a_deaf_command_is_killed_by_the_second_signal(stet, work):
    mark = f"mark-{uuid.uuid4()}"
    p = start(stet, work, f"trap '' TERM INT; echo READY; "
              f"while :; do bash -c 'exec -a {mark} sleep 1000'; done")
    p.send_signal(signal.SIGTERM)
    p.send_signal(signal.SIGINT)
    p.wait(60)
    finish(p)
    wait_until(lambda: not processes_with(mark))
    assert stet.transactions() == [] or stet.transactions()[0]["state"] == "pending"


def test_kill_at_any_moment(stet, work, digest):
    """Killed at growing distances from the start: always whole, never half."""
    (work / "a").write_text("a\n")
    stet.ready()
    before, table = digest(work), mounts()
    mark = f"mark-{uuid.uuid4()}"
    for n in range(24):
        p = stet.popen("run", "--quiet", "--", "bash", "-c",
                       f"echo x > a; exec -a {mark} sleep 1000", cwd=work)
        try:
            p.wait(0.004 * n)
        except subprocess.TimeoutExpired:
            pass
        p.kill()
        finish(p)
    wait_until(lambda: not processes_with(mark))
    assert mounts() == table
    for t in stet.transactions():
        assert t["state"] == "interrupted", t
        assert set(stet.changes(t["id"], below=work)) <= {b"a"}
        stet("rollback", t["id"]).ok()
    stet("prune").ok()
    assert stet.transactions() == []
    assert differences(before, digest(work)) == []
    left = [os.path.join(d, f) for d, _, fs in os.walk(stet.state) for f in fs]
    assert not [f for f in left if not os.path.basename(f).startswith(("journal", "audit", "looked", "stores"))], left
