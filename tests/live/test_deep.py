# SPDX-License-Identifier: Apache-2.0
"""Directories far deeper than a path may be long: every verb does with them, and in linear time."""
import os
import resource
import subprocess

import pytest

SANITIZED_APART = True

DEPTH = 1500
# What no machine needs for so many, unless it looks at each level from the top: that took a minute.
CPU_S = 12


@pytest.fixture(name="deep")
def fixture_deep(work, request):
    """Every tenth directory holds a file."""
    def make(depth, top="deep"):
        os.mkdir(work / top)
        fd = os.open(work / top, os.O_RDONLY)
        for i in range(depth):
            os.mkdir("d", dir_fd=fd)
            if i % 10 == 0:
                f = os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd)
                os.write(f, b"x\n")
                os.close(f)
            fd, last = os.open("d", os.O_RDONLY, dir_fd=fd), fd
            os.close(last)
        os.close(fd)
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", work], check=False))
    return make


def names(top):
    """How many directories and files there are, without paths that are too long."""
    out = subprocess.run(["find", ".", "-printf", "."], cwd=top, stdout=subprocess.PIPE, check=True)
    return len(out.stdout)


def cpu(verb, *args, **kw):
    """The verb's result, and the time that it took of a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = verb(*args, **kw)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("script,left", [("rm -rf deep", 0), ("mv deep moved", 1)])
def test_there_and_back(stet, work, deep, script, left):
    deep(DEPTH)
    before = names(work)
    stet("run", "-q", "--no-policy", "--", "sh", "-c", script, cwd=work, timeout=200).ok()
    spent = {}
    for verb in (["status"], ["commit"], ["undo"], ["redo"], ["undo"], ["rollback"]):
        r, spent[verb[0]] = cpu(stet, *verb, cwd=work, timeout=200)
        r.ok()
        if verb[0] in ("commit", "redo"):
            assert names(work) == (before if left else 1) and not (work / "deep").exists()
        elif verb[0] == "undo":
            assert names(work) == before and (work / "deep").exists()
    assert max(spent.values()) < CPU_S, spent


def test_checkpoints(stet, work, deep):
    """More levels than a checkpoint could have, in the layer itself."""
    deep(DEPTH)
    script = (f"echo 1 > a; {stet.path} checkpoint; mv deep moved; {stet.path} checkpoint; "
              f"rm -rf moved; {stet.path} checkpoint")
    stet("run", "-q", "--no-policy", "--", "sh", "-c", script, cwd=work, timeout=300).ok()
    for at in ("2", "3", "1", "2"):
        stet("rollback", "--to", at, cwd=work, timeout=200).ok()
    stet("commit", cwd=work, timeout=200).ok()
    assert names(work / "moved") == DEPTH + 1 + DEPTH // 10 and not (work / "deep").exists()


MAKE = "import os, time\nfor i in range(2500): os.mkdir('d'); os.chdir('d')\ntime.sleep(0.5)"


def test_limits(stet, work):
    """To be deep is not to be hidden from who counts: more levels than that had descriptors for."""
    stet("exec", "--no-policy", "--disk", "500M", "--", "python3", "-c", MAKE, cwd=work,
         timeout=200).ok()
    assert names(work) == 2501
    subprocess.run(["rm", "-rf", work / "d"], check=True)
