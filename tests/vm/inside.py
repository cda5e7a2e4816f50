# SPDX-License-Identifier: Apache-2.0
"""usage: inside.py STAGE

In the virtual machine, started by init.c: makes a machine of it, as far as the tests need
one, and runs them, as root and as an ordinary user, each in a cgroup that is theirs to divide.
What is printed goes to the host by a port; the last line is `N passed, N failed`.
"""
import fcntl
import glob
import json
import os
import socket
import struct
import subprocess
import sys
import time

STAGE = sys.argv[1]
sys.path.insert(0, f"{STAGE}/tests/lib")

import harness  # noqa: E402
from identity import identities  # noqa: E402

CGROUPS = "/sys/fs/cgroup"
CONTROLLERS = "+memory +pids +cpu"
# What does not run in here, and why.
LEFT_OUT = {
    "unit test_watch": "before Linux 6.8, writing to a file of an overlay does not show in the "
                       "layer: nothing is watched there",
    "test_policy_report": "it is about the policy alone, and takes as long as the rest",
}


def mount(what, where, kind, options="defaults"):
    os.makedirs(where, exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, what, where], check=True)


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def network_up():
    """The loopback device, with its address; there is no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        up = struct.pack("16sh14x", b"lo", 0x41)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, up)  # SIOCSIFFLAGS


def port():
    """Where the host listens."""
    while not (found := glob.glob("/dev/vport*")):
        time.sleep(0.05)
    return os.open(found[0], os.O_WRONLY | os.O_CLOEXEC)


def settle_in():
    """What an ordinary system has done by the time somebody logs in."""
    mount("tmpfs", "/run", "tmpfs", "mode=755,nosuid,nodev")
    os.makedirs("/run/lock", exist_ok=True)
    # Their devices are there before anybody has used one.
    subprocess.run(["modprobe", "-a", "fuse", "loop"], check=True)
    mount("devpts", "/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666")
    mount("tmpfs", "/dev/shm", "tmpfs", "nosuid,nodev")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"),
                         ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    for name, mode in (("ptmx", 0o666), ("fuse", 0o666), ("tty", 0o666)):
        if os.path.exists(f"/dev/{name}"):
            os.chmod(f"/dev/{name}", mode)
    socket.sethostname("vm")
    network_up()
    mount("cgroup2", CGROUPS, "cgroup2", "nosuid,nodev,noexec,nsdelegate")
    write(f"{CGROUPS}/cgroup.subtree_control", CONTROLLERS)


def delegate(who):
    """A cgroup that is theirs, as systemd's Delegate= makes one; the leaf their programs are in."""
    top = f"{CGROUPS}/{who.label}.slice"
    os.mkdir(top)
    for path in (top, *(f"{top}/cgroup.{n}" for n in ("procs", "threads", "subtree_control"))):
        os.chown(path, who.uid, who.gid)
    write(f"{top}/cgroup.subtree_control", CONTROLLERS)
    leaf = f"{top}/session"
    os.mkdir(leaf)
    for path in (leaf, *(f"{leaf}/cgroup.{n}" for n in ("procs", "threads", "subtree_control"))):
        os.chown(path, who.uid, who.gid)
    return leaf


class Loud(harness.Report):
    """One that says at once what a test file came to: hours may pass until the end."""

    def __init__(self):
        super().__init__()
        self.said = 0

    def add(self, suite, passed, failed, impossible, seconds, trouble):
        super().add(suite, passed, failed, impossible, seconds, trouble)
        with self.lock:
            print(f"  {suite}: {passed} passed, {failed} failed, {impossible} impossible here "
                  f"({seconds:.0f} s)", flush=True)
            for other, *_, names, text in self.again[self.said:]:
                print(f"  {other}: to be tried again: {', '.join(names)}\n"
                      f"{harness.shortened(text, 80)}", flush=True)
            self.said = len(self.again)


def unit_jobs(report, who):
    found = []
    for program in sorted(glob.glob(f"{STAGE}/unit/*")):
        if f"unit {os.path.basename(program)}" in LEFT_OUT:
            continue
        # Some change to another user on the way: not in root's home.
        d = f"{STAGE}/{who.label}/{len(found)}"
        os.makedirs(d, 0o755)
        os.chown(d, who.uid, who.gid)
        found.append((harness.unit_job, report, f"vm/unit/{who.label}", program,
                      harness.job_env(who, d, "release", STAGE), who, d))
    return found


def jobs(report, who, places, choice):
    """What was asked for, in that order; or everything."""
    files = {os.path.basename(f)[:-3]: f for suite in ("vm", "live")
             for f in sorted(glob.glob(f"{STAGE}/tests/{suite}/test_*.py"))}
    found = []
    for name in choice["names"] or ["unit"] + [n for n in files if n not in LEFT_OUT]:
        if name == "unit":
            found += unit_jobs(report, who)
            continue
        d = places.new(who)
        env = harness.job_env(who, d, "release", STAGE)
        env["STET_TEST_SLOW"] = str(choice["slow"])
        found.append((harness.pytest_job, report, f"vm/{name[5:]}/{who.label}", files[name], env,
                      who, d, choice["extra"]))
    return found


def run_as(who, choice):
    """In a process of its own, which is in their cgroup; (passed, failed)."""
    leaf = delegate(who)
    read, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        write(f"{leaf}/cgroup.procs", "0")
        report = Loud()
        places = harness.Places([who])
        todo = jobs(report, who, places, choice)
        harness.work_off(report, todo, places)
        harness.try_again(report, places)
        for suite in sorted(report.suites):
            report.line(suite)
        os.write(out, json.dumps(report.total()).encode())
        os._exit(0)
    os.close(out)
    with open(read, encoding="ascii") as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else (0, 1)


def main():
    settle_in()
    out = port()
    os.dup2(out, 1)
    os.dup2(out, 2)
    with open(f"{STAGE}/vm.json", encoding="utf-8") as f:
        choice = json.load(f)
    harness.JOB_SECONDS *= choice["slow"]
    os.environ.pop("TERM", None)
    print(f"in the machine: Linux {os.uname().release}", flush=True)
    for name in sorted(LEFT_OUT):
        print(f"left out: {name}: {LEFT_OUT[name]}")
    passed = failed = 0
    with identities() as people:
        for who in (p for p in people if p.label in choice["people"]):
            good, bad = run_as(who, choice)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed", flush=True)


main()
