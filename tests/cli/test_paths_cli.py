# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns that choose among changes, as a user types them."""
import os
import re
import subprocess

import pytest
from pending import names, state, write

# (operands, where typed, what of a.c b.c b.h [x].c sub/c.c sub/deep/d.h is then on the host)
CHOICES = [
    (["a.c"], ".", "a.c"),
    (["t1", "a.c"], ".", "a.c"),
    (["--", "a.c", "b.h"], ".", "a.c b.h"),
    (["*.c"], ".", "[x].c a.c b.c"),
    (["?.h"], ".", "b.h"),
    (["[ab].c"], ".", "a.c b.c"),
    (["[x].c"], ".", "[x].c"),
    (["sub"], ".", "sub/c.c sub/deep/d.h"),
    (["sub/"], ".", "sub/c.c sub/deep/d.h"),
    (["su*"], ".", "sub/c.c sub/deep/d.h"),
    (["*/*.c"], ".", "sub/c.c"),
    (["sub/deep"], ".", "sub/deep/d.h"),
    (["../here/b.*"], ".", "b.c b.h"),
    (["t1", "*.c"], "old", ""),
    (["../*.c"], "old", "[x].c a.c b.c"),
    (["."], ".", "[x].c a.c b.c b.h sub/c.c sub/deep/d.h"),
]


@pytest.mark.parametrize("top", ["plain", "st[r]a*nge"])
@pytest.mark.parametrize("words,where,there", CHOICES, ids=lambda v: " ".join(v)
                         if isinstance(v, list) else None)
def test_chosen_paths(stet, work, top, words, where, there):
    here = work / top / "here"
    (here / "old").mkdir(parents=True)
    (work / "stra_nge" / "here").mkdir(parents=True)
    stet.sh("mkdir -p sub/deep; touch a.c b.c b.h '[x].c' sub/c.c sub/deep/d.h; "
            "touch ../../stra_nge/here/a.c", cwd=here, opts=["--workspace", work]).ok()
    r = stet("commit", *words, cwd=here / where)
    if not there:
        assert "changed nothing at" in r.ok(1).err
        return
    r.ok()
    assert names(here) == sorted(there.split())
    assert names(work / "stra_nge") == []
    assert r.out.startswith("t1 committed in part: ")
    assert re.search(r"\nstill pending: \d added; look: stet status t1\n$", r.out), r.out
    left = {os.fsdecode(p) for p in stet.changes("t1", cwd=work, below=work)}
    assert "stra_nge/here/a.c" in left and f"{top}/here/{there.split()[0]}" not in left
    assert state(stet) == "pending"
    stet("commit", "t1", cwd=work).ok()
    assert names(here) == ["[x].c", "a.c", "b.c", "b.h", "sub/c.c", "sub/deep/d.h"]
    assert state(stet) == "committed"


@pytest.fixture(name="globs")
def fixture_globs(stet, work):
    """Names that are patterns for others, too; all of them in conflict."""
    for name in ("a*b", "axb", "[x]", "x"):
        write(work / name, "0\n")
    stet.sh("for f in *; do echo t > \"$f\"; done", cwd=work).ok()
    for name in ("a*b", "axb", "[x]", "x"):
        (work / name).write_text("h\n")
    return work


# (words, status, those that become the transaction's); the rest stay the host's
GLOBS = [
    (["--ours", "a*b", "--theirs", "axb", "--theirs", "*x*"], 0, "a*b"),
    (["--ours", "a*", "--theirs", "axb", "--theirs", "[x]", "--theirs", "x"], 0, "a*b"),
    (["--ours", ".", "--theirs", "a*b"], 0, "axb [x] x"),
    (["--theirs", ".", "--ours", "[x]"], 0, "[x]"),
    (["--theirs", ".", "--ours", "[wx]"], 1, "x"),
    (["--ours", ".", "--theirs", "."], 1, ""),
    (["--ours", "x", "--theirs", "./x"], 1, ""),
    (["--ours", "a*", "--theirs", "*b"], 1, ""),
    (["a*b", "--ours", "a*b"], 0, "a*b"),
    (["[x]", "--ours", "."], 0, "[x]"),
    (["[wx]", "--ours", "."], 0, "x"),
    (["a\\*b", "--ours", "."], 0, "a*b"),
    (["a?b", "--ours", "."], 0, "a*b axb"),
]


@pytest.mark.parametrize("words,status,wins", GLOBS, ids=lambda v: " ".join(v)
                         if isinstance(v, list) else None)
def test_names_that_are_patterns(stet, globs, words, status, wins):
    """Who names something means that alone; who names it exactly is stronger; never both."""
    r = stet("commit", *words, cwd=globs).ok(status)
    if status:
        assert "is named by --ours and by --theirs alike" in r.err
        wins = ""
    assert {n for n in names(globs) if (globs / n).read_text() == "t\n"} == set(wins.split())


def test_patterns_in_what_to_type(stet, work):
    """The printed words mean those paths and no others."""
    every = ("a*b", "axb", "[x]", "x")
    for name in every:
        write(work / name, "0\n")
    stet.sh("for f in *; do echo t > \"$f\"; done", cwd=work).ok()
    stet("commit", "[x]", cwd=work).ok()
    assert [(work / n).read_text() for n in every] == ["0\n", "0\n", "t\n", "0\n"]
    stet("commit", cwd=work).ok()
    for name in ("a*b", "axb"):
        (work / name).write_text("h\n")
    r = stet("undo", "a*b", cwd=work).ok(3)
    command = re.search(r"go on all the same: +stet (.*)", r.err)[1]
    assert command == "undo t1 'a*b' --ours 'a*b'"
    subprocess.run(["bash", "-c", f"{stet.path} {command}"], cwd=work, env=stet.environ(),
                   check=True)
    assert [(work / n).read_text() for n in every] == ["0\n", "h\n", "t\n", "t\n"]
    assert "alike" in stet("undo", "t1", "--ours", "x", "--theirs", "x", cwd=work).ok(1).err


def test_conflicts_of_one_strange_name(stet, globs):
    r = stet("diff", "--conflicts", "--json", "a*b", cwd=globs).ok().json()
    assert [os.path.basename(c["path"]) for c in r["changes"]] == ["a*b"]
