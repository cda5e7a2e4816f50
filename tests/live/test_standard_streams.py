# SPDX-License-Identifier: Apache-2.0
"""Standard input and output: never an object of the host's, and yet as if they were."""
import hashlib
import json
import os
import select
import signal
import subprocess

import pytest
from stetlib import SLOW

# Tries all that an owner can do to what a descriptor leads to; says which object it is.
SPOIL = """
import os, sys

# It takes long.
SANITIZED_APART = True
st = os.fstat(int(sys.argv[1]))
path = "/proc/self/fd/" + sys.argv[1]
for mode in 0o777, 0o4755:
    os.chmod(path, mode)
os.utime(path, (1, 1))
try:
    os.chown(path, 1, 1)
except OSError:
    pass
with open(sys.argv[2], "w") as f:
    f.write(f"{st.st_dev} {st.st_ino}")
"""
VERBS = {"run": ["run", "-q", "--no-policy", "--"], "exec": ["exec", "-q", "--no-policy", "--"],
         "explore": ["explore", "-q", "--"]}


class Stream:
    """A FIFO with a name, or a pipe, of which a command may be given an end."""

    def __init__(self, kind, path):
        if kind == "fifo":
            os.mkfifo(path, 0o644)
            self.keep = os.open(path, os.O_RDWR)
            self.read = os.open(path, os.O_RDONLY)
            self.write = os.open(path, os.O_WRONLY)
        else:
            self.read, self.write = os.pipe()
            self.keep = None

    def get(self):
        """What is in it; nothing, if somebody else has taken it."""
        return os.read(self.read, 100) if select.select([self.read], [], [], 5)[0] else b""

    def look(self):
        st = os.fstat(self.read)
        return (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_atime_ns, st.st_dev,
                st.st_ino)

    def close(self):
        for fd in self.read, self.write, self.keep:
            if fd is not None:
                os.close(fd)


@pytest.fixture(name="stream", params=["fifo", "pipe"])
def fixture_stream(request, home):
    s = Stream(request.param, home / "stream")
    yield s
    s.close()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fd", [0, 1, 2])
def test_what_is_there_is_not_the_hosts(stet, work, stream, verb, fd):
    """Its mode, owner and times stay as they are, and no other end of it is opened."""
    if verb == "explore":
        stet.sh("echo x > x", cwd=work).ok()
    before = stream.look()
    if verb == "exec" and fd == 0:
        before = None  # it has no input
    given = {("stdin", "stdout", "stderr")[fd]: stream.write if fd else stream.read}
    p = stet.popen(*VERBS[verb], "python3", "-c", SPOIL, str(fd), "said", cwd=work, **given)
    p.wait(60 * SLOW)
    if before is not None:
        assert stream.look() == before
    if verb == "run":
        stet("commit", "-q", cwd=work).ok()
        assert (work / "said").read_text() != "{5} {6}".format(*stream.look())


def test_nothing_is_put_into_the_input(stet, work, stream):
    """The input cannot be opened for writing, so that others who read from it would be misled."""
    os.write(stream.write, b"one\n")
    p = stet.popen("run", "-q", "--", "sh", "-c", "read x; echo evil > /proc/self/fd/0; true",
                   cwd=work, stdin=stream.read)
    assert p.wait(60 * SLOW) == 0
    os.write(stream.write, b"two\n")
    assert b"evil" not in stream.get()


def test_nothing_is_taken_out_of_the_output(stet, work, stream):
    """What another program of the host has written to the same pipe is not read."""
    os.write(stream.write, b"secret\n")
    p = stet.popen("run", "-q", "--", "timeout", "1", "sh", "-c", "cat < /proc/self/fd/1 > got",
                   cwd=work, stdout=stream.write)
    p.wait(60 * SLOW)
    stet("commit", "-q", cwd=work)
    assert stream.get() == b"secret\n"
    got = work / "got"
    assert not got.exists() or got.read_text() == ""


def test_what_is_not_read_stays_for_others(stet, work):
    """As without stet: a loop over lines whose body does not read, or reads one."""
    script = 'while read a; do "$0" run -q -- sh -c "$1" - "$a"; done'
    for body, want in ('echo "$1"', [str(n) for n in range(1, 9)]), \
            ('read b; echo "$1$b"', ["12", "34", "56", "78"]):
        p = subprocess.run(["bash", "-c", script, stet.path, body], cwd=work, env=stet.environ(),
                           input=b"1\n2\n3\n4\n5\n6\n7\n8\n", stdout=subprocess.PIPE,
                           timeout=100 * SLOW, check=True)
        assert p.stdout.decode().split() == want


@pytest.mark.parametrize("size", [0, 1, 4096, 5000, 100_000])
def test_what_is_left_is_the_rest(stet, work, size):
    script = f'"$0" run -q -- head -c {size}; cat'
    data = os.urandom(200_000)
    p = subprocess.run(["bash", "-c", script, stet.path], cwd=work, env=stet.environ(),
                       input=data, stdout=subprocess.PIPE, timeout=100 * SLOW, check=True)
    assert p.stdout == data


@pytest.mark.parametrize("size", [0, 1, 65_537, 20_000_003])
def test_all_of_it_passes(stet, work, size):
    data = os.urandom(size)
    r = stet.run("cat", cwd=work, input=data).ok()
    assert hashlib.sha256(r.raw).digest() == hashlib.sha256(data).digest()


ENLARGES = """
import array, fcntl, sys, termios, time
fcntl.fcntl(0, 1031, 65536)  # F_SETPIPE_SZ
n, end = array.array("i", [0]), time.monotonic() + float(sys.argv[1])
while n[0] <= 8192 and time.monotonic() < end:
    fcntl.ioctl(0, termios.FIONREAD, n)
    time.sleep(0.01)
sys.stdout.write(str(n[0] > 8192))
sys.stdin.buffer.read()
"""


def test_a_command_may_enlarge_its_pipe(stet, work):
    """More than a page comes then; stet would be woken without end by a page that is not read."""
    r = stet.run("/usr/bin/python3", "-c", ENLARGES, str(20 * SLOW), cwd=work,
                 input=os.urandom(200_000)).ok()
    assert r.out == "True"


def test_a_slow_writer(stet, work):
    """What has been written is there at once, and the end when the writer has gone."""
    p = stet.popen("run", "-q", "--", "cat", cwd=work, stdin=subprocess.PIPE)
    for n in range(20):
        line = b"%d\n" % n
        p.stdin.write(line)
        p.stdin.flush()
        assert p.stdout.readline() == line
    p.stdin.close()
    assert p.stdout.read() == b""
    assert p.wait(60 * SLOW) == 0


def test_end_of_a_named_fifo(stet, work, home):
    os.mkfifo(home / "p")
    with subprocess.Popen(["sh", "-c", "echo text > p"], cwd=home):
        with open(home / "p", "rb") as f:
            assert stet.run("cat", cwd=work, stdin=f).ok().out == "text\n"


@pytest.mark.parametrize("kind", ["fifo", "pipe"])
def test_a_reader_that_goes_away(stet, work, home, kind):
    """The command gets SIGPIPE."""
    if kind == "fifo":
        os.mkfifo(home / "p")
        read = os.open(home / "p", os.O_RDONLY | os.O_NONBLOCK)
        write = os.open(home / "p", os.O_WRONLY)
        os.set_blocking(read, True)
    else:
        read, write = os.pipe()
    p = stet.popen("run", "-q", "--", "yes", cwd=work, stdout=write)
    os.close(write)
    assert os.read(read, 2) == b"y\n"
    os.close(read)
    assert p.wait(60 * SLOW) == 128 + signal.SIGPIPE


def test_a_reader_that_goes_away_before_anything_is_written(stet, work):
    """A command that writes later learns that as well."""
    read, write = os.pipe()
    p = stet.popen("run", "-q", "--", "sh", "-c", "echo READY >&2; read x; while echo y; do :; done",
                   cwd=work, stdin=subprocess.PIPE, stdout=write)
    os.close(write)
    assert p.stderr.readline() == b"READY\n"
    os.close(read)
    p.stdin.write(b"\n")
    p.stdin.close()
    assert p.wait(60 * SLOW) != 0


@pytest.mark.parametrize("joined", [False, True])
def test_json_after_much_output(stet, work, joined):
    """The result is whole, and comes after all that the command has written."""
    r = stet("run", "--json", "--no-policy", "--", "sh", "-c", "seq 100000; echo last >&2; echo x > f",
             cwd=work, stderr=subprocess.STDOUT if joined else subprocess.PIPE).ok()
    lines = r.out.splitlines() + r.err.splitlines()
    assert json.loads(lines[-1])["schema"] == 1
    assert lines[:-1] == [*map(str, range(1, 100001)), "last"]


def test_order_of_the_two_outputs(stet, work):
    """Where both are the same pipe, it is kept."""
    script = "for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done"
    r = stet.sh(script, cwd=work, stderr=subprocess.STDOUT).ok()
    assert r.out.split() == [c + str(i) for i in range(1, 9) for c in "oe"]
