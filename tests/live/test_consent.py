# SPDX-License-Identifier: Apache-2.0
"""Questions of the policy that another program answers."""
import os
import signal
import subprocess

import pytest
from stetlib import wait_until

POLICY = """version: 1
rules:
  - {id: test.ask, verdict: ask, program: [touch], operands: ["*"], why: it is a test}
"""


@pytest.fixture(name="start")
def fixture_start(stet, home, work):
    """Starts a script that asks, in the background."""
    (home / "policy.yaml").write_text(POLICY)
    stet.ready()

    def start(text, *opts, verb="run"):
        (work / "script").write_text("#!/bin/sh\n" + text)
        (work / "script").chmod(0o755)
        return stet.popen(verb, "-q", "--policy", home / "policy.yaml", "--ask", "socket", *opts,
                          "--", "./script", cwd=work, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return start


def waiting(stet):
    return stet("consent", "--json").ok().json()["questions"]


def question(stet, argv):
    wait_until(lambda: [q["argv"] for q in waiting(stet)] == [argv], seconds=60)
    return waiting(stet)[0]


def end(p, rc):
    out, err = p.communicate(timeout=60)
    assert p.returncode == rc, err
    return out, err


def test_yes(stet, work, start):
    p = start("touch a && touch b", "--on-success", "commit")
    q = question(stet, ["touch", "a"])
    assert (q["txn"], q["rule"], q["why"], q["cwd"]) == ("t1", "test.ask", "it is a test",
                                                        str(work))
    assert "stet consent t1 yes|no|always" in stet("consent").ok().out
    assert stet("consent", "yes", "--json").ok().json()["answer"] == "yes"
    question(stet, ["touch", "b"])
    stet("consent", "t1", "yes").ok()
    end(p, 0)
    assert (work / "a").exists() and (work / "b").exists()
    assert waiting(stet) == []
    assert "no question waits" in stet("consent", "yes").ok(4).err


def test_no(stet, work, start):
    p = start("touch a || echo refused")
    question(stet, ["touch", "a"])
    assert "maybe" in stet("consent", "t1", "maybe").ok(1).err
    stet("consent", "t1", "no").ok()
    out, err = end(p, 0)
    assert b"refused" in out and b"denied by test.ask" in err
    assert not (work / "a").exists()


def test_always(stet, work, start):
    p = start("touch a; touch b; touch c", "--json", verb="exec")
    question(stet, ["touch", "a"])
    stet("consent", "t1", "always").ok()
    end(p, 0)
    assert sorted(os.listdir(work)) == ["a", "b", "c", "script"]


def test_time_is_over(stet, work, start):
    p = start("touch a", "--timeout", "1s")
    end(p, 124)
    assert waiting(stet) == []


def test_called_off(stet, work, start):
    p = start("touch a")
    question(stet, ["touch", "a"])
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    assert p.returncode != 0 and not (work / "a").exists()


def test_out_of_reach(stet, work, start):
    """Nothing inside can answer for the person."""
    p = start(f"(for i in 1 2 3; do {stet.path} consent yes; ls -R {stet.state}; done >&2; "
              "echo tried) & touch a; wait")
    question(stet, ["touch", "a"])
    assert p.stdout.readline() == b"tried\n"
    assert len(waiting(stet)) == 1
    stet("consent", "no").ok()
    end(p, 0)
    assert not (work / "a").exists()
