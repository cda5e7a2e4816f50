# SPDX-License-Identifier: Apache-2.0
"""What a refusal advises is done as it stands, and works: it never repeats what was just refused."""
import os
import re
import shlex

import pytest
from commitlib import CONFLICT, shell
from stetlib import make_tree

ROOT = os.geteuid() == 0
NEEDS = "foreign"
SANITIZED_APART = True

# What the host has, what the command makes of it, and what the host has made of it by then.
TREE = {"d": {"f": "f\n", "g": "g\n", "s": {"z": "z\n"}}, "h": "h\n"}
BOTH = {
    "directory to link": ("rm -r d; ln -s x d", "echo host >> d/f"),
    "directory to file": ("rm -r d; echo n > d", "echo host >> d/s/z"),
    "directory deleted": ("rm -r d", "echo host >> d/f"),
    "directory made anew": ("rm -r d; mkdir d; echo n > d/n", "echo host >> d/f"),
    "directory moved": ("mv d n", "echo host >> d/f; echo host > d/n"),
    "file": ("echo n > d/f", "echo host >> d/f"),
    "file deleted by the host": ("echo n > d/s/z", "rm -r d/s"),
    "two": ("echo n > d/f; echo n > h", "echo host > d/f; echo host > h"),
    "attributes": ("setfattr -n user.n -v 1 d", "setfattr -n user.host -v 1 d"),
}
# What was said at first.
SAID = {
    "nothing": [], "theirs": ["--theirs", "d"], "all theirs": ["--theirs", "."], "theirs below": ["--theirs", "d/f"],
    "theirs below, dotted": ["--theirs", "./d/../d/f"], "a pattern": ["--theirs", "d/*"],
    "ours below": ["--ours", "d/f"],
    "theirs deep": ["--theirs", "d/s", "--ours", "h"], "a part": ["d"], "a part of it": ["d/f", "--theirs", "d/f"],
}
ADVICE = re.compile(r"(?m)^(the \w+ wins): +stet (.*)$")


def advised(r):
    return {who: shlex.split(words) for who, words in ADVICE.findall(r.err)}


def tried(stet, top, words, both, who):
    """Of a new transaction, in the place of the one that it was said of."""
    make_tree(top, TREE)
    name = os.path.basename(top)
    stet.sh(both[0] + "; echo n > other", cwd=top, opts=("--name", name)).ok()
    shell(both[1], top)
    r = stet("commit", name, "--accept-risky", *words, cwd=top)
    if r.rc != CONFLICT:
        return r, {}
    told = advised(r)
    assert told, r
    return r, told if not who else stet(*told[who], cwd=top)


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("name", BOTH)
def test_it_works(stet, work, name, said):
    r, told = tried(stet, str(work / "before"), SAID[said], BOTH[name], None)
    if r.rc == 1:
        assert "changed nothing at" in r.err
    if not told:
        assert r.rc in (0, 1), r
        return
    assert "the host wins" in told
    for who in told:
        _, done = tried(stet, str(work / who.split()[1]), SAID[said], BOTH[name], who)
        assert done.rc == 0, (told, done)


@pytest.mark.parametrize("said", [["--theirs", "d"], ["--theirs", "."], ["--theirs", "d/f"]])
def test_the_host_wins_in_what_was_replaced(stet, work, said):
    """All of it stays, what the host has not changed, too: a link and a directory have one place."""
    make_tree(work, TREE)
    stet.sh("rm -r d; ln -s x d; echo n > other", cwd=work).ok()
    shell("echo host >> d/f", work)
    stet("commit", "--accept-risky", *said, cwd=work).ok()
    assert (work / "other").exists() and sorted(os.listdir(work / "d")) == ["f", "g", "s"]
    assert (work / "d/f").read_text() == "f\nhost\n" and (work / "d/s/z").exists()
    stet("undo", cwd=work).ok()
    assert not (work / "other").exists() and (work / "d/f").read_text() == "f\nhost\n"


def test_both_in_what_was_replaced(stet, work):
    make_tree(work, TREE)
    stet.sh("rm -r d; ln -s x d", cwd=work).ok()
    shell("echo host >> d/f", work)
    r = stet("commit", "--accept-risky", "--ours", "d", "--theirs", "./d/f", cwd=work).ok(CONFLICT)
    assert "holds what the host is to keep" in r.err and "d/f" not in r.err, r
    stet(*advised(r)["the transaction wins"], cwd=work).ok()
    assert os.readlink(work / "d") == "x"


@pytest.mark.skipif(ROOT, reason="impossible here: root may change what others own")
def test_what_ours_cannot_win(stet, filesystem):
    """Only its owner may do that to it: --ours is not advised there."""
    place = filesystem("foreign")
    stet.sh("setfattr -n user.k -v 1 root-0666; echo n > own-file; echo n > new", cwd=place).ok()
    shell("echo host > own-file", place)
    for said in ([], ["--ours", "root-0666"], ["--ours", "."]):
        r = stet("commit", *said, cwd=place).ok(CONFLICT)
        assert "--ours root-0666" not in r.err and "--theirs root-0666" in r.err, r
    told = advised(stet("commit", cwd=place).ok(CONFLICT))
    stet(*told["the transaction wins"], cwd=place).ok()
    with open(f"{place}/own-file", encoding="ascii") as f:
        assert f.read() == "n\n"
    stet("undo", cwd=place).ok()
    stet("rollback", cwd=place).ok()
    shell("echo text > own-file", place)
