# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a transaction that runs, and going back while it does."""
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import pexpect
import pytest
from stetlib import processes_with, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))

import test_model as model  # noqa: E402

PYTHON = "/usr/bin/python3"

# Has its working directory, files, a mapping and a deleted directory where things change.
AGENT = r"""
import mmap, os, sys
def see():
    fd.seek(0)
    print(dict(fd=fd.read(), rel=open("f").read(), map=bytes(m[0:3]).decode(), ls=sorted(os.listdir(".")),
               a=open("../../a").read(), d=sorted(os.listdir("../../d")) if os.path.exists("../../d") else None,
               old=os.path.exists("/proc/self/cwd/f")), flush=True)
def wait():
    print("ready", flush=True)
    sys.stdin.readline()
os.makedirs("n/deep")
os.chdir("n/deep")
open("f", "w").write("one")
open("../../a", "a").write("1")
fd = open("f", "r+")
open("m", "wb").write(b"x" * 4096)
mf = open("m", "r+b")
m = mmap.mmap(mf.fileno(), 4096)
m[0:3] = b"AAA"
wait()
# Through a page that is dirty already: no time of the file tells.
m[0:3] = b"BBB"
wait()
open("f", "w").write("two")
open("g", "w").write("g")
os.unlink("../../d/c")
os.rmdir("../../d")
open("../../a", "a").write("2")
wait()
see()
open("after", "w").write("after")
os.mkdir("sub")
os.rename("after", "sub/f2")
open("f", "w").write("three")
m[0:3] = b"CCC"
wait()
see()
"""


class Agent:
    def __init__(self, stet, work, *argv):
        self.p = stet.popen("run", "-q", "--", *argv, cwd=work, stdin=subprocess.PIPE)

    def line(self):
        return self.p.stdout.readline().decode().strip()

    def ready(self):
        assert self.line() == "ready", self.p.stderr.read()

    def go(self):
        self.p.stdin.write(b"\n")
        self.p.stdin.flush()

    def end(self):
        self.p.stdin.close()
        assert self.p.wait(60) == 0, self.p.stderr.read()


def checkpoint(stet, work):
    return stet("checkpoint", "--json", cwd=work).ok().json()


def test_open_files_follow(stet, work, tree):
    tree(work, {"a": "a", "d": {"c": "c"}})
    agent = Agent(stet, work, PYTHON, "-u", "-c", AGENT)
    agent.ready()
    assert checkpoint(stet, work)["last"] == 1
    assert checkpoint(stet, work)["checkpoint"] is None
    agent.go()
    agent.ready()
    two = checkpoint(stet, work)
    assert two["checkpoint"]["changes"]["changed"] == 1, "a store into a mapping was missed"
    agent.go()
    agent.ready()
    r = stet("rollback", "--to", "1", "--json", cwd=work).ok().json()
    assert (r["before"], r["after"]) == (3, 4)
    agent.go()
    assert eval(agent.line()) == {"fd": "one", "rel": "one", "map": "AAA", "ls": ["f", "m"],
                                  "a": "a1", "d": ["c"], "old": True}
    agent.ready()
    stet("rollback", "--to", "3", cwd=work).ok()
    agent.go()
    assert eval(agent.line()) == {"fd": "two", "rel": "two", "map": "BBB", "ls": ["f", "g", "m"],
                                  "a": "a12", "d": None, "old": True}
    agent.end()
    # What is left is pending, and as the last step left it.
    assert stet.changes(cwd=work, below=work) == {b"a": "M", b"d": "D", b"d/c": "D", b"n": "A", b"n/deep": "A",
                                      b"n/deep/f": "A", b"n/deep/g": "A", b"n/deep/m": "A"}


def test_what_changed_after_a_quiet_time(stet, work):
    """Nobody ran: known without a look. Somebody did, in one thread of many: looked at."""
    script = r"""
import sys, threading
go, done = threading.Event(), threading.Event()
def other():
    while go.wait():
        go.clear()
        open("f", "a").write("x")
        done.set()
threading.Thread(target=other, daemon=True).start()
open("f", "w").write("x")
for i in range(4):
    print("ready", flush=True)
    sys.stdin.readline()
    go.set(); done.wait(); done.clear()
"""
    agent = Agent(stet, work, PYTHON, "-c", script)
    for n in range(1, 5):
        agent.ready()
        assert checkpoint(stet, work)["last"] == n
        for _ in range(4):
            r = checkpoint(stet, work)
            assert r["checkpoint"] is None and r["paused_us"] == 0
        agent.go()
    agent.end()


def test_holes_are_not_read(stet, work):
    """What was changed in this very second is compared with everything stopped: not its holes."""
    agent = Agent(stet, work, PYTHON, "-c", "import os, sys; f = open('f', 'wb'); f.write(b'a'); "
                  "f.seek(1 << 30); f.write(b'b'); f.truncate(1 << 33); f.close(); print('ready', flush=True); "
                  "sys.stdin.readline(); f = open('f', 'r+b'); f.seek(1 << 29); f.write(b'c'); f.close(); "
                  "print('ready', flush=True); sys.stdin.readline(); f = open('f', 'rb'); f.seek(1 << 29); "
                  "print(f.read(1), f.seek(1 << 30), f.read(1), os.stat('f').st_size)")
    agent.ready()
    r = stet("checkpoint", "--json", cwd=work).ok().json()
    # 8 GiB take half a minute to be read, here or there.
    assert r["last"] == 1 and r["paused_us"] < 5_000_000, r
    agent.go()
    agent.ready()
    assert checkpoint(stet, work)["last"] == 2
    stet("rollback", "--to", "1", cwd=work).ok()
    agent.go()
    assert agent.line() == f"b'\\x00' {1 << 30} b'b' {1 << 33}"
    agent.end()


def test_restore_while_it_runs(stet, work, tree):
    tree(work, {"a": "a", "d": {"c": "c"}})
    agent = Agent(stet, work, "sh", "-c",
                  "echo b > a; rm -r d; echo ready; read x; cat a d/c; echo; echo ready; read x")
    agent.ready()
    stet("restore", "d", "--from", "0", cwd=work).ok()
    agent.go()
    assert agent.line() == "b" and agent.line() == "c"
    agent.ready()
    agent.go()
    agent.end()
    assert stet.changes(cwd=work, below=work) == {b"a": "M"}


WRITER = r"""
import os, sys
i = 0
while not os.path.exists("stop"):
    i += 1
    for name in ("x", "y", "z"):
        with open(f"{name}{sys.argv[1]}", "r+" if i > 1 else "w") as f:
            f.write(f"{i:09d}")
"""


def test_consistent_under_load(stet, work):
    """Each writer writes a number into three files, one after the other, again and again."""
    writers = " ".join(f"{PYTHON} -c '{WRITER}' {n} &" for n in range(4))
    agent = Agent(stet, work, "sh", "-c", f"{writers} echo ready; read x; touch stop; wait")
    agent.ready()
    wait_until(lambda: len(stet.changes(cwd=work, below=work)) >= 12)
    points = [checkpoint(stet, work)["last"] for _ in range(6)]
    assert len(set(points)) == 6
    agent.go()
    agent.end()
    for n in points:
        seen = stet("explore", "--at", str(n), "--", "sh", "-c", "head -qc 9 x* y* z*",
                    cwd=work).ok().out
        v = [int(seen[i:i + 9]) for i in range(0, len(seen), 9)]
        assert len(v) == 12
        for k in range(4):
            x, y, z = v[k], v[4 + k], v[8 + k]
            assert x >= y >= z >= x - 1, (n, k, x, y, z)


def test_no_shell_notices(stet, work):
    """An interactive shell with jobs of every kind: nothing is said, nothing is different."""
    p = pexpect.spawn(stet.path, ["run", "-q", "--", "bash", "--norc", "-i"], cwd=str(work),
                      env=stet.environ({"PS1": "$ "}), timeout=30, encoding="utf-8")
    p.expect_exact("$ ")
    p.sendline("sleep 300 & (sleep 301; true) & sleep 302")
    wait_until(lambda: subprocess.run(["pgrep", "-f", "^sleep 302"], check=False,
                                      stdout=subprocess.DEVNULL).returncode == 0)
    p.send("\x1a")
    p.expect_exact("Stopped")
    p.expect_exact("$ ")
    for i in range(5):
        p.sendline(f"echo {i} > f; echo d''one{i}")
        p.expect_exact(f"done{i}\r\n")
        p.expect_exact("$ ")
        assert checkpoint(stet, work)["last"] == i + 1
    p.sendline("jobs; echo e''nd")
    p.expect_exact("end\r\n")
    text = p.before
    assert text.count("Running") == 2 and text.count("Stopped") == 1, text
    stet("rollback", "--to", "2", cwd=work).ok()
    p.sendline("echo f$(cat f); kill %1 %2 %3; echo o''ver")
    p.expect_exact("f1\r\n")
    p.expect_exact("over\r\n")
    p.sendline("exit; exit")
    p.expect(pexpect.EOF)
    p.close()


SERVER = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
def told():
    names, data = set(), b""
    while True:
        try:
            data += os.read(fd, 65536)
        except BlockingIOError:
            break
    while data:
        _, mask, _, n = struct.unpack_from("iIII", data)
        names.add(data[16:16 + n].rstrip(b"\0").decode())
        data = data[16 + n:]
    return sorted(names - {""})
def serve():
    def read(name):
        with open(name) as f:
            return f.read()
    return {d + "/" + n: read(d + "/" + n) for d, _, names in os.walk(".") for n in names}
os.makedirs("site/img")
os.chdir("site")
for name, text in (("index", "1"), ("img/a", "1")):
    open(name, "w").write(text)
for name in (".", "img"):
    libc.inotify_add_watch(fd, name.encode(), 0x2 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200)
def wait():
    print("ready", flush=True)
    sys.stdin.readline()
wait()
open("index", "w").write("two")
open("new", "w").write("new")
os.unlink("img/a")
told()
wait()
print(told(), sorted(serve().items()), flush=True)
open("index", "w").write("three")
print(told(), flush=True)
"""


def test_a_server_is_told(stet, work):
    """What watches its files, as development servers do, hears of a rollback, and serves the state."""
    agent = Agent(stet, work, PYTHON, "-c", SERVER)
    agent.ready()
    assert checkpoint(stet, work)["last"] == 1
    agent.go()
    agent.ready()
    stet("rollback", "--to", "1", cwd=work).ok()
    agent.go()
    assert agent.line() == "['a', 'index', 'new'] [('./img/a', '1'), ('./index', '1')]"
    assert agent.line() == "['index']"
    agent.end()


def test_kill(stet, work):
    agent = Agent(stet, work, "sh", "-c",
                  "echo 1 > f; sleep 310 & echo ready; read x; wait $!; echo $?")
    agent.ready()
    checkpoint(stet, work)
    stet("explore", cwd=work).ok(125)
    stet("rollback", "--to", "0", "--kill", cwd=work).ok()
    agent.go()
    assert agent.line() == "137"
    agent.end()


def control_socket(stet):
    """Connected to the sandbox of the only transaction that runs, and the directory of its socket."""
    (sock,) = [os.path.join(d, "ctl") for d, _, files in os.walk(stet.state) if "ctl" in files]
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    at = os.open(os.path.dirname(sock), os.O_PATH)
    s.connect(f"/proc/self/fd/{at}/ctl")
    os.close(at)
    return s, os.path.dirname(sock)


def test_who_waits_for_his_turn_does_not_keep_the_sandbox_waiting(stet, work):
    """The one with the lock could not reach it, the one who reaches it would wait for the lock."""
    agent = Agent(stet, work, "sh", "-c", "echo 1 > f; echo ready; read x; echo on")
    agent.ready()
    s, at = control_socket(stet)
    s.close()
    os.makedirs(f"{at}/ck", mode=0o700, exist_ok=True)
    lock = os.open(f"{at}/ck", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    p = stet.popen("checkpoint", "--json", cwd=work)

    def waits():
        with open("/proc/locks", encoding="ascii") as f:
            return any(f"-> FLOCK  ADVISORY  WRITE {p.pid} " in line for line in f)
    wait_until(waits)
    s, _ = control_socket(stet)
    s.settimeout(20)
    s.send(b"x")
    assert s.recv(4096) == b""  # heard, and no message
    s.close()
    os.close(lock)
    assert p.wait(60) == 0
    agent.go()
    assert agent.line() == "on"
    agent.end()


def test_a_client_that_dies_leaves_nothing_stopped(stet, work):
    agent = Agent(stet, work, "sh", "-c", "echo 1 > f; echo ready; read x; echo on")
    agent.ready()
    s, at = control_socket(stet)
    with s:
        # What is no message ends the conversation; a message that is one is answered.
        s.send(b"x")
        assert s.recv(4096) == b""
    for _ in range(3):
        p = stet.popen("rollback", "--to", "0", "--json", cwd=work)
        p.kill()
        p.wait()

    agent.go()
    assert agent.line() == "on"
    agent.end()
    assert not os.path.exists(f"{at}/ctl")


MANY = r"""
import sys
for text in ("one", "two"):
    for i in range(600):
        open(f"f{i}", "w").write(text + "\n")
    print("ready", flush=True)
    sys.stdin.readline()
print(sorted({open(f"f{i}").read() for i in range(600)}), flush=True)
"""


@pytest.mark.parametrize("victim", ["caller", "command", "asker"])
def test_killed_half_way(stet, work, victim):
    """Whoever dies while steps are carried out, all files are of one state or the other."""
    agent = Agent(stet, work, PYTHON, "-c", MANY + f"# {work}")
    agent.ready()
    assert checkpoint(stet, work)["last"] == 1
    agent.go()
    agent.ready()
    (own,) = [d for d, _, files in os.walk(stet.state) if "1.ck" in files]

    def half():
        try:
            with open(os.path.join(own, "half"), "rb") as f:
                return f.read(1) == b"H"
        except FileNotFoundError:
            return False

    for _ in range(20):
        p = stet.popen("rollback", "--to", "1", cwd=work)
        while p.poll() is None and not half():
            pass
        if p.poll() is None:
            break
        stet("rollback", "--to", "2", cwd=work).ok()
    assert p.poll() is None, "it was never seen half way"
    if victim == "command":
        (pid,) = processes_with(f"# {work}", PYTHON)
        os.kill(pid, signal.SIGKILL)
    else:
        (agent.p if victim == "caller" else p).kill()
    p.wait(60)
    if victim == "asker":
        agent.go()
        assert agent.line() == "['one\\n']", "what is begun is carried out to its end"
        agent.end()
    else:
        assert agent.p.wait(60) in (137, -9)
    seen = stet("explore", "-q", "--", "sh", "-c", "cat f* | sort | uniq -c", cwd=work).ok().out
    # It may have come to its end before the kill did; who asked for it then knows.
    done = victim == "asker" or p.returncode == 0
    assert seen.split() == ["600", "one" if done else "two"], seen
    stet("rollback", "--to", "1", cwd=work).ok()
    assert not half()


def test_only_one_decides(stet, work):
    agent = Agent(stet, work, "sh", "-c", "echo 1 > f; echo ready; read x")
    agent.ready()
    checkpoint(stet, work)
    for words in (["commit"], ["commit", "--at", "1"], ["rollback"]):
        assert "t1 is running" in stet(*words, cwd=work).ok(4).err
    r = stet("fork", "--at", "1", "--json", "--", "cat", "f", cwd=work).ok()
    assert r.out == "1\n" and json.loads(r.err.splitlines()[-1])["from"] == "t1"
    agent.go()
    agent.end()


def test_every_call(stet, work):
    """A checkpoint before what the command starts, if anything has changed; not for its children."""
    script = ("for i in 1 2 3; do sh -c \"echo $i > f$i; [ $i = 3 ] || sleep 1.5; :\"; done")
    stet("run", "-q", "--", "bash", "-c", script, cwd=work).ok()
    points = [json.loads(x) for x in stet("log", "--json", cwd=work).ok().out.splitlines()]
    assert points and all(p["cause"] == "call" and p["command"].startswith("sh -c echo ")
                          for p in points)
    first = points[-1]
    assert first["command"].startswith("sh -c echo 2 ") and first["changes"]["added"] == 1
    stet("run", "-q", "--checkpoint", "none", "--", "sh", "-c", "echo a > a; ls; rm -r .", cwd=work)
    assert stet("log", "t2", "--json", cwd=work).ok().out == ""


CALLS = r"""
import subprocess
for words in {calls}:
    if words[0] == "write":
        open(words[1], "w").write(words[1])
    else:
        subprocess.run(words, check=True)
"""


@pytest.mark.parametrize("calls, want", [
    # Who looks around first does not name what comes then.
    ([["write", "f"], ["/bin/true"], ["bash", "-c", ": work"]], [("call", "bash -c : work", None)]),
    ([["write", "f"], ["bash", "-lc", ": work"], ["/bin/true"]], [("call", "bash -lc : work", None)]),
    ([["write", "f"], ["/bin/true"], ["/bin/sleep", ".06"], ["/bin/true", "2"]], [("call", "/bin/true", None)]),
    # Nearest to the change, of two that changed nothing.
    ([["write", "f"], ["/bin/true"], ["sh", "-c", "[ -e f ]"], ["sh", "-c", "sleep .06"], ["sh", "-c", "echo > g"]],
     [("call", "sh -c echo > g", None)]),
    # What a rule names, and why, is not covered up; a part of a call does not replace it.
    ([["write", "f"], ["/bin/true"], ["rm", "-f", "none"]], [("risky", "rm -f none", True)]),
    ([["write", "f"], ["sh", "-c", "X=rm; $X -f none; :"], ["sh", "-c", ":"]],
     [("risky", "sh -c X=rm; $X -f none; :", True)]),
    # A hook speaks before the call: its words, and the call's.
    ([["write", "f"], ["sh", "-c", "../stet checkpoint -m 'call 7: tidy up'"], ["bash", "-c", ": work"]],
     [("call", "bash -c : work", "call 7: tidy up")]),
    ([["write", "f"], ["../stet", "checkpoint", "-m", "call 8"], ["bash", "-c", ": work"]],
     [("call", "bash -c : work", "call 8")]),
])
def test_named_by_the_call(stet, work, calls, want):
    """By what says most of what starts before the next change."""
    shutil.copy(stet.path, work.parent / "stet")
    stet("run", "-q", "--", PYTHON, "-c", CALLS.format(calls=calls), cwd=work).ok()
    points = [json.loads(x) for x in stet("log", "--json", cwd=work).ok().out.splitlines()]
    got = [(p["cause"], p["command"], bool(p["note"]) if p["cause"] == "risky" else p["note"]) for p in points]
    assert got == want, points
    line = stet("log", cwd=work).ok().out.splitlines()[1]
    assert want[0][1] in line and (points[0]["note"] or "") in line, line


def test_every_call_of_a_script(stet, work):
    """The kernel makes an interpreter of it, which is judged anew; the checkpoint stays due."""
    (work / "s").write_text("#!/bin/sh\necho $1 > f$1\n")
    (work / "s").chmod(0o755)
    stet("run", "-q", "--", "bash", "-c", "sleep 0.5; echo 0 > f0; ./s 1; true", cwd=work).ok()
    points = [json.loads(x) for x in stet("log", "--json", cwd=work).ok().out.splitlines()]
    assert [p["cause"] for p in points] == ["call"] and points[0]["command"].endswith("./s 1")


@pytest.mark.parametrize("kind", [model.Ended, model.Live])
def test_model(stet, home, tree, kind):
    """A short one; `make model` has the thousands."""
    work, plain = model.prepare(home, tree, 77)
    real = kind(stet, work)
    model.drive(real, plain, 77, 200 if kind is model.Live else 60, 20)
    if kind is model.Live:
        real.end()
