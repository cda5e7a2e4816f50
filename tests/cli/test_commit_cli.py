# SPDX-License-Identifier: Apache-2.0
"""Commit, undo and what belongs to them, as a user types and reads them."""
import json
import os
import re
import subprocess

import pexpect
import pytest
from pending import fixture_pending, names, state, tick, write  # noqa: F401

QUESTION = r"\[c\]ommit  \[d\]iff  \[k\]eep  \[r\]oll back \? "
ALL_THE_SAME = r"Commit all the same\? \[y\]es  \[n\]o \? "


def tty(stet, work, *words, env=None):
    return pexpect.spawn(stet.path, list(words), cwd=str(work), timeout=30,
                         env=stet.environ(env), dimensions=(24, 100))


def ended(c):
    c.expect(pexpect.EOF)
    c.close()
    return c.exitstatus


def ops(stet, *words, cwd=None):
    """What `stet log` tells, newest first, each as (kind, tx, about, undone)."""
    lines = stet("log", "--ops", "--json", *words, cwd=cwd).ok().out.splitlines()
    found = [json.loads(line) for line in lines]
    assert all(o["schema"] == 1 for o in found)
    return [(o["kind"], o["txn"], o["of"], o["undone"]) for o in found]


def test_commit(stet, pending):
    r = stet("commit", "--dry-run", cwd=pending).ok()
    assert r.out == "t1 would be committed: 4 added, 1 changed, 4 deleted\n"
    assert names(pending) == ["a", "src/0.c", "src/1.c", "src/2.c"]
    r = stet("commit", "-m", "first\x1b[2J", cwd=pending).ok()
    assert (r.out, r.err) == ("t1 committed: 4 added, 1 changed, 4 deleted; "
                              "take it back: stet undo t1\n", "")
    assert names(pending) == ["a", "d/e/f", "new"]
    assert (pending / "a").read_text() == "a\nmore\n"
    assert state(stet) == "committed"
    head, row = stet("log", "--ops").ok().out.splitlines()
    assert head.split() == ["OP", "TIME", "WHAT", "TX", "CHANGES", "MESSAGE"]
    assert re.fullmatch(r"1   \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  commit  t1  +\d+ +first\\033\[2J", row)


def test_quiet_says_only_what_failed(stet, pending):
    for line in ("checkpoint", "restore a --from 0", "commit", "undo", "redo", "recover", "check",
                 "forget --keep-last 9", "prune", "undo", "rollback", "undo"):
        r = stet(*line.split(), "-q", cwd=pending).ok()
        assert (r.out, r.err) == ("", ""), line
    assert stet("commit", "-q", "--dry-run", "--json", cwd=pending).ok().json()["dry_run"]
    write(pending / "new", "mine\n")
    r = stet("commit", "--quiet", cwd=pending).ok(3)
    assert "stet commit t1 --ours new" in r.err


def test_undo_and_redo_may_be_tried(stet, pending):
    stet("commit", cwd=pending).ok()
    after = names(pending)
    r = stet("undo", "--dry-run", cwd=pending).ok()
    assert re.fullmatch(r"t1 would be undone: \d+ steps, no conflict\n", r.out)
    r = stet("undo", "--dry-run", "t1", pending / "new", cwd=pending).ok()
    assert re.fullmatch(r"t1 would be undone in part: \d+ steps?, no conflict\n", r.out)
    o = stet("undo", "--dry-run", "--json", cwd=pending).ok().json()
    assert set(o) == {"schema", "txn", "dry_run", "changes"} and o["dry_run"] is True
    assert names(pending) == after and state(stet) == "committed"
    write(pending / "new", "mine\n")
    r = stet("undo", "--dry-run", cwd=pending).ok(3)
    assert "new" in r.err and names(pending) == after
    stet("undo", "--ours", pending / "new", cwd=pending).ok()
    before = names(pending)
    assert stet("redo", "--dry-run", cwd=pending).ok().out.startswith("t1 would be done again: ")
    assert names(pending) == before and state(stet) == "pending"
    stet("rollback", cwd=pending).ok()
    assert stet("undo", "--dry-run", cwd=pending).ok().out.startswith("t1 would be undone: ")
    assert state(stet) == "rolled back"
    assert len(stet("log", "--ops").ok().out.splitlines()) == 4


def test_commit_as_json(stet, pending):
    o = stet("commit", "--json", "--dry-run", cwd=pending).ok().json()
    assert o["op"] is None and o["dry_run"] is True and o["txn"]["state"] == "pending"
    o = stet("commit", "--json", "--message", "why", cwd=pending).ok().json()
    assert set(o) == {"schema", "txn", "op", "dry_run", "changes", "merged", "left"}
    assert o["txn"]["id"] == "t1" and o["txn"]["state"] == "committed" and o["op"] == 1
    assert o["changes"] == {"added": 4, "changed": 1, "deleted": 4, "bytes": o["changes"]["bytes"]}
    assert o["left"] is False
    entry = json.loads(stet("log", "--ops", "--json").ok().out)
    assert entry["message"] == "why" and entry["state"] == "done" and entry["changes"] > 0
    assert entry["begin"] <= entry["end"]


def test_refusals(stet, pending):
    stet("commit", cwd=pending).ok()
    for words, status, message in [
        (["commit"], 4, "t1 is committed; stet undo t1 takes that back"),
        (["commit", "t1", "a"], 4, "t1 is committed; stet undo t1 takes that back"),
        (["rollback"], 4, "t1 is committed.*"),
        (["diff"], 4, "t1 is committed: its changes are the host's; see: stet status t1; .*"),
        (["redo"], 4, "nothing to redo in .*; see: stet log --ops"),
        (["redo", "t1"], 4, "nothing to redo in t1"),
    ]:
        r = stet(*words, cwd=pending).ok(status)
        assert re.fullmatch(f"stet: {message}\n", r.err), (words, r.err)
    stet("undo", cwd=pending).ok()
    for words, message in [
        (["commit", "nowhere"], "t1 changed nothing at 'nowhere'; see: stet status t1"),
        (["commit", "t1", "new", "src/9*"], "t1 changed nothing at 'src/9\\*'; .*"),
        (["commit", "--ours", "nowhere"], "--ours: t1 changed nothing at 'nowhere'; .*"),
        (["commit", "--theirs", "no*"], "--theirs: t1 changed nothing at 'no\\*'; .*"),
        (["commit", "t1", ""], "empty path.*"),
    ]:
        r = stet(*words, cwd=pending).ok(1)
        assert re.fullmatch(f"stet: {message}\n", r.err), (words, r.err)
        assert r.out == ""
    assert state(stet) == "pending"
    stet("undo", "t1", cwd=pending).ok(4)


def test_nothing_to_commit(stet, work):
    stet.run("true", cwd=work, opts=["--on-success", "keep"]).ok()
    r = stet("commit", cwd=work).ok()
    assert r.out == "t1 has nothing to commit and stays pending; " \
        "throw it away: stet rollback t1\n"
    assert ops(stet) == []


def test_a_link_is_a_path_of_its_own(stet, work):
    (work / "dir").mkdir()
    (work / "way").symlink_to("dir")
    stet.sh("touch dir/f; ln -sfn dir link; echo x > other", cwd=work).ok()
    stet("commit", "link", "way/f", cwd=work).ok()
    assert os.readlink(work / "link") == "dir"
    assert names(work) == ["dir/f"]


def test_partial_as_json(stet, pending):
    o = stet("commit", "--json", "new", cwd=pending).ok().json()
    assert o["left"] is True and o["changes"]["added"] == 1
    assert o["pending"]["added"] == 3 and o["pending"]["deleted"] == 4
    assert o["txn"]["state"] == "pending"


@pytest.fixture(name="conflicts")
def fixture_conflicts(stet, work):
    """t1 and the host changed both, deleted, and the text in different places."""
    lines = [f"{i}\n" for i in range(1, 20)]
    write(work / "text", "".join(lines))
    write(work / "both", "b\n")
    write(work / "gone", "g\n")
    write(work / "calm", "c\n")
    stet.sh("sed -i s/^2$/two/ text; echo t >> both; rm gone; echo t >> calm", cwd=work).ok()
    lines[17] = "eighteen\n"
    (work / "text").write_text("".join(lines))
    (work / "both").write_text("b\nh\n")
    (work / "gone").write_text("g\nh\n")
    return work


def test_conflict(stet, conflicts, digest):
    before = digest(conflicts)
    r = stet("commit", cwd=conflicts).ok(3)
    lines = r.err.splitlines()
    assert r.out == ""
    assert lines[0] == "stet: 3 paths have changed on the host since t1 began; " \
        "nothing was committed"
    assert lines[1:4] == ["  both  changed in t1, changed on the host",
                          "  gone  deleted in t1, changed on the host",
                          "  text  changed in t1, changed on the host"]
    assert [re.split(r": +", line) for line in lines[4:]] == [
        ["look", "stet diff t1 --conflicts"],
        ["the transaction wins", "stet commit t1 --ours both --ours gone --ours ./text"],
        ["the host wins", "stet commit t1 --theirs both --theirs gone --theirs ./text"],
        ["merge text", "stet commit t1 --merge"]]
    assert digest(conflicts) == before
    assert state(stet) == "pending" and ops(stet) == []
    # The very words that were printed do it.
    command = re.sub(r"^stet", stet.path, re.split(r": +", lines[5])[1])
    subprocess.run(["bash", "-c", command], cwd=conflicts, env=stet.environ(), check=True)
    assert (conflicts / "both").read_text() == "b\nt\n"
    assert not (conflicts / "gone").exists()
    stet("undo", cwd=conflicts).ok()
    assert (conflicts / "both").read_text() == "b\nh\n"
    assert (conflicts / "gone").read_text() == "g\nh\n"


def test_conflict_as_json(stet, conflicts):
    r = stet("commit", "--json", cwd=conflicts).ok(3)
    assert r.err == ""
    o = r.json()
    assert set(o) == {"schema", "error"} and o["error"]["kind"] == "conflict"
    assert set(o["error"]) == {"kind", "message", "hint", "errno", "conflicts"}
    assert [(os.path.basename(c["path"]), c["what"]) for c in o["error"]["conflicts"]] == [
        ("both", "changed in t1, changed on the host"),
        ("gone", "deleted in t1, changed on the host"),
        ("text", "changed in t1, changed on the host")]


def test_conflict_decided(stet, conflicts):
    stet("commit", "--ours", "both", "--theirs", "g*", cwd=conflicts).ok(3)
    r = stet("commit", "--ours", "both", "--theirs", "g*", "--merge", cwd=conflicts).ok()
    assert ", 1 merged; " in r.out
    assert (conflicts / "both").read_text() == "b\nt\n"
    assert (conflicts / "gone").read_text() == "g\nh\n"
    text = (conflicts / "text").read_text().split()
    assert text[1] == "two" and text[17] == "eighteen"
    stet("undo", cwd=conflicts).ok()
    assert (conflicts / "both").read_text() == "b\nh\n"
    assert (conflicts / "calm").read_text() == "c\n"


def test_what_to_type_keeps_what_was_said(stet, conflicts):
    """Typed as it stands, it decides the rest of what was asked for, and no more."""
    r = stet("commit", "both", "gone", "--merge", "-m", "two words", cwd=conflicts).ok(3)
    said = "stet commit t1 both gone -m 'two words' --merge"
    assert f"{said} --ours both --ours gone\n" in r.err and "merge text" not in r.err
    r = stet("commit", "both", "gone", "--ours", "gone", cwd=conflicts).ok(3)
    word = re.search(r"the host wins: +(stet commit t1 .*)", r.err)[1]
    assert word == "stet commit t1 both gone --ours gone --theirs both"
    stet(*word.split()[1:], cwd=conflicts).ok()
    assert "committed again, in part" in (stet("undo", cwd=conflicts).ok(),
                                          stet("redo", cwd=conflicts).ok())[1].out


def test_merge_refuses_what_overlaps(stet, conflicts):
    r = stet("commit", "--merge", "both", cwd=conflicts).ok(3)
    assert "  both  " in r.err
    assert (conflicts / "both").read_text() == "b\nh\n"


# What both sides do to a file: is it offered to merge that?
@pytest.mark.parametrize("inside, host, offered", [
    ("echo i >> f", "echo h >> f", True),
    ("printf 'a\\0b' > f", "echo h >> f", False),
    ("rm f", "echo h >> f", False),
    ("ln -sf x f", "echo h >> f", False),
    ("echo i > f", "rm f; mkfifo f", False),
    ("echo i > new", "echo h > new", False),
])
def test_merge_is_offered_where_it_may_work(stet, work, inside, host, offered):
    write(work / "f", "text\n")
    stet.sh(inside, cwd=work).ok()
    subprocess.run(["bash", "-c", host], cwd=work, check=True)
    r = stet("commit", cwd=work).ok(3)
    assert ("--merge" in r.err) == offered
    assert ("--merge" in stet("commit", "--json", cwd=work).ok(3).json()["error"]["hint"]) == offered


# The mode before, on the host, in the transaction, and after the merge; None: a conflict.
@pytest.mark.parametrize("was, host, ours, then", [
    (0o644, 0o644, 0o644, 0o644),
    (0o644, 0o644, 0o755, 0o755),
    (0o644, 0o600, 0o600, 0o600),
    (0o644, 0o600, 0o644, None),
    (0o755, 0o600, 0o700, None),
], ids=lambda m: f"{m:o}" if m else "conflict")
def test_merge_loses_no_mode(stet, work, was, host, ours, then):
    write(work / "f", "".join(f"{i}\n" for i in range(1, 20)))
    (work / "f").chmod(was)
    stet.sh(f"sed -i s/^2$/two/ f; chmod {ours:o} f", cwd=work).ok()
    (work / "f").write_text((work / "f").read_text().replace("18", "eighteen"))
    (work / "f").chmod(host)
    r = stet("commit", "--merge", cwd=work).ok(0 if then else 3)
    assert (work / "f").stat().st_mode & 0o777 == then if then else "  f  " in r.err
    assert ("two" in (work / "f").read_text()) == bool(then)


def test_a_merge_may_be_tried(stet, conflicts, digest):
    """A dry run says what the commit will say, and leaves nothing."""
    def contents(top):
        return {n: v.get("sha") for n, v in digest(top).items() if not n.startswith(b"journal")}

    stet("commit", "--dry-run", cwd=conflicts).ok(3)
    stet.settle()
    before = contents(conflicts), contents(stet.state)
    for words, status in [(["text"], 0), (["both"], 3), (["text", "both"], 3),
                          (["--ours", "both", "--theirs", "gone"], 0),
                          (["--theirs", "."], 0)]:
        r = stet("commit", "--merge", "--dry-run", "--json", *words, cwd=conflicts).ok(status)
        if status:
            assert "--theirs PATH" in r.json()["error"]["hint"]
            assert "--merge" not in r.json()["error"]["hint"]
        else:
            assert r.json()["merged"] == ("." not in words) and r.json()["op"] is None
        stet.settle()
        assert (contents(conflicts), contents(stet.state)) == before
    r = stet("commit", "--merge", "--ours", "both", "--theirs", "gone", "--json", cwd=conflicts)
    assert r.ok().json()["merged"] == 1


def test_conflicts_side_by_side(stet, conflicts):
    r = stet("diff", "--conflicts", cwd=conflicts).ok()
    assert [line for line in r.out.splitlines() if line.startswith("# ")] == [
        "# both: changed in t1, changed on the host", "# gone: deleted in t1, changed on the host",
        "# text: changed in t1, changed on the host"]
    both = r.out.split("# both")[1].split("# gone")[0]
    assert both.count("--- base/both\n+++ host/both\n@@") == 1
    assert both.count("--- base/both\n+++ transaction/both\n@@") == 1
    assert "--- host/both\n+++ transaction/both\n@@ -1,2 +1,2 @@\n b\n-h\n+t\n" in both
    assert "calm" not in r.out
    r = stet("diff", "--conflicts", "t1", "gone", cwd=conflicts).ok()
    assert "-h\n" in r.out and "both" not in r.out
    changes = stet("diff", "--conflicts", "--json", cwd=conflicts).ok().json()["changes"]
    assert [os.path.basename(c["path"]) for c in changes] == ["both", "gone", "text"]
    assert changes[0]["conflict"] == "changed in t1, changed on the host"
    assert "+++ transaction/both" in changes[0]["sides"]
    stet("commit", "--ours", ".", cwd=conflicts).ok()
    stet("undo", cwd=conflicts).ok()


def test_no_conflicts_to_show(stet, pending):
    assert stet("diff", "--conflicts", cwd=pending).ok().out == ""


def test_many_conflicts(stet, work):
    stet.sh("touch f{1..30}", cwd=work).ok()
    for i in range(1, 31):
        (work / f"f{i}").write_text("host\n")
    r = stet("commit", cwd=work).ok(3)
    assert "  … and 10 more\n" in r.err and "stet commit t1 --ours PATH\n" in r.err
    assert len(stet("commit", "--json", cwd=work).ok(3).json()["error"]["conflicts"]) == 30
    stet("commit", "--theirs", "f1*", "--ours", "f[2-9]*", cwd=work).ok()
    assert (work / "f12").read_text() == "host\n" and (work / "f2").read_text() == ""


def test_conflicts_with_strange_names(stet, work):
    evil = os.fsdecode(b"-a'\x1b[2J\n\xff\"$(x)")
    write(work / evil, "1\n")
    stet.run("bash", "-c", "echo 2 > ./-a*", cwd=work).ok()
    (work / evil).write_text("3\n")
    for words in (("--", evil), ()):
        r = stet("commit", *words, cwd=work).ok(3)
        assert not re.search(r"[^\x20-\x7e\n…]", r.err), r.err
    ours = next(line for line in r.err.splitlines() if "--ours" in line)
    command = re.sub(r"^stet", stet.path, re.split(r": +", ours)[1])
    subprocess.run(["bash", "-c", command], cwd=work, env=stet.environ(), check=True)
    assert (work / evil).read_text() == "2\n"


@pytest.fixture(name="risky")
def fixture_risky(stet, work):
    stet.sh("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; ln -s /etc/passwd link; "
            "echo p > prog; chmod 4755 prog; echo ok > plain", cwd=work).ok()
    return work


def test_risks(stet, risky):
    r = stet("commit", cwd=risky).ok(2)
    lines = r.err.splitlines()
    assert lines == [
        "stet: 3 changes deserve a look first; nothing was committed",
        "  .git/hooks/pre-commit  git hook",
        "  link                   link that leaves the workspace",
        "  prog                   runs with its owner's rights (setuid, setgid)",
        "look:                  stet diff t1",
        "commit all the same:   stet commit t1 --accept-risky"]
    assert names(risky) == []
    status = stet("status", cwd=risky).ok().out
    assert "deserve a look before a commit:\n" + "\n".join(lines[1:4]) + "\n" in status
    o = stet("commit", "--json", cwd=risky).ok(2).json()["error"]
    assert o["kind"] == "denied" and len(o["risks"]) == 3 and "conflicts" not in o
    assert [x["what"] for x in o["risks"]] == \
        [x["what"] for x in stet("status", "--json", cwd=risky).ok().json()["risks"]]
    r = stet("commit", "--dry-run", cwd=risky).ok()
    assert "deserve a look first:\n  .git/hooks/pre-commit" in r.out
    stet("commit", "plain", cwd=risky).ok()
    stet("commit", "--accept-risky", cwd=risky).ok()
    assert os.stat(risky / "prog").st_mode & 0o7777 == 0o4755


@pytest.mark.parametrize("answers,status,after", [
    (["y"], 0, "committed"), (["n"], 2, "pending"), (["", "x", "y"], 0, "committed"),
    (["\x04"], 2, "pending"), (["\x03"], 2, "pending"), (["yuck", "No"], 2, "pending"),
    (["nah", "YES"], 0, "committed"),
])
def test_risks_are_asked_about(stet, risky, answers, status, after):
    c = tty(stet, risky, "commit")
    for a in answers:
        c.expect(ALL_THE_SAME)
        c.send(a if a in ("\x03", "\x04") else a + "\r")
    assert ended(c) == status
    assert state(stet) == after


def test_status_of_what_was_committed(stet, pending):
    stet("commit", cwd=pending).ok()
    out = stet("status", cwd=pending).ok().out.splitlines()
    assert out[0] == "t1 committed"
    assert {"  M a", "  D src/", "  A d/", "  A new"} <= set(out)
    assert out[-1] == "take it back: stet undo t1"
    o = stet("status", "--json", cwd=pending).ok().json()
    assert isinstance(o["on_disk"], bool) and isinstance(o["history_bytes"], int)
    assert "risks" not in o
    stet("undo", cwd=pending).ok()
    assert stet("status", cwd=pending).ok().out.splitlines()[-1].startswith("look: stet diff t1 ")


def test_undo_and_redo(stet, pending, digest):
    before = digest(pending, exact=False)
    stet("commit", cwd=pending).ok()
    after = digest(pending, exact=False)
    r = stet("undo", cwd=pending).ok()
    assert r.out == "t1: commit taken back, pending again; do it after all: stet redo t1\n"
    assert digest(pending, exact=False) == before and state(stet) == "pending"
    assert ops(stet) == [("undo", "t1", 1, False), ("commit", "t1", None, True)]
    r = stet("redo", cwd=pending).ok()
    assert r.out == "t1 committed again; take it back: stet undo t1\n"
    assert digest(pending, exact=False) == after and state(stet) == "committed"
    assert ops(stet)[0] == ("redo", "t1", 1, False) and ops(stet)[2][3] is False
    o = stet("undo", "--json", "t1").ok().json()
    assert set(o) == {"schema", "txn", "op", "of", "changes", "dry_run"}
    assert o["of"] == "commit" and o["op"] == 4 and o["txn"]["state"] == "pending"
    assert digest(pending, exact=False) == before
    assert "commit (undone)" in stet("log", "--ops", "t1").ok().out


def test_rollback_is_undone(stet, pending):
    stet("rollback", cwd=pending).ok()
    r = stet("undo", cwd=pending).ok()
    assert r.out == "t1: rollback taken back, pending again; do it after all: stet redo t1\n"
    assert state(stet) == "pending" and stet.changes("t1", cwd=pending)
    r = stet("redo", cwd=pending).ok()
    assert r.out == "t1 rolled back again; take it back: stet undo t1\n"
    stet("prune").ok()
    assert "nothing to undo" in stet("undo", cwd=pending).ok(4).err


def test_a_chain_over_two_transactions(stet, work):
    """Undo takes the newest operation here back, whatever transaction it is on."""
    for i in (1, 2):
        stet.sh(f"echo {i} > f{i}; echo {i} > g{i}", cwd=work).ok()
    stet("commit", "t2", cwd=work).ok()
    stet("commit", "t1", "f1", cwd=work).ok()
    stet("rollback", "t1", cwd=work).ok()
    order = [("t1: rollback taken back", ["f1", "f2", "g2"]),
             ("t1: commit taken back", ["f2", "g2"]), ("t2: commit taken back", [])]
    for said, there in order:
        assert stet("undo", cwd=work).ok().out.startswith(said)
        assert names(work) == there
    stet("undo", cwd=work).ok(4)
    for said, there in [("t2 committed again", ["f2", "g2"]),
                        ("t1 committed again", ["f1", "f2", "g2"]),
                        ("t1 rolled back again", ["f1", "f2", "g2"])]:
        assert stet("redo", cwd=work).ok().out.startswith(said)
        assert names(work) == there
    stet("redo", cwd=work).ok(4)
    assert [t["state"] for t in stet.transactions()] == ["committed", "rolled back"]


def test_undo_stays_in_the_directory(stet, home, work):
    other = home / "other"
    other.mkdir()
    stet.sh("touch f", cwd=work).ok()
    stet.sh("touch g", cwd=other).ok()
    stet("commit", cwd=work).ok()
    stet("commit", cwd=other).ok()
    assert stet("undo", cwd=work).ok().out.startswith("t1: commit")
    assert names(other) == ["g"]
    (work / "sub").mkdir()
    assert stet("redo", cwd=work / "sub").ok().out.startswith("t1 committed again")


def test_a_new_commit_ends_redo(stet, work):
    stet.sh("touch f g", cwd=work).ok()
    stet("commit", cwd=work).ok()
    stet("undo", cwd=work).ok()
    stet("commit", "g", cwd=work).ok()
    stet("undo", cwd=work).ok()
    stet("redo", cwd=work).ok()
    assert names(work) == ["g"]


def test_undo_of_some_paths(stet, pending):
    stet("commit", cwd=pending).ok()
    r = stet("undo", "t1", "a", cwd=pending).ok()
    assert r.out.startswith("t1: commit taken back in part")
    assert (pending / "a").read_text() == "a\n"
    assert names(pending) == ["a", "d/e/f", "new"]
    stet("undo", "ne*", cwd=pending).ok()
    assert names(pending) == ["a", "d/e/f"]


def test_undo_never_overwrites(stet, pending):
    stet("commit", cwd=pending).ok()
    tick(pending / "a")
    (pending / "a").write_text("mine\n")
    r = stet("undo", cwd=pending).ok(3)
    assert r.out == "" and "a" in r.err
    assert re.search(r"^go on all the same: +stet undo t1 --ours a$", r.err, re.M), r.err
    assert re.search(r"^the host wins: +stet undo t1 --theirs a$", r.err, re.M), r.err
    assert names(pending) == ["a", "d/e/f", "new"] and state(stet) == "committed"
    o = stet("undo", "--json", cwd=pending).ok(3).json()["error"]
    assert o["kind"] == "conflict"
    assert [c["path"] for c in o["conflicts"]] == [str(pending / "a")]
    stet("undo", "--theirs", "a", cwd=pending).ok()
    assert (pending / "a").read_text() == "mine\n" and not (pending / "new").exists()


def test_run_and_commit(stet, work):
    r = stet("run", "--on-success", "commit", "bash", "-c", "echo x > f", cwd=work).ok()
    lines = r.err.splitlines()
    assert re.match(r"stet: t1 committed: 1 added", lines[0])
    assert lines[-1] == "  take it back: stet undo t1"
    assert (work / "f").read_text() == "x\n" and state(stet) == "committed"
    r = stet("run", "--json", "--on-failure", "commit", "bash", "-c", "echo y > f; exit 5",
             cwd=work).ok(5)
    o = json.loads(r.err)
    assert o["fate"] == "committed" and o["exit"] == 5 and o["op"] == 2 and "error" not in o
    assert (work / "f").read_text() == "y\n"
    stet.run("true", cwd=work, opts=["--on-success", "commit"]).ok()
    assert len(stet.transactions()) == 2
    stet.sh("echo z > f; exit 1", cwd=work, opts=["--on-success", "commit"]).ok(1)
    assert (work / "f").read_text() == "y\n" and state(stet, "t4") == "pending"


def test_run_whose_commit_is_refused(stet, work):
    risky = "echo x > .envrc; echo y > f"
    r = stet("run", "-q", "--on-success", "commit", "bash", "-c", risky, cwd=work).ok(125)
    assert "deserves a look first" in r.err and "  .envrc  shell start-up file\n" in r.err
    assert "stet commit t1 --accept-risky\n" in r.err
    assert names(work) == [] and state(stet) == "pending"
    r = stet("run", "--json", "--on-success", "commit", "bash", "-c", risky, cwd=work).ok(125)
    o = json.loads(r.err)
    assert o["fate"] == "pending" and o["exit"] == 0 and o["error"]["kind"] == "denied"
    assert [x["what"] for x in o["error"]["risks"]] == ["shell start-up file"]
    stet.sh(risky, cwd=work, opts=["--on-success", "commit", "--accept-risky"]).ok()
    assert names(work) == [".envrc", "f"]


def test_run_whose_commit_conflicts(stet, work):
    write(work / "f", "old\n")
    (work / "through").mkdir()
    p = stet.popen("run", "--on-success", "commit", "--write-through", "through", "bash", "-c",
                   "echo mine > f; echo > through/ready; read -r x < through/go", cwd=work)
    os.mkfifo(work / "through" / "go")
    while not (work / "through" / "ready").exists():
        assert p.poll() is None
    (work / "f").write_text("host\n")
    with open(work / "through" / "go", "w", encoding="ascii") as f:
        f.write("\n")
    err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 125, err
    assert "  f  changed in t1, changed on the host\n" in err
    assert (work / "f").read_text() == "host\n" and state(stet) == "pending"


@pytest.mark.parametrize("answer,status,after", [("y", 0, "committed"), ("n", 125, "pending")])
def test_run_asks_about_risks(stet, work, answer, status, after):
    c = tty(stet, work, "run", "--on-success", "commit", "bash", "-c", "echo x > .envrc")
    c.expect(ALL_THE_SAME)
    c.sendline(answer)
    assert ended(c) == status
    assert state(stet) == after


def test_question_with_conflict(stet, work):
    write(work / "f", "old\n")
    c = tty(stet, work, "run", "bash", "-c", "echo mine > f; touch g")
    c.expect(QUESTION)
    (work / "f").write_text("host\n")
    c.sendline("c")
    c.expect("f  changed in t1, changed on the host")
    c.expect("stet commit t1 --ours f")
    c.expect(QUESTION)
    c.sendline("k")
    assert ended(c) == 0
    assert names(work) == ["f"] and state(stet) == "pending"


@pytest.mark.parametrize("answers,after", [(["n", "r"], "rolled back"), (["y"], "committed")])
def test_question_with_risk(stet, work, answers, after):
    c = tty(stet, work, "run", "bash", "-c", "echo x > .envrc; exit 9")
    c.expect(QUESTION)
    c.sendline("c")
    c.expect(r"\.envrc  shell start-up file")
    c.expect(ALL_THE_SAME)
    c.sendline(answers[0])
    if answers[1:]:
        c.expect(QUESTION)
        c.sendline(answers[1])
    assert ended(c) == 9
    assert state(stet) == after


def test_lost_output_is_told(stet, work):
    with open("/dev/full", "wb") as full:
        r = stet("run", "bash", "-c", "echo x; echo y > f", cwd=work, stdout=full)
    assert "stet: output of the command was lost: No space left on device\n" in r.err


def test_log(stet, pending):
    assert stet("log", "--ops", cwd=pending).ok().out == "No operations.\n"
    assert stet("log", "--ops", "--json", cwd=pending).ok().out == ""
    stet("commit", "new", cwd=pending).ok()
    stet("rollback", cwd=pending).ok()
    stet.sh("touch z", cwd=pending).ok()
    stet("commit", "t2", cwd=pending).ok()
    assert ops(stet) == [("commit", "t2", None, False), ("rollback", "t1", None, False),
                         ("commit", "t1", None, False)]
    assert ops(stet, "t1") == ops(stet)[1:]


def test_completion(stet, tmp_path):
    script = tmp_path / "stet.bash"
    script.write_text(stet("completion", "bash").ok().out)
    code = ('source "$1"; cd "$2"; COMP_WORDS=(stet commit --ours ""); COMP_CWORD=3; _stet; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_text("")
    r = subprocess.run(["bash", "-c", code, "bash", script, tmp_path / "d"], check=True,
                       stdout=subprocess.PIPE, text=True)
    assert r.stdout.split() == ["file"]


def test_a_stat_is_aligned(stet, work):
    """By what is seen, not by bytes; and what is pruned has no empty diff."""
    stet.sh("mkdir d; echo 1 > é; echo 2 > abc", cwd=work).ok()
    lines = stet("diff", "--stat", cwd=work).ok().out.splitlines()
    assert lines[:3] == [" abc |     1 +", " d   |     0", " é   |     1 +"]
    stet("rollback", cwd=work).ok()
    stet("prune", cwd=work).ok()
    assert "t1 is pruned" in stet("diff", "t1", cwd=work).ok(4).err
