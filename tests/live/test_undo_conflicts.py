# SPDX-License-Identifier: Apache-2.0
"""What the user did after a commit is his: undo and redo ask before they touch it."""
import os

import pytest
from commitlib import CONFLICT, commit, names_conflict, redo, same_inodes, shell, undo
from stetlib import differences

# What the host has at "x", what the command makes of it, and what the host makes of it meanwhile:
# the commit needs --ours.
FORCED = {
    "replaced": ("seq 20 > x", "sed -i 2s/.*/TX/ x", "sed -i 19s/.*/HOST/ x"),
    "in place": ("seq 20 > x", "echo TX >> x", "echo HOST >> x"),
    "added": (":", "echo TX > x", "echo HOST > x"),
    "mode": ("echo a > x", "chmod 600 x", "chmod 640 x"),
    "directory": (":", "mkdir x; echo TX > x/f", "mkdir x; echo HOST > x/f"),
    "now a directory": ("echo a > x", "rm x; mkdir x; echo TX > x/f", "echo HOST > x"),
    "in a directory": ("mkdir x; echo a > x/f", "echo TX > x/f", "echo HOST > x/f"),
    "link": ("ln -s a x", "ln -sfn TX x", "ln -sfn HOST x"),
}
# What the user does to it later.
LATER = {
    "replaced": "sed -i 5s/.*/later/ x",
    "in place": "sed -i 5s/.*/later/ x",
    "added": "echo later >> x",
    "mode": "echo later >> x",
    "directory": "echo later > x/f",
    "now a directory": "echo later > x/g",
    "in a directory": "echo later > x/f",
    "link": "ln -sfn later x",
}


def forced(stet, work, kind):
    """A commit that had to be told to win."""
    before, inside, meanwhile = FORCED[kind]
    shell(before, work)
    stet.sh(inside, cwd=work).ok()
    shell(meanwhile, work)
    commit(stet, work).ok(CONFLICT)
    old = same_inodes(work)
    commit(stet, work, ours=["x"]).ok()
    return old


def refused(stet, work, verb):
    before = same_inodes(work)
    r = verb(stet, work).ok(CONFLICT)
    assert names_conflict(r, "x"), repr(r)
    assert differences(before, same_inodes(work)) == []


@pytest.mark.parametrize("kind", FORCED)
def test_a_forced_commit_does_not_force_its_undo(stet, work, kind):
    old = forced(stet, work, kind)
    done = same_inodes(work)
    undo(stet, work).ok()
    assert differences(old, same_inodes(work)) == []
    redo(stet, work).ok()
    assert differences(done, same_inodes(work)) == []
    shell(LATER[kind], work)
    refused(stet, work, undo)


@pytest.mark.parametrize("kind", sorted(set(FORCED) - {"added", "directory"}))
def test_nor_its_redo(stet, work, kind):
    forced(stet, work, kind)
    undo(stet, work).ok()
    shell(LATER["link" if kind == "link" else "in a directory" if kind == "in a directory"
                else "added"], work)
    refused(stet, work, redo)


@pytest.mark.parametrize("kind", ["added", "directory"])
def test_nor_the_redo_of_what_was_added(stet, work, kind):
    forced(stet, work, kind)
    undo(stet, work).ok()
    shell("rm -r x; echo later > x", work)
    refused(stet, work, redo)


# What the host has at "x", what the command makes of it, and what the user makes of that after
# the commit.
DECIDED = {
    "deleted, made anew": ("echo a > x", "rm x", "echo user > x"),
    "deleted, made anew as a directory": ("echo a > x", "rm x", "mkdir x; echo user > x/u"),
    "directory deleted, made anew": ("mkdir x; echo a > x/f", "rm -r x", "mkdir x; echo user > x/u"),
    "link deleted, made anew": ("ln -s a x", "rm x", "ln -s user x"),
    "new, changed": (":", "echo t > x", "echo user > x"),
    "new, saved anew": (":", "echo t > x", "echo user > y; mv y x"),
    "new, deleted": (":", "echo t > x", "rm x"),
    "new directory, changed": (":", "mkdir x; echo t > x/f", "echo user > x/u"),
    "new directory, deleted": (":", "mkdir x; echo t > x/f", "rm -r x"),
    "new directory, now a file": (":", "mkdir x; echo t > x/f", "rm -r x; echo user > x"),
    "changed, changed": ("echo a > x", "echo t > x", "echo user > x"),
    "changed, saved anew": ("echo a > x", "echo t > x", "echo user > y; mv y x"),
    "changed, deleted": ("echo a > x", "echo t > x", "rm x"),
    "changed, now a directory": ("echo a > x", "echo t > x", "rm x; mkdir x; echo user > x/u"),
    "directory to file, deleted": ("mkdir x; echo a > x/f", "rm -r x; echo t > x", "rm x"),
    "file to directory, changed": ("echo a > x", "rm x; mkdir x; echo t > x/f", "echo user > x/u"),
    "mode, changed": ("echo a > x", "chmod 600 x", "echo user > x"),
    "mode, saved anew": ("echo a > x", "chmod 600 x", "echo user > y; mv y x"),
    "mode, deleted": ("echo a > x", "chmod 600 x", "rm x"),
    "another name, replaced": ("echo a > y", "chmod 600 y; ln y x", "rm x; echo user > x"),
}
# Attributes are set on what is there now: that is no version of its own.
IN_PLACE = ("mode, changed", "mode, saved anew", "mode, deleted")


def beside(tree):
    """All but the top, whose mtime moves with what is put into it."""
    return {k: v for k, v in tree.items() if k}


def prepared(stet, work, kind):
    before, inside, after = DECIDED[kind]
    shell(before, work)
    old = same_inodes(work)
    stet.sh(inside, cwd=work).ok()
    commit(stet, work).ok()
    shell(after, work)
    return old, same_inodes(work)


@pytest.mark.parametrize("parts", [(), ("x", "other")], ids=["whole", "chosen"])
@pytest.mark.parametrize("kind", DECIDED)
def test_undo_may_be_told_to_go_on(stet, work, kind, parts):
    """What the hint says works, and taking that back brings the user's version again."""
    before, inside, after = DECIDED[kind]
    shell(before, work)
    old = same_inodes(work)
    stet.sh(inside + "; echo t > other; echo t > rest", cwd=work).ok()
    commit(stet, work, *[p for p in parts if kind != "another name, replaced" or p != "x"],
           *(["x", "y"] if parts and kind == "another name, replaced" else [])).ok()
    shell(after, work)
    users = same_inodes(work)
    r = undo(stet, work).ok(CONFLICT)
    hint = [line for line in r.err.splitlines() if line.startswith("go on all the same:")][0]
    assert hint.endswith("stet undo t1 --ours x"), hint
    undo(stet, work, "--ours", "x").ok()
    if kind not in IN_PLACE:
        assert differences(beside(old), beside(same_inodes(work))) == []
    elif kind != "mode, deleted":
        assert (work / "x").read_text() == "user\n"
        assert (work / "x").stat().st_mode & 0o777 == 0o644
    stet("check", cwd=work).ok()
    if kind == "another name, replaced":
        return
    redo(stet, work).ok()
    if kind not in IN_PLACE:
        assert differences(beside(users), beside(same_inodes(work))) == []
    stet("check", cwd=work).ok()
    # His version is as much his as before.
    undo(stet, work).ok(CONFLICT)


@pytest.mark.parametrize("kind", DECIDED)
def test_or_to_leave_it(stet, work, kind):
    _, users = prepared(stet, work, kind)
    undo(stet, work).ok(CONFLICT)
    undo(stet, work, "--theirs", "x").ok()
    assert beside(same_inodes(work)).get(b"x") == users.get(b"x")
    stet("check", cwd=work).ok()


# The same for redo: what the user does after the undo.
AGAIN = {
    "changed": ("echo a > x", "echo t > x", "echo user > x"),
    "saved anew": ("echo a > x", "echo t > x", "echo user > y; mv y x"),
    "gone": ("echo a > x", "echo t > x", "rm x"),
    "deleted, changed": ("echo a > x", "rm x", "echo user > x"),
    "made meanwhile": (":", "echo t > x", "echo user > x"),
    "directory meanwhile": (":", "echo t > x", "mkdir x; echo user > x/u"),
    "mode": ("echo a > x", "chmod 600 x", "echo user > y; mv y x"),
}


@pytest.mark.parametrize("kind", AGAIN)
def test_redo_may_be_told_to_go_on(stet, work, kind):
    before, inside, after = AGAIN[kind]
    shell(before, work)
    stet.sh(inside + "; echo t > other", cwd=work).ok()
    commit(stet, work).ok()
    done = same_inodes(work)
    undo(stet, work).ok()
    shell(after, work)
    users = same_inodes(work)
    r = redo(stet, work).ok(CONFLICT)
    assert "stet redo t1 --ours x" in r.err, r.err
    redo(stet, work, "--ours", "x").ok()
    if kind != "mode":
        assert differences(beside(done), beside(same_inodes(work))) == []
    stet("check", cwd=work).ok()
    undo(stet, work).ok()
    assert differences(beside(users), beside(same_inodes(work))) == []
    stet("check", cwd=work).ok()


def test_hints_do_not_repeat(stet, work):
    """Where nothing helps but to leave it, nothing else is proposed."""
    shell("mkdir d; echo a > d/x", work)
    stet.sh("echo t > d/x; echo t > n", cwd=work).ok()
    commit(stet, work).ok()
    shell("rm -r d; rm n", work)
    r = undo(stet, work, "--ours", "n").ok(CONFLICT)
    assert "go on all the same" not in r.err, r.err
    hint = [line for line in r.err.splitlines() if line.startswith("the host wins:")][0]
    assert hint.split(":")[1].split() == ["stet", "undo", "t1", "--ours", "n", "--theirs", "d/x",
                                          "--theirs", "d"], hint
    r = undo(stet, work, "--ours", "n", "--theirs", "d/x", "--theirs", "d").ok()
    assert not (work / "n").exists()


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_is_left_to_the_host_is_not_pending(stet, work, what):
    """The old version lies where the command's own was: it must not pass for that."""
    made = {"file": "echo inside > x", "directory": "rm x; mkdir x; echo inside > x/f"}[what]
    shell("echo base > x; echo base > y", work)
    stet.sh(f"{made}; echo inside > y", cwd=work).ok()
    commit(stet, work).ok()
    shell("rm -r x; echo later > x", work)
    for _ in range(2):
        undo(stet, work).ok(CONFLICT)
        undo(stet, work, "--theirs", "x").ok()
        assert stet.changes(cwd=work) == {os.fsencode(work / "y"): "M"}
        assert [(work / n).read_text() for n in "xy"] == ["later\n", "base\n"]
        redo(stet, work).ok()
        assert [(work / n).read_text() for n in "xy"] == ["later\n", "inside\n"]
    undo(stet, work, "--theirs", "x").ok()
    commit(stet, work).ok()
    assert [(work / n).read_text() for n in "xy"] == ["later\n", "inside\n"]
    assert "all well" in stet("check").ok().out
    undo(stet, work).ok()
    assert [(work / n).read_text() for n in "xy"] == ["later\n", "base\n"]


def test_what_was_left_comes_back_with_the_first_version(stet, work):
    """Left to the host, done again, and the host's own taken away: undo brings the old one."""
    shell("echo base > x", work)
    stet.sh("echo inside > x", cwd=work).ok()
    commit(stet, work).ok()
    shell("echo later > x", work)
    undo(stet, work, "--theirs", "x").ok()
    redo(stet, work).ok()
    undo(stet, work, "--ours", "x").ok()
    assert (work / "x").read_text() == "base\n"


@pytest.mark.parametrize("words", [(), ("--ours", "x")], ids=" ".join)
@pytest.mark.parametrize("command", ["rm -r x", "mv x y", "rm -r x/d"])
def test_what_the_host_has_deleted_itself(stet, work, command, words):
    """A redo finds nothing to delete: it keeps nothing, and misses nothing later."""
    shell("mkdir -p x/d; echo a > x/d/f", work)
    stet.sh(command, cwd=work).ok()
    commit(stet, work).ok()
    for _ in range(2):
        undo(stet, work).ok()
        shell(f"rm -rf {'x/d' if command == 'rm -r x/d' else 'x'}", work)
        redo(stet, work, *words).ok()
        assert "all well" in stet("check").ok().out
        undo(stet, work).ok()
        assert "all well" in stet("check").ok().out
        redo(stet, work).ok()
        assert "all well" in stet("check").ok().out


@pytest.mark.parametrize("edit", ["rm x; echo host > x", "mv y x", "rm x; mkdir x", "ln -sf y x",
                                  "mv x z; mv y x", "mv x z"])
def test_a_link_is_made_to_no_other_file(stet, work, edit):
    """A redo makes a name of the file that the command had, not of what lies there by now."""
    shell("echo old > x; echo other > y", work)
    stet.sh("ln x n; echo made > m", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    shell(edit, work)
    before = same_inodes(work)
    r = redo(stet, work).ok(CONFLICT)
    assert names_conflict(r, "n")
    assert differences(before, same_inodes(work)) == []
    redo(stet, work, "--ours", "n").ok()
    assert (work / "n").read_text() == "old\n"
    undo(stet, work).ok()
    assert differences(before, same_inodes(work)) == []


@pytest.mark.parametrize("command", ["chmod 700 d", "setfattr -n user.made -v 1 d",
                                     "chmod 700 d; echo made > d/n"])
def test_the_rest_is_done_again_without_a_directory(stet, work, command):
    """What a directory was given is taken back by itself: a redo of the rest leaves it there."""
    shell("mkdir d; echo old > f", work)
    first = same_inodes(work)
    stet.sh(f"{command}; echo made > f", cwd=work).ok()
    commit(stet, work).ok()
    last = same_inodes(work)
    undo(stet, work, "./d").ok()
    for _ in range(2):
        part = same_inodes(work)
        undo(stet, work).ok()
        assert differences(first, same_inodes(work)) == []
        redo(stet, work).ok()
        assert differences(part, same_inodes(work)) == []
    redo(stet, work).ok()
    assert differences(last, same_inodes(work)) == []
    undo(stet, work).ok()
    assert differences(first, same_inodes(work)) == []
