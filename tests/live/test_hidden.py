# SPDX-License-Identifier: Apache-2.0
"""What the host has at hidden paths is not replaced, nor deleted, by who could not see it."""
import json
import os

import pytest
from commitlib import CONFLICT, DENIED, commit, end, plain, shell, undo, wait_for_notes

ONE = "hidden from the command; the host has one"
AROUND = "hidden from the command; would go with a directory around it"
KEYS = "mkdir -m700 .ssh; echo KEY > .ssh/id; echo S=1 > .env; "

# What the host has, what is hidden, what the command does, the conflicts, and a script that does
# to a copy of the host's tree what --ours does.
CASES = {
    "file": (KEYS, [".env"], "echo X > .env", {".env": ONE}, "rm .env; echo X > .env"),
    "file, deleted again": (KEYS, [".env"], "echo X > .env; rm .env; echo y > y", {},
                            "echo y > y"),
    "directory": (KEYS, [".ssh"], "mkdir .ssh; echo h > .ssh/known_hosts", {".ssh": ONE},
                  "rm -r .ssh; mkdir .ssh; echo h > .ssh/known_hosts"),
    "directory, the same name in it": (
        KEYS, [".ssh"], "mkdir .ssh; echo h > .ssh/id", {".ssh": ONE},
        "rm -r .ssh; mkdir .ssh; echo h > .ssh/id"),
    "now a file": (KEYS, [".ssh"], "echo f > .ssh", {".ssh": ONE}, "rm -r .ssh; echo f > .ssh"),
    "now a directory": (KEYS, [".env"], "mkdir .env; echo f > .env/f", {".env": ONE},
                        "rm .env; mkdir .env; echo f > .env/f"),
    "now a link": (KEYS, [".ssh"], "ln -s x .ssh", {".ssh": ONE}, "rm -r .ssh; ln -s x .ssh"),
    "moved there": (KEYS + "mkdir m; echo m > m/f", [".ssh"], "mv m .ssh", {".ssh": ONE},
                    "rm -r .ssh; mv m .ssh"),
    "both": (KEYS, [".ssh", ".env"], "mkdir .ssh; echo X > .env", {".ssh": ONE, ".env": ONE},
             "rm -r .ssh .env; mkdir .ssh; echo X > .env"),
    "deep": ("mkdir -p a/b; echo k > a/b/key; echo o > a/b/o", ["a/b/key"],
             "echo X > a/b/key; echo p > a/b/o", {"a/b/key": ONE},
             "rm a/b/key; echo X > a/b/key; echo p > a/b/o"),
    "deleted around": ("mkdir -p a/b; echo k > a/b/key; echo o > a/o", ["a/b/key"], "rm -r a",
                       {"a/b/key": AROUND}, "rm -r a"),
    "deleted around, directory": ("mkdir -p a/b; echo k > a/b/key; echo o > a/o", ["a/b"],
                                  "rm -r a", {"a/b": AROUND}, "rm -r a"),
    "moved away around": ("mkdir a; echo k > a/key; echo o > a/o", ["a/key"], "mv a z",
                          {"a/key": AROUND}, "rm a/key; mv a z"),
    "replaced around": ("mkdir a; echo k > a/key; echo o > a/o", ["a/key"],
                        "rm -r a; mkdir a; echo n > a/n", {}, "rm a/o; echo n > a/n"),
    "not touched": (KEYS, [".ssh", ".env"], "echo y > y", {}, "echo y > y"),
}


def run(stet, work, name):
    host, hidden, script, conflicts, _ = CASES[name]
    shell(host, work)
    opts = [o for h in hidden for o in ("--hide", os.path.join(work, h))]
    stet.run("bash", "-c", f"set -e; {script}", cwd=work, opts=["--no-policy", *opts]).ok()
    return conflicts


def contents(path):
    """Without the times: those of what is made twice differ."""
    drop = ("mtime", "links")
    return {n: {k: v for k, v in d.items() if k not in drop} for n, d in plain(path).items()}


def within(name, tops):
    return any((os.fsdecode(name) + "/").startswith(top + "/") for top in tops)


def noted(result):
    found = json.loads(result.out)
    return {os.path.basename(n["path"]): n["what"]
            for n in (found.get("error") or found).get("conflicts", [])}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_done_unasked(stet, work, name):
    conflicts = run(stet, work, name)
    before = plain(work)
    want = {os.path.basename(p): what for p, what in conflicts.items()}
    assert noted(commit(stet, work, opts=["--dry-run", "--json"])) == want
    assert plain(work) == before
    if conflicts:
        r = commit(stet, work, opts=["--json"]).ok(CONFLICT)
        assert noted(r) == want
        r = commit(stet, work, opts=["--merge"]).ok(CONFLICT)
        assert all(what in r.err for what in conflicts.values())
        assert plain(work) == before
        assert stet("status", cwd=work).ok().out.count("hidden on the host") == \
            list(conflicts.values()).count(ONE)
    else:
        commit(stet, work).ok()


def test_noted_while_it_runs(stet, work):
    """What the host has there is noted; to the command it was not there, so it is not missed."""
    shell(KEYS, work)
    p = stet.popen("run", "--quiet", "--hide", work / ".ssh", "--", "bash", "-c",
                   "mkdir .ssh; echo h > .ssh/id; echo READY; read line", cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    wait_for_notes(stet, p, [b"/.ssh/id"])
    end(p)
    assert noted(commit(stet, work, opts=["--json"]).ok(CONFLICT)) == {".ssh": ONE}


@pytest.mark.parametrize("name", CASES)
def test_ours_and_back(stet, work, tmp_path, name):
    """The transaction wins: as if it had been done to the host; undo brings all of it back."""
    conflicts = run(stet, work, name)
    before = plain(work)
    copy = tmp_path / "copy"
    shell(f"cp -a '{work}' '{copy}'; cd '{copy}'; {CASES[name][4]}", tmp_path)
    r = commit(stet, work, ours=conflicts, opts=["--json"]).ok()
    assert contents(work) == contents(copy)
    done = r.json()["changes"]
    made = [what for what in conflicts.values() if what == ONE]
    assert done["changed"] >= len(made), done
    undo(stet, work).ok()
    assert plain(work) == before


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][3]])
def test_theirs(stet, work, name):
    """The host wins: what was hidden is as it was, to the inode."""
    conflicts = run(stet, work, name)
    before = plain(work)
    commit(stet, work, theirs=conflicts).ok()
    after = plain(work)
    for n, d in before.items():
        if within(n, conflicts):
            assert after[n] == d


def test_nothing_there_is_a_risk_as_ever(stet, work):
    """Of what the host does not have nothing can be lost."""
    shell(KEYS, work)
    stet.sh("mkdir .ssh; echo h > .ssh/h", cwd=work, opts=["--hide", work / ".ssh"]).ok()
    shell("rm -r .ssh", work)
    r = commit(stet, work, accept=False).ok(CONFLICT)
    assert "deleted on the host" in r.err
    r = commit(stet, work, ours=[".ssh"], accept=False).ok(DENIED)
    assert "was hidden from the command" in r.err
    commit(stet, work, ours=[".ssh"]).ok()
    assert (work / ".ssh" / "h").read_text() == "h\n"


@pytest.mark.parametrize("chosen, asked", [("id", True), ("new", False), ("sub", True)])
def test_chosen_out_of_a_hidden_directory(stet, work, chosen, asked):
    """One of what was made there goes into the host's directory, which stays."""
    shell(KEYS + "mkdir .ssh/sub; echo s > .ssh/sub/s", work)
    stet.sh("mkdir -p .ssh/sub; for f in id new sub/f; do echo h > .ssh/$f; done", cwd=work,
            opts=["--hide", work / ".ssh"]).ok()
    before = plain(work)
    path = f".ssh/{chosen}"
    if asked:
        r = commit(stet, work, path).ok(CONFLICT)
        assert ONE in r.err
        assert plain(work) == before
    r = commit(stet, work, path, ours=[path], opts=["--json"]).ok().json()["changes"]
    assert (r["changed"] >= 1) == asked
    after = plain(work)
    for n, d in before.items():
        if within(n, {".ssh/id", ".ssh/sub"} - {path}):
            assert after[n] == d
    assert (work / path / "f" if chosen == "sub" else work / path).read_text() == "h\n"
    undo(stet, work).ok()
    assert plain(work) == before


@pytest.mark.parametrize("verb", ["diff", "diff --json", "show 1", "status"])
def test_the_inside_is_not_told(stet, work, verb):
    """Neither of a file that it made nor of a directory that it deleted."""
    shell("mkdir d; echo SECRET-1 > d/key; echo o > d/o; echo SECRET-2 > .env", work)
    r = stet.sh(f'rm -r d; echo X > .env; "$1" checkpoint; "$1" {verb}', stet.path, cwd=work,
                opts=["--hide", work / "d/key", "--hide", work / ".env"]).ok()
    assert ".env" in r.out
    assert "SECRET" not in r.out + r.err
    for words in verb, "diff --conflicts", "diff --conflicts --json":
        assert "SECRET" not in stet(*words.split(), cwd=work).ok().out
