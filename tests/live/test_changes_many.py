# SPDX-License-Identifier: Apache-2.0
"""More changes than are kept in memory: the same answers, and no more memory."""
import os
import re
import subprocess

import pytest
from commitlib import CONFLICT, shell

HOST = """
mkdir -p d/gone/sub d/kept e; for i in 1 2 3; do echo $i > d/gone/$i; echo s$i > d/gone/sub/$i; done
for i in 1 2 3 4; do printf 'a\\nb\\nc%s\\n' $i > d/kept/$i; done; echo t > e/type; ln -s a e/link
"""
WORK = """
rm -r d/gone; mkdir -p new/deep/er; for i in 1 2 3; do echo n$i > new/$i; echo m$i > new/deep/er/$i; done
for i in 1 2; do echo more >> d/kept/$i; done; chmod 600 d/kept/3; rm d/kept/4
rm e/type; mkdir e/type; echo in > e/type/in; ln -sfn b e/link; touch e; mkfifo e/fifo
"""
ASKED = [["status"], ["status", "--all"], ["status", "--json"], ["diff"], ["diff", "--json"],
         ["diff", "--stat"], ["diff", "--name-status"], ["diff", "-z"], ["diff", "e", "new/deep"],
         ["diff", "--exit-code"]]


# What changes by itself, or by what is done in the background.
PASSING = r'(?m)^ +(began|history) .*\n|, not on the disk yet|"(on_disk|history_bytes)": *\w+'


def timeless(text):
    return re.sub(PASSING, "", text)


def test_as_if_they_were_few(stet, work):
    shell(HOST, work)
    stet.sh(WORK, cwd=work).ok()

    def answers():
        few = [stet(*a, cwd=work) for a in ASKED]
        many = [stet(*a, cwd=work, env={"STET_CHANGES_MAX": "1"}) for a in ASKED]
        for a, x, y in zip(ASKED, few, many):
            assert (x.rc, timeless(x.out), x.err) == (y.rc, timeless(y.out), y.err), a
        return few

    asked = answers()
    assert "new/deep/er/3" in asked[1].out and asked[9].rc == 1
    r = stet("diff", "nowhere", cwd=work, env={"STET_CHANGES_MAX": "1"})
    assert r.rc == 1 and "nowhere" in r.err
    stet("commit", cwd=work).ok()
    asked = answers()
    assert "kept/1" in asked[0].out


def test_given_up_at_once(stet, work):
    """What is still done for it in the background is no reason to wait, and nothing is lost."""
    stet.sh("mkdir d; for i in $(seq 3000); do echo $i > d/$i; done", opts=("-q",), cwd=work).ok()
    stet("rollback", cwd=work).ok()
    assert not os.path.exists(work / "d")
    stet("undo", cwd=work).ok()
    stet("commit", cwd=work).ok()
    assert len(os.listdir(work / "d")) == 3000 and (work / "d" / "7").read_text() == "7\n"
    stet("check").ok()


FEW = {"STET_CHANGES_MAX": "100", "STET_TABLE_MAX": "100"}


def peak(stet, work, *argv, env=None):
    """KiB at most. Through a small program: a child begins with what its parent has."""
    env = stet.environ(FEW if env is None else env)
    # Memory that was given back must not be counted.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
    r = subprocess.run(["/usr/bin/time", "-f", "%M", stet.path, *argv], cwd=work, env=env,
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, text=True)
    return int(r.stderr.split()[-1])


# KiB; each change would take about half of one. The sanitizers' own accounts grow.
SLACK = 4096 if os.environ.get("STET_BUILD") == "asan" else 1024
VERBS = [["status"], ["status", "--all"], ["status", "--json"], ["diff", "--stat"],
         ["diff", "--name-status"], ["diff", "--json"], ["commit"], ["status"], ["undo"], ["redo"]]


def test_memory_does_not_grow(stet, home):
    """Twenty times as many changes, spread over twenty times as many directories, with some that
    the host had nothing of, and some that were touched there: what was noted is asked for."""
    found = []
    for dirs in (2, 40):
        work = home / f"tree{dirs}"
        make = (f"for d in $(seq {dirs}); do mkdir -p $d; for i in $(seq 100); do "
                "echo $1 >> $d/$i; done; done")
        work.mkdir()
        shell(f"set -- old; {make}", work)
        stet.sh(f"set -- new; {make}; touch $(seq -f %g/added {dirs})", cwd=work).ok()
        stet.settle()
        shell("touch 1/1 2/2", work)
        found.append([peak(stet, work, *v) for v in VERBS])
    for verb, few, many in zip(VERBS, *found):
        assert many < few + SLACK, (verb, few, many)


# Of what is known of each path there is 8 bytes; there were 300.
LONG = bool(os.environ.get("STET_LONG"))
KNOWN_DIRS, KNOWN_ENV, KNOWN_SLACK = (1000, {}, 8192) if LONG else (60, FEW, SLACK)
# Each path is asked about: all were touched, or a commit was undone, or a part of it.
DEAREST = [["commit"], ["undo"], ["commit"], ["undo", "a"], ["undo"]]


def test_memory_with_every_path_known(stet, home):
    found = []
    for dirs in (1, KNOWN_DIRS):
        work = home / f"known{dirs}"
        make = (f"for d in $(seq {dirs}); do mkdir -p a/$d; for i in $(seq 100); do "
                "echo $1 >> a/$d/$i; done; done; echo $1 >> b")
        work.mkdir()
        shell(f"set -- old; {make}", work)
        stet.sh(f"set -- new; {make}", opts=("-q",), cwd=work).ok()
        stet.settle()
        shell("find . -type f -exec touch {} +", work)
        found.append([peak(stet, work, *v, env=KNOWN_ENV) for v in DEAREST])
        assert (work / "a" / "1" / "1").read_text() == (work / "b").read_text() == "old\n"
    for verb, few, many in zip(DEAREST, *found):
        assert many < few + KNOWN_SLACK, (verb, few, many)


@pytest.mark.parametrize("most", [None, "0", "7"])
def test_known_in_a_file(stet, work, most):
    """As in memory: what was touched is no conflict, what was changed is one; after an undo, too."""
    names = [f"f{i}" for i in range(40)]
    env = {"STET_TABLE_MAX": most}

    def conflicts():
        r = stet("commit", "--json", cwd=work, env=env).ok(CONFLICT)
        return {os.path.basename(c["path"]) for c in r.json()["error"]["conflicts"]}

    for name in names:
        (work / name).write_text("base\n")
    stet.sh("for f in f*; do echo inside >> $f; done", cwd=work).ok()
    stet.settle()
    shell("touch f?; cp -p f10 s; echo BASE > f10; rm f11", work)
    assert conflicts() == {"f10", "f11"}
    shell("mv s f10; echo base > f11", work)
    stet("commit", cwd=work, env=env).ok()
    stet("undo", cwd=work, env=env).ok()
    shell("touch f3?; mv f20 s; echo BASE > f20", work)
    assert conflicts() == {"f20"}
    shell("mv s f20", work)
    stet("commit", cwd=work, env=env).ok()
    stet("undo", "f1", "f2", "f3", cwd=work, env=env).ok()
    stet("undo", cwd=work, env=env).ok()
    assert {(work / name).read_text() for name in names} == {"base\n"}
    stet("commit", cwd=work, env=env).ok()
    assert {(work / name).read_text() for name in names} == {"base\ninside\n"}
