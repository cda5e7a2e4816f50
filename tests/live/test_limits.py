# SPDX-License-Identifier: Apache-2.0
"""Limits hold, without privilege; who passes one is stopped, and it is named."""
import os
import signal
import time

import pytest
from stetlib import processes_with, wait_until

FILL = "i=0; while :; do head -c 300000 /dev/zero > $1$i; i=$((i+1)); done"
HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"
SHARED = """
import mmap, os, time
m = mmap.mmap(-1, 48 << 20)
m.write(b"x" * len(m))
x = bytearray(40 << 20)
for _ in range(4):
    if os.fork() == 0:
        sum(x[::4096]), sum(m[::4096])
        time.sleep(1)
        os._exit(0)
time.sleep(1)
"""
HELD = "import mmap, os, time\nm = mmap.mmap(-1, 200 << 20)\nm.write(b'x' * len(m))\ntime.sleep(60)"
ORPHANS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    pids = [os.fork() for _ in range(2)]
    if 0 in pids:
        end = time.process_time() + 0.4
        while time.process_time() < end: pass
        os._exit(0)
    time.sleep(0.05)
"""

# In no shell's words: the policy knows those.
BOMB = """
import os, time
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)
"""

CLOSED = """
import os, time
os.mkdir("d")
files = [open(f"d/{i}", "wb", buffering=0) for i in range(8)]
os.chmod("d", 0)
for f in files: f.write(bytes(1 << 20))
time.sleep(60)
"""

# In memory, for a user: root's /run is captured.
RUN = "/dev" if os.geteuid() == 0 else f"/run/user/{os.getuid()}"

CASES = {
    # name: (options, argv, limit, exact amount that is allowed)
    "spin": (["--cpu", "300ms"], ["sh", "-c", "while :; do :; done"], "cpu", 300),
    "many spin": (["--cpu", "400ms"],
                  ["sh", "-c", "for i in 1 2 3; do (while :; do :; done) & done; wait"], "cpu", 400),
    "orphans": (["--cpu", "1s", "--pids", "400"], ["python3", "-c", ORPHANS], "cpu", 1000),
    "hog": (["--memory", "80M"], ["python3", "-c", HOG], "memory", 80 << 20),
    "children hog": (["--memory", "120M"],
                     ["sh", "-c", "for i in 1 2 3 4 5 6; do python3 -c \"x = bytearray(30 << 20); "
                                  "import time; time.sleep(60)\" & done; wait"],
                     "memory", 120 << 20),
    "shared memory": (["--memory", "100M"], ["python3", "-c", HELD], "memory", 100 << 20),
    "files in memory": (["--memory", "60M"],
                        ["sh", "-c", "head -c 100000000 /dev/zero > /dev/shm/x; sleep 60"],
                        "memory", 60 << 20),
    "files in /dev": (["--memory", "60M"],
                      ["sh", "-c", "head -c 100000000 /dev/zero > /dev/x; sleep 60"],
                      "memory", 60 << 20),
    "files in the private /run": (["--memory", "60M"],
                                  ["sh", "-c", f"head -c 100000000 /dev/zero > {RUN}/x; sleep 60"],
                                  "memory", 60 << 20),
    "a little of each": (["--memory", "90M"],
                         ["sh", "-c", f"for d in {RUN} /dev/shm; do head -c 40000000 /dev/zero > $d/x; "
                          "done; exec python3 -c 'import time; x = bytearray(40 << 20); "
                          "time.sleep(60)'"], "memory", 90 << 20),
    "fork bomb": (["--pids", "60"], ["python3", "-c", BOMB], "pids", 60),
    "threads": (["--pids", "20"],
                ["python3", "-c", "import threading, time\nfor _ in range(50):\n"
                 " threading.Thread(target=time.sleep, args=(60,)).start()"], "pids", 20),
    "many files": (["--disk", "6M"], ["sh", "-c", FILL, "sh", "./f"], "disk", 6 << 20),
    "private tmp": (["--disk", "6M"], ["sh", "-c", FILL, "sh", "/tmp/f"], "disk", 6 << 20),
    "closed directory": (["--disk", "6M"], ["python3", "-c", CLOSED], "disk", 6 << 20),
    # Never more than one at a time; what was before each rm is kept.
    "checkpoints": (["--disk", "6M"],
                    ["sh", "-c", "for i in 1 2 3 4 5 6; do head -c 1500000 /dev/urandom > f; rm f; done"],
                    "disk", 6 << 20),
    "one file": (["--disk", "6M"], ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=4000"],
                 "disk", 6 << 20),
    "file size": (["--file-size", "1M"],
                  ["sh", "-c", "head -c 3000000 /dev/zero > big"], "file", 1 << 20),
    "file size, no signal": (["--file-size", "1M"],
                             ["python3", "-c", "open('big', 'wb').write(bytes(3 << 20))"],
                             "file", 1 << 20),
    "file size, and the shell goes on": (["--file-size", "1M"],
                                         ["sh", "-c", "head -c 3000000 /dev/zero > big; true"],
                                         "file", 1 << 20),
    "file size, and it waits": (["--file-size", "1M"],
                                ["sh", "-c", "head -c 3000000 /dev/zero > big; sleep 60"],
                                "file", 1 << 20),
    "flood": (["--output-limit", "2M"], ["yes"], "output", 2 << 20),
    "both streams": (["--output-limit", "100K"],
                     ["sh", "-c", "head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2"],
                     "output", 100 << 10),
}


@pytest.mark.parametrize("name", CASES)
def test_who_passes_a_limit_is_stopped(stet, work, name):
    opts, argv, limit, allowed = CASES[name]
    if name == "fork bomb" and os.geteuid() == 0:
        # Without a kernel limit (a cgroup) it is a race with the machine's own life.
        argv = ["sh", "-c", "for i in $(seq 150); do sleep 60 & done; wait"]
    begin = time.monotonic()
    r = stet("exec", "--json", "--output", "100", "--timeout", "50s", *opts, "--", *argv,
             cwd=work).ok(137).json()
    assert (r["reason"], r["limit"]["what"], r["limit"]["allowed"]) == ("limit", limit, allowed)
    assert r["limit"]["used"] >= allowed
    assert r["fate"] in ("rolled back", "dropped")
    assert os.listdir(work) == []
    assert time.monotonic() - begin < 40
    assert not processes_with(str(work))


QUIET = {
    "shared pages count once": (["--memory", "150M"], ["python3", "-c", SHARED]),
    "all at once": (["--memory", "1G", "--cpu", "30s", "--pids", "50", "--disk", "50M",
                     "--file-size", "10M", "--output-limit", "1M", "--timeout", "50s"],
                    ["sh", "-c", "seq 10000; head -c 2000000 /dev/zero > f; sleep 0.3"]),
    "a file of just that size": (["--file-size", "1M"],
                                 ["sh", "-c", "head -c 1048576 /dev/zero > f"]),
    "just below": (["--pids", "20"],
                   ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.4 & done; wait"]),
    "a hard link is one file": (["--disk", "3M"],
                                ["sh", "-c", "head -c 1500000 /dev/zero > f; "
                                 "for i in 1 2 3 4 5; do ln f l$i; done; sleep 0.5"]),
}


@pytest.mark.parametrize("name", QUIET)
def test_who_does_not_is_left_alone(stet, work, name):
    opts, argv = QUIET[name]
    r = stet("exec", "--json", *opts, "--", *argv, cwd=work).ok().json()
    assert r["reason"] == "done", r


def test_one_that_ends_just_as_the_watcher_comes(stet, work):
    """Its processes are gone, and so is its /proc: the host's, which was below it, is not counted."""
    for i in range(60):
        r = stet("exec", "--json", "--cpu", "1s", "--", "sleep", f"0.0{150 + i * 7 % 90}", cwd=work)
        assert r.ok().json()["reason"] == "done", (i, r)


def test_checks_share_what_is_left(stet, work):
    r = stet("exec", "--json", "--cpu", "2s", "--check", "while :; do :; done", "--", "true",
             cwd=work).ok(137).json()
    assert (r["reason"], r["limit"]["what"], r["exit"]) == ("limit", "cpu", 0)
    r = stet("exec", "--json", "--output-limit", "100K", "--check", "head -c 60000 /dev/zero",
             "--", "head", "-c", "60000", "/dev/zero", cwd=work).ok(137).json()
    assert (r["reason"], r["limit"]["what"]) == ("limit", "output")


def test_run_takes_them_too(stet, work):
    r = stet("run", "--disk", "3M", "--", "sh", "-c", FILL, "sh", "./f", cwd=work).ok(137)
    assert "disk space limit of 3.0 MiB passed" in r.err
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    r = stet("run", "--on-failure", "rollback", "--output-limit", "10K", "--", "yes", cwd=work)
    assert r.ok(137).out.startswith("y\ny\n") and "output limit of 10.0 KiB passed" in r.err


def test_a_pipe_is_metered_too(stet, work):
    """Output into a pipe of ours, which the command would otherwise be given as it is."""
    r = stet("exec", "--output-limit", "1M", "--", "sh", "-c", "seq 100000; echo done >&2", cwd=work)
    assert r.ok().out == "".join(f"{i}\n" for i in range(1, 100001))


def test_nothing_of_ours_is_left(stet, work):
    """No watcher, no cgroup."""
    stet("exec", "--cpu", "20s", "--memory", "1G", "--disk", "1G", "--", "sleep", "0.2",
         cwd=work).ok()
    base = "/sys/fs/cgroup"
    for top in (base, os.path.join(base, "unified")):
        if os.path.isdir(top):
            mine = [d for d in os.listdir(top) if d.startswith("stet-")]
            alive = [d for d in mine if os.path.exists(f"/proc/{d.split('-')[1]}")]
            assert mine == alive


def watcher_of(pid):
    """The child that is in no PID namespace of its own and has a socket first: who notes what the
    host has at the paths, and may be there sooner, has a pipe."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        children = f.read().split()
    for child in children:
        with open(f"/proc/{child}/status", encoding="utf-8") as f:
            if not any(line.startswith("NSpid:") and len(line.split()) == 2 for line in f):
                continue
        try:
            null, first = (os.readlink(f"/proc/{child}/fd/{n}") for n in (1, 3))
        except FileNotFoundError:  # it closes them just now
            continue
        if null == "/dev/null" and first.startswith("socket:"):
            return int(child)
    return None


def test_without_a_watcher_nothing_runs(stet, work):
    mark = f"4{os.getpid()}2"
    p = stet.popen("exec", "--json", "--disk", "1G", "--", "sh", "-c", f"echo x > x; sleep {mark}",
                   cwd=work)
    wait_until(lambda: processes_with(f"sleep\0{mark}"))
    os.kill(wait_until(lambda: watcher_of(p.pid)), signal.SIGKILL)
    out, _ = p.communicate(timeout=60)
    assert p.returncode == 125 and b"who watched over the limits is gone" in out
    assert not processes_with(f"sleep\0{mark}")
    assert os.listdir(work) == []
    assert [t["state"] for t in stet.transactions()] in (["rolled back"], ["pruned"], [])


@pytest.mark.parametrize("where", sorted({"/dev", RUN}))
def test_private_directories_are_bounded(stet, work, where):
    """What needs no limit to be kept within one: they hold little."""
    r = stet.sh(f"head -c 10000000 /dev/zero > {where}/x && echo fits; "
                f"head -c 400000000 /dev/zero > {where}/x; stat -c %s {where}/x", cwd=work).ok()
    fits, size = r.out.split()
    assert fits == "fits" and int(size) < 300_000_000
    assert "No space left" in r.err
