# SPDX-License-Identifier: Apache-2.0
"""Files are limited by their number, too: empty ones take no space, and a filesystem has only so many."""
import os

import pytest

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True
ROOT = os.geteuid() == 0
LIMIT = 2000

# Makes objects of one kind without an end in directory argv[1]; {} is the number.
FLOOD = """
import os, socket, sys, time
os.chdir(sys.argv[1])
i = 0
while True:
    n = str(i)
    {}
    i += 1
"""
KINDS = {
    "files": "os.close(os.open(n, os.O_CREAT, 0o600))",
    "directories": "os.mkdir(n)",
    "symbolic links": "os.symlink('x', n)",
    "hard links": "os.link('0', n) if i else open(n, 'w').close()",
    "fifos": "os.mkfifo(n)",
    "sockets": "s = socket.socket(socket.AF_UNIX); s.bind(n); s.close()",
    "a deep tree": "os.mkdir(n) or os.chdir(n) if i % 50 else (os.chdir(sys.argv[1]), os.mkdir(n))",
}
# They have no name left, and are open: in several processes, since one has only so many.
HELD = """
import os, sys, time
os.chdir(sys.argv[1])
for k in range(20):
    if os.fork() == 0:
        fds = []
        for i in range(800):
            fds.append(os.open(f"{k}.{i}", os.O_CREAT | os.O_RDWR, 0o600))
            os.unlink(f"{k}.{i}")
        time.sleep(60)
time.sleep(60)
"""
# The same in a thread with a table of its own, behind a leader that has none of them.
THREAD = """
import ctypes, os, sys, threading, time
os.chdir(sys.argv[1])
def hold():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    fds = []
    for i in range(900):
        fds.append(os.open(f"t{threading.get_ident()}.{i}", os.O_CREAT | os.O_RDWR, 0o600))
        os.unlink(f"t{threading.get_ident()}.{i}")
    time.sleep(60)
for _ in range(8):
    threading.Thread(target=hold, daemon=True).start()
time.sleep(60)
"""


def stopped(r, limit, allowed):
    o = r.ok(137).json()
    assert (o["reason"], o["limit"]["what"], o["limit"]["allowed"]) == ("limit", limit, allowed), o
    assert o["limit"]["used"] > allowed and o["fate"] in ("rolled back", "dropped"), o


def flood(stet, cwd, body, where=".", opts=(), **kw):
    return stet("exec", "--json", "--output", "100", "--no-policy", "--timeout", "50s", *opts, "--", "python3", "-c",
                body, where, cwd=cwd, **kw)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(stet, work, kind):
    stopped(flood(stet, work, FLOOD.format(KINDS[kind]), opts=["--files", str(LIMIT)]), "files", LIMIT)
    assert os.listdir(work) == []


@pytest.mark.parametrize("body", [HELD, THREAD])
def test_without_a_name(stet, work, body):
    stopped(flood(stet, work, body, opts=["--files", "5000"]), "files", 5000)


def test_without_a_name_takes_space(stet, work):
    body = HELD.replace("    os.unlink", "    os.write(fds[-1], bytes(20000)); os.unlink")
    stopped(flood(stet, work, body, opts=["--disk", "40M"]), "disk", 40 << 20)


@pytest.mark.parametrize("where", ["/tmp", "/var/tmp", "/dev/shm", "RUN", "HOME"])
def test_wherever(stet, work, home, where):
    """In private directories, in memory, and in layers far from where it works."""
    if where == "RUN":
        where = "/run" if ROOT else f"/run/user/{os.getuid()}"
        if not ROOT and not os.path.isdir(where):
            where = "/run/lock"
    where = str(home) if where == "HOME" else where
    stopped(flood(stet, work, FLOOD.format(KINDS["files"]), where, ["--files", str(LIMIT)]),
            "files", LIMIT)


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
def test_on_other_mounts(stet, work, filesystem, fs):
    stopped(flood(stet, work, FLOOD.format(KINDS["files"]), filesystem(fs), ["--files", str(LIMIT)]),
            "files", LIMIT)


def test_how_many_pass(stet, work):
    """A flood by several processes: seen before a tenth more is there, and looks cost time."""
    body = FLOOD.replace("i = 0", "me = [os.fork(), os.fork()]\ni = 0").format(
        "os.close(os.open(f'{os.getpid()}.{n}', os.O_CREAT, 0o600))")
    limit = 20000
    r = stet("run", "--json", "--no-policy", "--files", str(limit), "--", "python3", "-c", body, ".",
             cwd=work).ok(137)
    assert "files" in r.err
    made = stet("status", "--json", cwd=work).ok().json()["totals"]["added"]
    print("made", made)
    assert limit < made < limit * 1.5


@pytest.mark.parametrize("opts,what,allowed", [
    (["--disk", "4M"], "disk", 4 << 20), (["--disk", "50M", "--files", "3000"], "files", 3000)])
def test_empty_files_are_not_free(stet, work, opts, what, allowed):
    stopped(flood(stet, work, FLOOD.format(KINDS["files"]), opts=opts), what, allowed)


def test_default(stet, work):
    """50 MB are a hundred thousand empty files at most."""
    r = stet("run", "--disk", "60M", "--no-policy", "--", "python3", "-c",
             FLOOD.format(KINDS["files"]), ".", cwd=work, timeout=120).ok(137)
    assert "number of files limit of 100000 passed (--files N allows more)" in r.err


def test_left_alone(stet, work):
    script = "for i in $(seq 500); do echo > f$i; done; exec 9> x; rm x; sleep 0.4"
    stet("exec", "--no-policy", "--files", "600", "--disk", "50M", "--", "sh", "-c", script,
         cwd=work).ok()
