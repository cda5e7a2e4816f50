# SPDX-License-Identifier: Apache-2.0
"""What a crash left, what does not fit together, and history that goes."""
import fcntl
import json
import os
import re
import sqlite3

import pytest
from pending import fixture_pending, names, state  # noqa: F401
from stetlib import wait_until


def interrupt(stet, state="committing"):
    """Makes the journal say that the last operation did not end."""
    db = sqlite3.connect(os.path.join(stet.state, "journal.db"))
    with db:
        db.execute("UPDATE op SET state = 'applying' WHERE id = (SELECT max(id) FROM op)")
        db.execute("UPDATE txn SET state = ?", (state,))
    db.close()


def plans(stet):
    return [os.path.join(d, f) for d, _, found in os.walk(os.path.join(stet.state, "tx"))
            for f in found if f.startswith("plan-")]


def spoil(path):
    with open(path, "r+b") as f:
        f.seek(40)
        f.write(b"\xff" * 8)


@pytest.mark.parametrize("words", [["list"], ["status", "t1"], ["log", "--ops"], ["check"],
                                   ["prune", "--dry-run"], ["forget", "--dry-run"]], ids=" ".join)
def test_every_verb_recovers_first(stet, pending, words):
    stet("commit", cwd=pending).ok()
    interrupt(stet)
    assert "unfinished" not in stet(*words, cwd=pending).ok().out
    assert state(stet) == "committed"
    assert stet("recover").ok().out == "nothing to recover\n"


def test_recover(stet, pending):
    stet("commit", cwd=pending).ok()
    interrupt(stet)
    assert stet("recover").ok().out == "recovered 1 operation; see: stet log\n"
    assert state(stet) == "committed" and names(pending) == ["a", "d/e/f", "new"]
    stet("undo", cwd=pending).ok()
    interrupt(stet, "undoing")
    stet.run("true", cwd=pending).ok()
    assert state(stet) == "pending"
    assert names(pending) == ["a", "src/0.c", "src/1.c", "src/2.c"]


def test_what_cannot_be_recovered_is_shown(stet, pending):
    """Looking works still, and working elsewhere; changing the host is refused."""
    stet("commit", cwd=pending).ok()
    spoil(plans(stet)[0])
    interrupt(stet)
    assert stet.transactions()[0]["state"] == "unfinished"
    out = stet("status", "t1").ok().out.splitlines()
    assert out[0] == "t1 unfinished" and out[-1] == "go on with it: stet recover"
    assert "commit (unfinished)" in stet("log", "--ops").ok().out
    stet("check").ok(7)
    stet("recover").ok(7)
    stet.sh("touch z", cwd=pending).ok()
    stet("prune").ok()
    for words in (["commit", "t2"], ["undo"], ["redo"], ["commit", "t1"]):
        r = stet(*words, cwd=pending).ok(7)
        assert r.err.startswith("stet: what a crash left unfinished: "), r.err
    for words in (["rollback", "t1"], ["diff", "t1"], ["forget", "t1"]):
        assert "t1 is unfinished" in stet(*words, cwd=pending).ok(4).err
    stet("rollback", "t2").ok()


def test_recover_and_check(stet, pending):
    stet("commit", cwd=pending).ok()
    assert stet("recover").ok().out == "nothing to recover\n"
    assert stet("recover", "--json").ok().json() == {"schema": 1, "operations": 0}
    assert stet("check").ok().out == "checked 1 transaction: all well\n"
    assert stet("check", "--json").ok().json() == {"schema": 1, "transactions": 1, "wrong": []}
    spoil(plans(stet)[0])
    r = stet("check").ok(7)
    assert r.out.splitlines()[0].startswith("t1: ")
    assert r.out.splitlines()[-1] == "checked 1 transaction: 1 thing wrong"
    assert len(stet("check", "--json").ok(7).json()["wrong"]) == 1


def test_check_beside_a_commit(stet, pending):
    """What somebody is at is not damage; what nobody is at any more is."""
    stet("commit", cwd=pending).ok()
    stet.settle()
    interrupt(stet, "committed")  # else it would be waited for first
    fd = os.open(os.path.dirname(plans(stet)[0]), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert stet("check").ok().out == "checked 1 transaction: all well\n"
    finally:
        os.close(fd)
    assert "an operation did not end" in stet("check").ok(7).out


def test_check_of_what_belongs_to_nobody(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    os.mkdir(stet.state + "/tx/0123456789abcdef")
    assert "1 directory in the stores belongs to no transaction; stet prune deletes it\n" in \
        stet("check").ok(7).out
    stet("prune").ok()
    stet("check").ok()


def test_forget(stet, work):
    for i in range(4):
        stet.sh(f"head -c 10000 /dev/urandom > f{i}", cwd=work,
                opts=["--on-success", "keep" if i == 0 else "commit"]).ok()
    r = stet("forget", "--keep-last", "1", "--dry-run").ok()
    assert re.fullmatch(r"would forget 2 transactions, .*; history holds .*\n", r.out), r.out
    assert len(stet.transactions()) == 4
    o = stet("forget", "--keep-last", "2", "--json").ok().json()
    assert set(o) == {"schema", "dry_run", "transactions", "bytes", "held"}
    assert o["transactions"] == 1
    assert {t["id"]: t["state"] for t in stet.transactions()} == \
        {"t1": "pending", "t3": "committed", "t4": "committed"}
    assert stet("forget", "--keep-within", "1h").ok().out.startswith("nothing to forget; ")
    assert stet("forget").ok().out.startswith("nothing to forget; ")
    r = stet("forget", "t1").ok(4)
    assert "t1 is pending" in r.err
    assert stet("forget", "t3").ok().out.startswith("forgot 1 transaction, ")
    assert stet("forget", "--max-size", "1").ok().out.startswith("forgot 1 transaction, ")
    assert [t["id"] for t in stet.transactions()] == ["t1"]
    assert names(work) == ["f1", "f2", "f3"]
    assert "nothing to undo" in stet("undo", cwd=work).ok(4).err


def data_of(stet):
    """The directories of the transactions that there are data of, newest first."""
    with sqlite3.connect(os.path.join(stet.state, "journal.db")) as db:
        rows = db.execute("SELECT dir FROM txn ORDER BY id DESC").fetchall()
    db.close()
    return [d for d, in rows if os.path.exists(d)]


@pytest.mark.parametrize("words", [["forget", "--max-size", "1"], ["prune"]], ids=" ".join)
def test_many_go(stet, work, words):
    """More than are let go in one write; each is told of in the books."""
    verb = words[0]
    end = "commit" if verb == "forget" else "rollback"
    n = 40
    for i in range(n):
        stet.sh(f"head -c 40000 /dev/urandom > f; echo {i}", cwd=work, opts=["--on-success", end]).ok()
    stet.settle()
    assert len(data_of(stet)) == n
    done = stet(*words, "--json").ok().json()
    assert done["transactions"] == n
    # What a commit keeps of the file before is as large; the first one found none.
    assert done["bytes"] >= (n - 1) * 40000
    assert data_of(stet) == [] and stet.transactions() == []
    books = map(json.loads, stet("audit", "--json").ok().out.splitlines())
    assert {r["txn"] for r in books if r["event"] == verb} == {f"t{i + 1}" for i in range(n)}
    stet("check").ok()


@pytest.mark.parametrize("words", [["forget", "--max-size", "1"], ["prune"]], ids=" ".join)
def test_who_waits_for_one_holds_no_other(stet, work, words):
    """Somebody is at work on one of them: those before it are gone and free meanwhile."""
    end = "commit" if words[0] == "forget" else "rollback"
    for i in range(4):
        stet.sh(f"echo {i} > f", cwd=work, opts=["--on-success", end]).ok()
    stet.settle()
    newest, second, third, oldest = data_of(stet)
    held = os.open(third, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    p = stet.popen(*words, cwd=work)
    wait_until(lambda: data_of(stet) == [third, oldest] or p.poll() is not None)
    assert p.poll() is None
    free = os.open(oldest, os.O_RDONLY)
    fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(free)
    os.close(held)
    assert p.wait(60) == 0
    assert data_of(stet) == [] and not os.path.exists(newest) and not os.path.exists(second)
    stet("check").ok()
