# SPDX-License-Identifier: Apache-2.0
"""Limits by a real cgroup of version 2, which was delegated to whoever runs this.

That the kernel keeps them and not the process that looks: that one is stopped meanwhile.
"""
import json
import os
import signal
import subprocess

import pytest
from stetlib import SLOW, processes_with, wait_until

MIB = 1 << 20
HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"
MEMFD = """
import os, time
fd = os.memfd_create("x")
for _ in range(200): os.write(fd, bytes(1 << 20))
time.sleep(600)
"""
FAMILY = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        x = bytearray(30 << 20)
        time.sleep(600)
time.sleep(600)
"""
# Says how many it came to, with itself.
FORKS = """
import os, signal, time
pids = []
try:
    while len(pids) < 400:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
except BlockingIOError:
    pass
print(1 + len(pids), flush=True)
for pid in pids: os.kill(pid, signal.SIGKILL)
"""
BOMB = """
import os, time
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)
"""
# Each lives for a moment and is waited for by nobody.
MAYFLIES = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.01
        while time.process_time() < end: pass
        os._exit(0)
    time.sleep(0.002)
"""
WAITING = 'read line; exec "$@"'


def place():
    """The cgroup that is ours to divide: the one above that in which we are."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        path = f.read().strip()
    assert path.startswith("0::/") and path.endswith("/session"), path
    return "/sys/fs/cgroup" + os.path.dirname(path[3:])


def left():
    return [d for d in os.listdir(place()) if d.startswith("stet-")]


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def child(pid, inside):
    """A child of ours: PID 1 of the sandbox, or who watches."""
    for other in read(f"/proc/{pid}/task/{pid}/children").split():
        with open(f"/proc/{other}/status", encoding="utf-8") as f:
            depth = next(len(line.split()) - 1 for line in f if line.startswith("NSpid:"))
        if (depth > 1) == inside:
            return int(other)
    return None


def begin(stet, work, opts, argv):
    """A command that waits for a line; the watcher is stopped, and PID 1 is in its cgroup."""
    p = stet.popen("exec", "--json", "--timeout", "1000s", *opts, "--", "sh", "-c", WAITING,
                   "sh", *argv, cwd=work, stdin=subprocess.PIPE)
    watcher = wait_until(lambda: child(p.pid, False))
    os.kill(watcher, signal.SIGSTOP)
    wait_until(lambda: "\nState:\tT" in read(f"/proc/{watcher}/status"))
    group = read(f"/proc/{child(p.pid, True)}/cgroup")[3:]
    assert os.path.dirname(f"/sys/fs/cgroup{group}") == place()
    return p, f"/sys/fs/cgroup{group}"


def finish(p, rc):
    out, err = p.communicate(b"\n", timeout=60 * SLOW)
    assert p.returncode == rc, (out, err)
    return json.loads(out)


def test_doctor_says_so(stet, work):
    checks = {c["id"]: c for c in stet("doctor", "--json", cwd=work).ok().json()["checks"]}
    assert checks["cgroup"]["status"] == "ok"
    assert f"memory and processes by a group in {place()}," in checks["limits"]["found"]


MEMORY = {
    "one process": (["python3", "-c", HOG], 80),
    "several": (["python3", "-c", FAMILY], 120),
    "a file in memory, not mapped, without a name": (["python3", "-c", MEMFD], 60),
    "a file in memory": (["sh", "-c", "head -c 100000000 /dev/zero > /dev/shm/x; sleep 600"], 60),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_kept_by_the_kernel(stet, work, name):
    argv, mib = MEMORY[name]
    p, group = begin(stet, work, ["--memory", f"{mib}M"], argv)
    assert int(read(f"{group}/memory.max")) == mib * MIB
    assert read(f"{group}/memory.oom.group") == "1"
    r = finish(p, 137)
    assert (r["reason"], r["limit"]["what"], r["limit"]["allowed"]) == \
        ("limit", "memory", mib * MIB)
    assert r["fate"] in ("rolled back", "dropped")
    assert left() == []
    assert not processes_with(str(work))


def test_processes_are_kept_by_the_kernel(stet, work):
    p, group = begin(stet, work, ["--pids", "30"], ["python3", "-c", FORKS])
    assert int(read(f"{group}/pids.max")) == 32
    r = finish(p, 137)
    # RLIMIT_NPROC alone would be reached later, and never by root.
    assert int(r["stdout"]) in (30, 31)
    assert (r["reason"], r["limit"]["what"], r["limit"]["allowed"]) == ("limit", "pids", 30)
    assert left() == []


def test_a_fork_bomb_ends(stet, work):
    """Root's, too: a race that it could win where there is no cgroup."""
    r = stet("exec", "--json", "--pids", "60", "--", "python3", "-c", BOMB, cwd=work)
    r = r.ok(137).json()
    assert (r["reason"], r["limit"]["what"], r["limit"]["allowed"]) == ("limit", "pids", 60)
    assert left() == []


def test_time_of_those_who_are_seen_by_nobody_counts(stet, work):
    r = stet("exec", "--json", "--cpu", "1s", "--", "python3", "-c", MAYFLIES, cwd=work)
    r = r.ok(137).json()
    assert (r["reason"], r["limit"]["what"]) == ("limit", "cpu")
    assert r["limit"]["used"] >= 1000
    assert left() == []


def test_what_is_cached_is_not_memory_in_use(stet, work):
    stet.run("sh", "-c", "head -c 300000000 /dev/zero > big; cat big | wc -c",
             opts=["--memory", "100M"], cwd=work).ok()
    assert stet.changes(cwd=work, below=work) == {b"big": "A"}
    assert left() == []


def test_a_run_has_one_too(stet, work):
    r = stet("run", "--memory", "60M", "--", "python3", "-c", MEMFD, cwd=work).ok(137)
    assert "memory limit of 60.0 MiB passed" in r.err
    assert left() == []


OUT = """
echo max > {own}/memory.max
echo $$ > {top}/session/cgroup.procs
echo $$ > {top}/cgroup.procs
mkdir {own}/below
unshare -Urm sh -c 'mount -t cgroup2 c /mnt && echo 1 > /mnt/cgroup.procs' && echo mounted
unshare -UrmC sh -c 'mount -t cgroup2 c /mnt && echo 1 > /mnt/cgroup.procs' && echo mounted
mount -t cgroup2 c /mnt && echo mounted
mount -o remount,rw /sys/fs/cgroup && echo mounted
cat /proc/self/cgroup
exec python3 -c "$1"
"""


def test_nobody_gets_out(stet, work):
    stet.no_policy = True
    script = OUT.format(own="/sys/fs/cgroup$(cut -c4- /proc/self/cgroup)", top=place())
    p, group = begin(stet, work, ["--memory", "60M"], ["sh", "-c", script, "sh", MEMFD])
    r = finish(p, 137)
    assert r["limit"]["what"] == "memory"
    assert r["stdout"] == f"0::{group[len('/sys/fs/cgroup'):]}\n", r


def test_one_that_was_killed_leaves_nothing_for_long(stet, work):
    p, group = begin(stet, work, ["--memory", "60M"], ["sleep", "600"])
    p.kill()
    p.communicate()
    wait_until(lambda: read(f"{group}/cgroup.procs") == "")
    assert os.path.isdir(group)
    stet("exec", "--memory", "60M", "--", "true", cwd=work).ok()
    assert left() == []
