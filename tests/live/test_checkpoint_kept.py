# SPDX-License-Identifier: Apache-2.0
"""States that are worth something outlive a run that ends with nothing; and a file that nobody may
read keeps no state from being kept."""
import pytest
from stetlib import wait_until


def summary(stet, work, script, *opts):
    """What is said at the end; $0 is stet."""
    return stet("run", *opts, "--", "sh", "-c", script, stet.path, cwd=work).ok().err


def test_went_back_while_it_ran(stet, work):
    """The way back that was promised is there, though nothing is left in the end."""
    p = stet.popen("run", "--quiet", "--name", "x", "--", "sh", "-c",
                   "echo precious > f; echo READY; read line", cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    r = stet("rollback", "x", "--to", "0", cwd=work).ok()
    assert "--to 1" in r.out
    p.communicate(b"\n", timeout=60)
    assert stet.transactions()[0]["state"] == "pending"
    stet("rollback", "x", "--to", "1", cwd=work).ok()
    stet("commit", "x", cwd=work).ok()
    assert (work / "f").read_text() == "precious\n"


@pytest.mark.parametrize("opts", [[], ["--on-success", "commit"]])
def test_a_state_that_was_asked_for(stet, work, opts):
    p = stet.popen("run", *opts, "--", "sh", "-c", "echo precious > f; echo READY; read line; rm f",
                   cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    stet("checkpoint", "t1", "-m", "tests pass", cwd=work).ok()
    err = p.communicate(b"\n", timeout=60)[1]
    assert b"t1 pending: nothing changed" in err and b"stet log t1" in err
    assert "tests pass" in stet("log", "t1", cwd=work).ok().out
    stet("rollback", "t1", "--to", "1", cwd=work).ok()
    assert stet.changes("t1", below=work) == {b"f": "A"}


@pytest.mark.parametrize("script", ["true", "cat /etc/passwd >/dev/null", "ls; ls",
                                    "echo 1 > tmp; sleep 0.1; rm tmp",
                                    'echo 1 > tmp; "$0" checkpoint -m "call 1"; rm tmp'])
def test_nothing_in_between(stet, work, script):
    """Nor what came and went by itself: nobody has asked for that."""
    assert "t1" not in summary(stet, work, script)
    assert stet.transactions() == []


# Copied up, and then made unreadable to its owner: attributes of it could not be read.
SHUT = {
    "file 000": ("echo 1 > a", "echo 2 > a; chmod 000 a"),
    "file 200": ("echo 1 > a", "echo 2 > a; chmod 200 a"),
    "directory 000": ("mkdir d", "chmod 000 d"),
    "directory 100": ("mkdir d; echo 1 > d/f", "echo 2 > d/f; chmod 100 d"),
    "directory 300 of the host's": ("mkdir d; echo 1 > d/f; chmod 300 d", "echo 2 > d/f"),
}


@pytest.mark.parametrize("case", SHUT)
def test_what_nobody_may_read(stet, work, case):
    before, inside = SHUT[case]
    stet.run("sh", "-c", f"{before}; echo 1 > b", cwd=work).ok()
    stet("commit", "--accept-risky", cwd=work).ok()
    r = stet.run("sh", "-c", f"{inside}; sleep 0.1; rm b", cwd=work).ok()
    assert "denied" not in r.err and "no checkpoint" not in r.err
    assert stet.changes("t2", below=work)[b"b"] == "D"
    stet("checkpoint", "t2", cwd=work).ok()
    stet("rollback", "t2", "--to", "0", cwd=work).ok()
    assert stet.changes("t2", below=work) == {}
    stet("rollback", "t2", cwd=work).ok()
    wait_until(lambda: not stet.background())
    for d in work.iterdir():
        d.chmod(0o700)
