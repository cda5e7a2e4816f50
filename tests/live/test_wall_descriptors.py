# SPDX-License-Identifier: Apache-2.0
"""What the processes of a sandbox hold: every descriptor, root and working directory is one of a list.

In the sandbox's process namespace nothing may lie on another mount than those of its view, nor
lead out of it by "..". Outside, what is held is listed so that a new one is thought about.
"""
import collections
import contextlib
import glob
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

import pexpect
import pytest
from identity import USER
from stetlib import SLOW, Stet, wait_until

NEEDS = "ext4"
SANITIZED_APART = True

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="impossible here: only root can look into PID 1 of a sandbox")

NOWHERE = r"pipe:\[\d+\]|socket:\[\d+\]|/dev/null"
EVENTS = r"anon_inode:\[?(signalfd|pidfd|eventfd|eventpoll|timerfd|inotify)\]?|pidfd:\[\d+\]"
TERMINAL = r"/dev/pts/\d+|/dev/pts/ptmx|/dev/ptmx|/dev/tty"
# By kind of process, what each may hold. {home}, {state}, {work} are those of the run.
INSIDE = {
    # The kernel's own objects, a place in the view, and for a moment the program that is judged.
    "PID 1": [NOWHERE, EVENTS, TERMINAL, r"anon_inode:seccomp notify|anon_inode:seccomp",
              r"{work}|/|{home}|{top}|/proc(/.*)?", r"/memfd:\S+ \(deleted\)", r"/usr/bin/\S+"],
    "helper": [NOWHERE, EVENTS, TERMINAL, r"anon_inode:seccomp notify|anon_inode:seccomp",
               r"{work}(/.*)?|/|{home}|{top}|/proc(/.*)?", r"/memfd:\S+ \(deleted\)"],
    "command": [r"pipe:\[\d+\]|/dev/null|socket:\[\d+\]", TERMINAL, r"{work}(/.*)?"],
}
OUTSIDE = [NOWHERE, EVENTS, TERMINAL, r"/proc/\d+/mountinfo", r"{home}(/.*)?|{work}(/.*)?|{top}|{mounts}|/", r".*/\.stet-\d+(/.*)?", r"/memfd:\S+ \(deleted\)",
           r"/sys/fs/cgroup(/.*)?", r"/proc(/.*)?|/dev|/dev/shm|/dev/mqueue", r"{given}"]


class Who:
    """Who runs it, and where: a home of his own, as nobody else can read it."""

    def __init__(self, stet, name, where):
        self.home = tempfile.mkdtemp(prefix="stet-test-", dir=where)
        self.work = f"{self.home}/work"
        os.mkdir(self.work)
        self.stet = Stet(stet.path, self.home)
        self.kw = {}
        self.setpriv = []
        if name == "user":
            p = pwd.getpwnam(USER)
            self.kw = {"user": p.pw_uid, "group": p.pw_gid, "extra_groups": [p.pw_gid]}
            self.setpriv = ["setpriv", f"--reuid={p.pw_uid}", f"--regid={p.pw_gid}",
                            "--clear-groups"]
        for d in ("ro", "through", "hidden"):
            os.mkdir(f"{self.work}/{d}")
        self.own(self.home)

    def fill(self):
        """Directories that take a while to be renamed."""
        for i in range(3000):
            d = f"{self.work}/big{i // 100}/{i // 10 % 10}"
            os.makedirs(d, exist_ok=True)
            os.close(os.open(f"{d}/{i % 10}", os.O_CREAT))
        self.own(self.work)

    def own(self, path):
        if self.kw:
            subprocess.run(["chown", "-R", f"{self.kw['user']}:{self.kw['group']}", path], check=True)

    def start(self, *args, **kw):
        return self.stet.popen(*args, cwd=self.work, **self.kw, **kw)

    def call(self, *args):
        return self.stet(*args, cwd=self.work, **self.kw)

    def end(self):
        self.stet.end_all()
        shutil.rmtree(self.home, ignore_errors=True)


# --- looking ---

# out: what ".." leads to, if that is no root of the view; layer: the upper of a layer, and no more.
Held = collections.namedtuple("Held", "kind what target mount out layer")


def status(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        return next(line.split()[1:] for line in f if line.startswith(key + ":"))


def mount_of(fd):
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("mnt_id:"))


def place(fd):
    st = os.fstat(fd)
    return mount_of(fd), st.st_dev, st.st_ino


def top_of(path):
    """Where ".." ends, from a directory; None: it is none."""
    fd = os.open(path, os.O_PATH)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            return None
        while True:
            up = os.open("..", os.O_PATH, dir_fd=fd)
            over = place(up) == place(fd)
            os.close(fd)
            fd = up
            if over:
                return place(fd)
    finally:
        os.close(fd)


def view_of(pids):
    """The mounts that processes have, and their roots."""
    mounts, roots = set(), set()
    for pid in pids:
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as f:
                mounts |= {int(line.split()[0]) for line in f}
            fd = os.open(f"/proc/{pid}/root", os.O_PATH)
            roots.add(place(fd))
            os.close(fd)
    return mounts, roots


def family(pid):
    """A process and what comes of it."""
    parents = collections.defaultdict(list)
    for p in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{p}/stat", "rb") as f:
                parents[int(f.read().rpartition(b")")[2].split()[1])].append(int(p))
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        todo += parents[p]
    return found


def kind_of(pid, stet):
    numbers = status(pid, "NSpid")
    if len(numbers) == len(status("self", "NSpid")):
        return "outside"
    if numbers[-1] == "1":
        return "PID 1"
    return "helper" if os.readlink(f"/proc/{pid}/exe") == stet else "command"


def mount_points():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return [line.split()[4] for line in f]


LAYERS = set()


def is_upper(key):
    """Is it the directory of a layer that lies apart? By its device and inode number."""
    if key not in LAYERS:
        tops = [t for t in mount_points() if not t.startswith(("/proc", "/sys", "/dev"))]
        # In the root of a mount, or in a directory of the user's own.
        for d in glob.glob("/var/tmp/*/*/.stet-*/*/*/l*/up") + [
                d for t in tops for d in glob.glob(f"{t}/.stet-*/*/*/l*/up")]:
            with contextlib.suppress(OSError):
                st = os.stat(d)
                LAYERS.add((st.st_dev, st.st_ino))
    return key in LAYERS


def look_at(pid, kind, name, view):
    """One thing that a process holds."""
    path, (mounts, roots) = f"/proc/{pid}/{name}", view
    target = os.readlink(path)
    if not target.startswith("/"):
        return Held(kind, name, target, True, False, False)
    fd = os.open(path, os.O_PATH)
    here = place(fd)
    os.close(fd)
    end = top_of(path)
    mine = here[0] in mounts or target.startswith(("/memfd:", "/dev/null"))
    # A mount of its own, of this directory alone, that is nowhere in the tree.
    layer = not mine and target == "/" and end == here and is_upper(here[1:]) and \
        here[0] not in view_of(["self"])[0]
    return Held(kind, name, target, mine, end is not None and end not in roots, layer)


def look(pid, stet):
    """What the whole family holds right now; what goes meanwhile is not held."""
    found, members = set(), {}
    for p in family(pid):
        with contextlib.suppress(OSError, StopIteration):
            members[p] = kind_of(p, stet)
    inside = view_of(p for p, kind in members.items() if kind != "outside")
    for p, kind in members.items():
        with contextlib.suppress(OSError):
            view = view_of([p]) if kind == "outside" else inside
            for name in ["cwd", "root"] + [f"fd/{n}" for n in os.listdir(f"/proc/{p}/fd")]:
                with contextlib.suppress(OSError):
                    found.add(look_at(p, kind, name, view))
    return found


def judge(held, who, given="-"):
    """What is not on the list."""
    names = {"home": re.escape(who.home), "state": re.escape(who.stet.state), "given": given,
             "work": re.escape(who.work), "top": re.escape(os.path.dirname(who.work)) + "|/var/tmp",
             "mounts": "|".join(map(re.escape, mount_points()))}
    bad = []
    for h in sorted(held):
        allowed = OUTSIDE if h.kind == "outside" else INSIDE[h.kind]
        fits = any(re.fullmatch(re.sub(r"\{(\w+)\}", lambda m: names[m[1]], p), h.target) for p in allowed)
        if h.kind == "PID 1" and h.what == "fd/2" and re.fullmatch(TERMINAL, h.target):
            continue  # where --debug writes: nothing is below it, and nothing above
        if h.what in ("cwd", "root"):
            fits = h.kind in ("outside", "command") or h.target in ("/", who.work)
        if not fits or (h.kind != "outside" and (not h.mount or h.out) and not h.layer):
            bad.append(h)
    return bad


# --- in which a sandbox runs ---

READY = ["sh", "-c", "echo ready; exec sleep 1000"]
LIMITS = ["--memory", "1G", "--pids", "100", "--disk", "100M", "--cpu", "100s", "--timeout", "100s",
          "--file-size", "10M", "--output-limit", "1M"]
VARIANTS = {
    # name: options of run
    "no policy": ["--no-policy"],
    "gate": [],
    "limits": LIMITS,
    "no network": ["--no-network"],
    "no checkpoints": ["--checkpoint", "none"],
    "checkpoints": ["--checkpoint", "100ms"],
    "paths": ["--read-only", "ro", "--write-through", "through", "--hide", "hidden"],
    "everything": [*LIMITS, "--no-network", "--debug", "--read-only", "ro", "--hide", "hidden"],
}
BUSY = """
import os, subprocess, time
print("ready", flush=True)
time.sleep(1)
for i in range(10000):
    os.rename(f"big{i % 30}", "big")
    open("new", "w").write("x")
    subprocess.run(["true"])
    os.rename("big", f"big{i % 30}")
"""


@pytest.fixture(name="who", params=["user", "root"])
def fixture_who(request, stet):
    who = Who(stet, request.param, "/var/tmp")
    yield who
    who.end()


@pytest.fixture(name="away", params=["user", "root"])
def fixture_away(request, stet, filesystem):
    """His workspace lies on another filesystem than the state, which is in his home."""
    who = Who(stet, request.param, "/var/tmp")
    mount = tempfile.mkdtemp(prefix="stet-test-", dir="/var/tmp")
    # Where everybody gets to; the mount namespace is ours alone.
    subprocess.run(["mount", "--bind", filesystem("ext4"), mount], check=True)
    work, who.work = who.work, f"{mount}/{os.path.basename(who.home)}"
    shutil.move(work, who.work)
    who.own(who.work)
    yield who
    who.end()
    shutil.rmtree(who.work)
    wait_until(lambda: subprocess.run(["umount", mount], check=False).returncode == 0)
    os.rmdir(mount)


def started(p):
    assert p.stdout.readline() == b"ready\n", p.stderr.read()
    return p


def at_rest(pid, path):
    """What is held once the command has executed its program: two looks alike."""
    last, now = None, look(pid, path)
    while now != last:
        last, now = now, look(pid, path)
    return now


def watch(pid, who, seconds, enough=lambda held: False):
    """All that was ever held."""
    held, end = set(), time.monotonic() + seconds * SLOW
    while time.monotonic() < end and not enough(held):
        held |= look(pid, who.stet.path)
    return held


def glimpse(pid, stet, seconds):
    """What the first helper holds that is met: some milliseconds are all its life."""
    found, end = set(), time.monotonic() + seconds * SLOW
    inside = [p for p in family(pid) if kind_of(p, stet) != "outside"]
    first, view = next(p for p in inside if kind_of(p, stet) == "PID 1"), view_of(inside)
    while not found and time.monotonic() < end:
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as f:
            for p in f.read().split():
                with contextlib.suppress(OSError, StopIteration):
                    if kind_of(p, stet) == "helper":
                        found |= {look_at(p, "helper", f"fd/{n}", view) for n in os.listdir(f"/proc/{p}/fd")}
    return found


def kinds(held):
    return {h.kind for h in held}


def check(held, who, given="-"):
    assert kinds(held) >= {"outside", "PID 1", "command"}
    bad = judge(held, who, given)
    assert not bad, "\n".join(map(str, bad))


@pytest.mark.parametrize("variant", VARIANTS)
def test_at_rest(who, variant):
    p = started(who.start("run", "-q", *VARIANTS[variant], "--", *READY))
    check(at_rest(p.pid, who.stet.path), who)


@pytest.mark.parametrize("variant", ["no policy", "gate"])
def test_far_layer(away, variant):
    p = started(away.start("run", "-q", *VARIANTS[variant], "--", *READY))
    check(at_rest(p.pid, away.stet.path), away)


@pytest.mark.parametrize("variant", ["no policy", "gate", "everything"])
def test_at_work(who, variant):
    """Somebody renames directories, starts programs, changes files."""
    who.fill()
    p = started(who.start("run", "-q", *VARIANTS[variant], "--", "/usr/bin/python3", "-c", BUSY))
    held = glimpse(p.pid, who.stet.path, 10) | watch(p.pid, who, 0.3)
    assert "helper" in kinds(held)
    check(held, who)


@pytest.mark.parametrize("streams", ["file", "directory", "device"])
def test_streams(who, streams):
    """What our own streams are is nobody's inside, and PID 1's least of all."""
    given = {"file": f"{who.home}/stream", "directory": who.home, "device": "/dev/full"}[streams]
    if streams == "file":
        os.close(os.open(given, os.O_CREAT | os.O_RDWR, 0o666))
    fds = [os.open(given, os.O_RDONLY if streams == "directory" or i == 0 else os.O_RDWR) for i in range(3)]
    p = who.start("run", "-q", "--", *READY, stdin=fds[0], stdout=fds[1], stderr=fds[2])
    for fd in fds:
        os.close(fd)
    held = watch(p.pid, who, 10, lambda held: "command" in kinds(held))
    time.sleep(0.3 * SLOW)
    check(look(p.pid, who.stet.path), who, re.escape(given))
    assert kinds(held)


@pytest.mark.parametrize("verb", [["run", "-q"], ["explore"], ["run", "-q", *LIMITS]])
def test_terminal(who, verb):
    argv = [*who.setpriv, who.stet.path, *verb, *(["--", "bash", "--norc"] if verb[0] == "run" else [])]
    if verb[0] == "explore":
        who.call("run", "-q", "--on-success", "keep", "--", "touch", "kept").ok()
    c = pexpect.spawn(argv[0], argv[1:], cwd=who.work, env=who.stet.environ({"PS1": "$ "}), timeout=20 * SLOW,
                      encoding="utf-8")
    try:
        c.sendline("echo READY$((1+1))")
        c.expect("READY2")
        check(look(c.pid, who.stet.path), who)
    finally:
        c.close(force=True)


def test_exec(who):
    p = started(who.start("exec", "-q", "--", *READY))
    check(look(p.pid, who.stet.path), who)


def test_checkpoints(who):
    """While the tree goes back to one, everything stands still, and who does it has the layers."""
    p = started(who.start("run", "-q", "--no-policy", "--", "sh", "-c",
                          "echo ready; while :; do echo x > new; rm -f old; mv new old; done"))
    held = set()
    for args in (["checkpoint"], ["rollback", "-q", "--to", "1"]) * 3:
        c = who.start(*args)
        while c.poll() is None:
            held |= look(p.pid, who.stet.path)
        assert c.returncode == 0, c.stderr.read()
    tops = "|".join(map(re.escape, [who.home, who.work, *mount_points()]))
    layers = rf"{tops}|{re.escape(who.home)}/\.local/state/stet/tx/\w+(/.*)?|(/.*)?/\.stet-\d+/.*"
    bad = [h for h in judge(held, who) if not re.fullmatch(layers, h.target)]
    assert not bad, "\n".join(map(str, bad))
    check(watch(p.pid, who, 0.3), who)
