# SPDX-License-Identifier: Apache-2.0
"""stet run inside of a sandbox: what it may ask about its own transaction, and what not."""
import json
import os
import shutil
import subprocess
import time

import pytest
from stetlib import wait_until

PYTHON = "/usr/bin/python3"

# Speaks to the door without manners. ask(bytes) gives back the answers.
RAW = r"""
import array, os, socket, subprocess, sys, time
def knock():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/dev/stet")
    return s
def ask(text, fds=()):
    with knock() as s:
        try:
            s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        except OSError as e:
            return e.errno
        got = []
        while True:
            m = s.recv(65536)
            if not m:
                return got
            got.append(m)
def line(*words, hello="stet 1", cwd=os.getcwd()):
    return "".join(w + "\0" for w in (hello, cwd, *words)).encode()
"""


@pytest.fixture(name="inner")
def fixture_inner(stet, home):
    """The program where the inside sees it."""
    path = os.path.join(home, "bin", "stet")
    os.makedirs(os.path.dirname(path))
    shutil.copy(stet.path, path)
    return path


def test_every_verb(stet, work, tree, inner):
    tree(work, {"a": "a", "d": {"c": "c"}})
    script = r"""
        set -e
        echo b > a; rm -r d
        "$1" checkpoint -m 'my own'
        echo c > a; mkdir n; cd n; echo x > x
        "$1" checkpoint t1 --json
        "$1" log
        echo == ; "$1" status --json
        "$1" diff 1..2 --name-status
        "$1" show 1 ../a --stat
        "$1" diff x
        echo == ; "$1" rollback --to 1
        cd ..; cat a; ls
        echo after > after
        "$1" restore d --from 0
        cat d/c
        echo; "$1"
        "$1" rollback --to 1 --json > /tmp/r; echo $?
    """
    r = stet("run", "-q", "--checkpoint", "none", "--", "sh", "-c", script, "sh", inner, cwd=work).ok()
    first, looks, rest = r.out.split("==\n")
    lines = first.splitlines()
    assert lines[0] == "checkpoint 1 of t1: +0 ~1 -2 2 B"
    two = json.loads(lines[1])
    assert two["last"] == 2 and two["checkpoint"]["cause"] == "agent" and two["paused_us"] > 0
    assert not two["checkpoint"]["named"], "what the inside keeps is not kept for good"
    assert "my own" in first
    looks = looks.splitlines()
    assert json.loads(looks[0])["txn"]["id"] == "t1" and json.loads(looks[0])["changes"]
    assert "M\ta" in looks and "A\tn/x" in looks and "+x" in looks
    assert rest.splitlines()[:3] == ["t1 went back to checkpoint 1: 1 changed, 2 deleted (2 B); take it back: "
                                     "stet rollback t1 --to 2", "b", "a"], rest
    assert "c\nt1 running" in rest and rest.endswith("\n0\n")
    assert stet.changes(cwd=work, below=work) == {b"a": "M", b"d": "D", b"d/c": "D"}


def test_the_asker_lives_through_it(stet, work, inner):
    """Who asks is stopped with the others, and finds the other state in what it has open."""
    script = r"""
import subprocess, sys
f = open("f", "w+")
f.write("one"); f.flush()
subprocess.run([sys.argv[1], "checkpoint"], check=True, stdout=subprocess.DEVNULL)
f.seek(0); f.truncate(); f.write("second"); f.flush()
for i in range(3):
    subprocess.run([sys.argv[1], "rollback", "--to", "1"], check=True, stdout=subprocess.DEVNULL)
    f.seek(0); print(f.read(), open("f").read())
    f.seek(0); f.write("more%d" % i); f.flush()
"""
    r = stet("run", "-q", "--", PYTHON, "-c", script, inner, cwd=work).ok()
    assert r.out == "one one\n" * 3
    assert stet("explore", "-q", "--", "cat", "f", cwd=work).ok().out == "more2"


def test_what_only_the_outside_may_do(stet, work, inner):
    stet.sh("echo 1 > first", opts=("-q", "--name", "other"), cwd=work).ok()
    words = ["commit", "commit --at 0", "undo", "redo", "list", "prune", "forget", "recover",
             "check", "audit", "explore", "fork"]
    script = 'for w in "$@"; do ' + f'{inner} $w > /tmp/out 2>&1; echo "$? $(cat /tmp/out)"; done'
    r = stet("run", "-q", "--checkpoint", "none", "--", "sh", "-c", f"echo 2 > second; {script}", "sh",
             *words, cwd=work).ok()
    for word, said in zip(words, r.out.splitlines(), strict=True):
        assert said.startswith("125 " if word in ("explore", "fork") else "2 "), said
        assert f"stet: {word.split()[0]} is not possible from inside of a transaction" in said
        assert "outside, on t2" in said
    refs = {"status t1": 2, "status 1": 2, "log 1": 2, "log --ops t1": 2, "diff t1": 2, "show t1 0": 2,
            "checkpoint t1": 2, "rollback t1 --to 0": 2, "restore first --from 0 --txn t1": 2,
            "rollback": 2, "status other": 1, "log other": 1, "rollback other --to 0": 1}
    script = 'for w in "$@"; do ' + f'{inner} $w > /tmp/out 2>&1; echo "$? $(cat /tmp/out)"; done'
    r = stet("run", "-q", "--checkpoint", "none", "--", "sh", "-c", f"echo 2 > second; {script}", "sh",
             *refs, cwd=work).ok()
    for (word, rc), said in zip(refs.items(), r.out.splitlines(), strict=True):
        assert said.startswith(f"{rc} stet: "), (word, said)
        assert "other" in word or "out of reach" in said or word == "rollback", said
    assert stet.changes("t1", cwd=work, below=work) == {b"first": "A"}
    assert stet("log", "t1", "--json", cwd=work).ok().out == ""


def test_garbage_disturbs_nobody(stet, work, inner):
    script = RAW + r"""
r = os.open("/etc/hostname", os.O_RDONLY)
cases = [b"", b"\0", b"stet 1\0", b"x" * 65536, b"x" * 70000, line("checkpoint")[:-1], line(),
         line("checkpoint", cwd="relative"), line("checkpoint", hello="stet 2"), line(*["log"] * 300),
         line("checkpoint", cwd="/" + "x" * 5000), b"\xff" * 100, line("checkpoint") * 100]
assert all(x in ([], 90) for x in map(ask, cases)), [(c[:20], ask(c)) for c in cases]
def end(*words, fds=()):
    x = ask(line(*words), fds)
    return x[-1], b"".join(m[1:] for m in x if m[:1] == b"e")
assert end("commit") == (b"x\2", b"stet: not possible from inside of a transaction\n")
assert end("--visitor")[0] == end("undo")[0] == b"x\2" and end("run", "--", "id")[0] == b"x\x7d"
assert end("log", "--no-such")[0] == b"x\1"
assert end("status", fds=[r])[0] == b"x\0"
assert end("checkpoint", "-m", "x" * 5000)[0] == b"x\1"
t = time.monotonic()
for i in range(26):
    assert ask(b"x") == []
# Twenty at once at most, then one in a tenth of a second.
print("patient" if time.monotonic() - t > 0.5 else "hasty")
# Somebody who does not listen.
open("big", "w").write("line\n" * 400000)
deaf = knock()
deaf.send(line("diff"))
print(subprocess.run([sys.argv[1], "checkpoint"], check=True, stdout=subprocess.PIPE).stdout)
"""
    r = stet("run", "-q", "--checkpoint", "none", "--", PYTHON, "-c", script, inner, cwd=work,
             timeout=120).ok()
    assert r.out.startswith("patient\nb'checkpoint "), r.out


def test_an_asker_that_goes_with_the_run(stet, work, inner):
    """The command ends while somebody asks: the end is neither held up nor disturbed."""
    began = time.monotonic()
    stet("run", "-q", "--", "sh", "-c",
         f'echo 1 > f; {PYTHON} -c "$1" & while [ ! -e up ]; do :; done; "$2" log > log &', "sh",
         RAW + "mute = knock(); open('up', 'w'); time.sleep(100)", inner, cwd=work).ok()
    assert time.monotonic() - began < 30
    assert set(stet.changes(cwd=work, below=work)) >= {b"f", b"up"}


def test_the_door_is_not_the_only_wall(stet, work, inner):
    """Who takes the socket away finds no other way to what is kept outside."""
    stet.sh("echo 1 > first", opts=("-q",), cwd=work).ok()
    r = stet("run", "-q", "--", "sh", "-c", f"echo 2 > second; rm -f /dev/stet; {inner} commit t1; {inner} undo; "
             f"{inner} list", cwd=work)
    assert "committed" not in r.out and not os.path.exists(os.path.join(work, "first"))
    assert stet.changes("t1", cwd=work, below=work) == {b"first": "A"}


def test_intervals(stet, work):
    """One after each interval in which something has changed."""
    p = stet.popen("run", "-q", "--checkpoint", "1s", "--", "sh", "-c",
                   "echo 1 > f; read x; echo 2 > f; read x; ls", cwd=work, stdin=subprocess.PIPE)

    def points():
        return [json.loads(x) for x in stet("log", "--json", cwd=work).out.splitlines()]

    wait_until(stet.transactions)
    for n in (1, 2):
        wait_until(lambda n=n: len(points()) >= n, 120)
        p.stdin.write(b"\n")
        p.stdin.flush()
    assert p.wait(60) == 0
    found = points()
    assert len(found) == 2 and all(x["cause"] == "interval" for x in found), found
    assert "not every-call, risky, none or a time" in stet(
        "run", "--checkpoint", "sometimes", "--", "true", cwd=work).ok(125).err


@pytest.mark.parametrize("at", [[], ["--at", "0"]])
def test_explored_it_says_where_it_is(stet, work, home, at):
    """Nobody answers there, and nothing is made that would pass for the user's own state."""
    shutil.copy(stet.path, home / "stet")
    stet.run("sh", "-c", "echo 1 > a", cwd=work).ok()
    stet("checkpoint", cwd=work).ok()
    for verb in ("log", "status", "commit", "list"):
        r = stet("explore", "-q", *at, "--", "sh", "-c", f"{home}/stet {verb}; echo =$?", cwd=work)
        assert r.ok().out == "=4\n"
        assert f"stet: {verb}: in here is only what t" in r.err, repr(r)
    script = f"{home}/stet version; {home}/stet log --json; test ! -e {stet.state}/journal.db"
    stet("explore", "-q", *at, "--", "sh", "-c", script, cwd=work).ok()
    assert stet.changes(cwd=work, below=work) == {b"a": "A"}
    # The variable alone, outside, means nothing.
    stet("log", cwd=work, env={"STET_TXN": "t1"}).ok()
