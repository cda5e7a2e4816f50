# SPDX-License-Identifier: Apache-2.0
"""Several transactions on one tree, and one transaction committed in pieces."""
import os
import shutil

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, same_inodes, shell, undo
from stetlib import differences


def without_top(tree):
    return {k: v for k, v in tree.items() if k}


def unchanged(before, work):
    assert differences(without_top(before), without_top(same_inodes(work))) == []


def contents(top):
    found = {}
    for d, _, names in os.walk(top):
        for n in names:
            path = os.path.join(d, n)
            name = os.path.relpath(path, top)
            if os.path.islink(path):
                found[name] = "-> " + os.readlink(path)
            elif os.path.isfile(path):
                with open(path, encoding="utf-8") as f:
                    found[name] = f.read().strip()
            else:
                found[name] = oct(os.lstat(path).st_mode)
    return found


def transaction(stet, work, name, script):
    stet.sh(script, cwd=work, opts=["--name", name]).ok()


# --- several transactions


def test_two_at_once(stet, work):
    """Apart they both succeed; where they meet, the second sees what the first did."""
    for n in range(12):
        for f in ("shared", "a", "b"):
            (work / f).write_text("base\n")
        transaction(stet, work, f"a{n}", "echo a > a; echo a > shared")
        transaction(stet, work, f"b{n}", "echo b > b; echo b > shared")
        started = [stet.popen("commit", x + str(n), cwd=work) for x in "ab"]
        ends = {}
        for x, p in zip("ab", started):
            out, err = p.communicate(timeout=60)
            ends[x] = p.returncode
            assert p.returncode in (0, CONFLICT), (out, err)
        assert sorted(ends.values()) == [0, CONFLICT], ends
        first = min(ends, key=ends.get)
        second = "b" if first == "a" else "a"
        assert contents(work) == {"shared": first, first: first, second: "base"}
        stet("rollback", second + str(n), cwd=work).ok()


def test_twenty_at_once(stet, work):
    for n in range(20):
        (work / f"f{n}").write_text("base\n")
    before = same_inodes(work)
    for n in range(20):
        transaction(stet, work, f"n{n}", f"echo {n} > f{n}; mkdir d{n}; echo {n} > d{n}/f")
    started = [stet.popen("commit", f"n{n}", cwd=work) for n in range(20)]
    for p in started:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, (out, err)
    found = contents(work)
    assert found == {f"f{n}": str(n) for n in range(20)} | \
        {f"d{n}/f": str(n) for n in range(20)}
    started = [stet.popen("undo", f"n{n}", cwd=work) for n in range(20)]
    for p in started:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, (out, err)
    unchanged(before, work)


def test_second_over_the_first(stet, work):
    """One that began after the other's commit builds on it; undone newest first."""
    shell("echo base > a; mkdir d; echo base > d/b", work)
    states = [same_inodes(work)]
    for n in (1, 2, 3):
        transaction(stet, work, f"n{n}", f"echo {n} > a; echo {n} > d/b; echo {n} > d/n{n}; "
                    f"mkdir -p new/{n}; echo {n} > new/{n}/f; echo {n} > new/last")
        commit(stet, work, tx=f"n{n}").ok()
        states.append(same_inodes(work))
    for state in states[-2::-1]:
        undo(stet, work).ok()
        unchanged(state, work)
    for state in states[1:]:
        redo(stet, work).ok()
        assert {k: v.get("sha") for k, v in same_inodes(work).items()} == \
            {k: v.get("sha") for k, v in state.items()}


def test_undo_of_the_older_one(stet, work):
    """Not while the newer one stands on it; where they do not meet it goes."""
    shell("echo base > a; echo base > b", work)
    transaction(stet, work, "one", "echo 1 > a")
    commit(stet, work, tx="one").ok()
    transaction(stet, work, "two", "echo 2 > a; echo 2 > b")
    commit(stet, work, tx="two").ok()
    before = same_inodes(work)
    undo(stet, work, "one").ok(CONFLICT)
    assert differences(before, same_inodes(work)) == []
    transaction(stet, work, "three", "echo 3 > c")
    commit(stet, work, tx="three").ok()
    undo(stet, work, "two").ok()
    undo(stet, work, "one").ok()
    assert contents(work) == {"a": "base", "b": "base", "c": "3"}


# --- one transaction in pieces

TREE = ("mkdir -p d/s old; echo base > a; echo base > b; echo base > d/c; echo base > d/s/e; "
        "echo base > old/x; echo base > old/y; chmod 640 b")
WORK = ("echo in > a; chmod 600 b; echo in > d/c; echo in > d/s/e; echo n > d/n; rm -rf old; "
        "mkdir -p new/p/q; echo 1 > new/1; echo 2 > new/p/2; echo 3 > new/p/q/3; ln -s a l")
PIECES = {
    "one file": ["a"], "two": ["a", "d/c"], "a directory": ["d"], "its directory": ["d/s"],
    "new": ["new"], "deep in new": ["new/p/q/3"], "a new directory in new": ["new/p"],
    "from a deleted one": ["old/x"], "the deleted one": ["old"], "mode": ["b"], "link": ["l"],
    "added": ["d/n"], "pattern": ["d/*"], "all but one": ["a", "b", "d", "new", "l"],
}


def prepare(stet, work, reference):
    for where in (work, reference):
        os.makedirs(where, exist_ok=True)
        shell(TREE, where)
    stet.sh(WORK, cwd=work).ok()
    shell(WORK, reference)


def chosen(name, paths):
    if name in paths or ("d/*" in paths and name.startswith("d/")):
        return True
    return any(name.startswith(p + "/") for p in paths)


def expected_after(paths, base, full):
    """Contents with only the chosen paths taken over."""
    out = {n: v for n, v in base.items() if not chosen(n, paths)}
    out.update({n: v for n, v in full.items() if chosen(n, paths)})
    return out


@pytest.mark.parametrize("name", PIECES, ids=lambda v: v.replace(" ", "_"))
def test_piece_and_rest(stet, work, home, name):
    """A piece, then the rest: the same as all at once; each taken back, in order."""
    reference = home / "reference"
    prepare(stet, str(work), str(reference))
    base, full = contents(work), contents(reference)
    states = [same_inodes(work)]
    commit(stet, work, *PIECES[name]).ok()
    assert contents(work) == expected_after(PIECES[name], base, full)
    assert stet.transactions()[0]["state"] == "pending"
    states.append(same_inodes(work))
    commit(stet, work).ok()
    assert contents(work) == full
    assert stet.transactions()[0]["state"] == "committed"
    found, wanted = without_top(plain(work)), without_top(plain(reference))
    for d in list(found.values()) + list(wanted.values()):
        d.pop("mtime")
    assert differences(wanted, found) == []
    undo(stet, work).ok()
    unchanged(states[1], work)
    undo(stet, work).ok()
    unchanged(states[0], work)
    redo(stet, work).ok()
    assert contents(work) == expected_after(PIECES[name], base, full)
    redo(stet, work).ok()
    assert contents(work) == full


def test_piece_by_piece(stet, work, home):
    reference = home / "reference"
    prepare(stet, str(work), str(reference))
    before = same_inodes(work)
    pieces = ["a", "new/p/q/3", "old/x", "d/c", "b", "new/1", "d", "l", "old", "new"]
    for piece in pieces:
        commit(stet, work, piece).ok()
    assert contents(work) == contents(reference)
    assert stet.transactions()[0]["state"] == "committed"
    for _ in pieces:
        undo(stet, work).ok()
    unchanged(before, work)


def test_what_is_left_is_still_inside(stet, work):
    """After a piece, the sandbox sees the host's new state and the rest of its own."""
    shell("mkdir -p d; echo base > a; echo base > d/c; echo base > d/gone", work)
    stet.sh("echo in > a; echo in > d/c; rm d/gone; mkdir n; echo 1 > n/1; echo 2 > n/2; "
            "rm -rf d; mkdir d; echo in > d/c; echo o > d/o", cwd=work).ok()
    commit(stet, work, "a", "n/1", "d/o").ok()
    r = stet("explore", "--", "bash", "-c", "cat a d/c d/o n/1 n/2; ls d", cwd=work).ok()
    assert r.out == "in\nin\no\n1\n2\nc\no\n"
    commit(stet, work).ok()
    assert contents(work) == {"a": "in", "d/c": "in", "d/o": "o", "n/1": "1", "n/2": "2"}


def test_a_committed_name_is_not_written_through(stet, work):
    """Two names of one new file, one of them committed: the other is still only inside."""
    stet.sh("echo one > n1; ln n1 n2", cwd=work).ok()
    commit(stet, work, "n1").ok()
    stet("explore", "--", "bash", "-c", "echo two > n2", cwd=work).ok()
    assert contents(work) == {"n1": "one"}


def test_conflict_in_a_piece_only(stet, work):
    shell("echo base > a; echo base > b", work)
    stet.sh("echo in > a; echo in > b", cwd=work).ok()
    (work / "b").write_text("host\n")
    r = commit(stet, work).ok(CONFLICT)
    assert names_conflict(r, "b") and not names_conflict(r, "a")
    commit(stet, work, "a").ok()
    assert contents(work) == {"a": "in", "b": "host"}
    commit(stet, work).ok(CONFLICT)
    commit(stet, work, theirs=["b"])
    assert contents(work) == {"a": "in", "b": "host"}


def test_undo_of_one_path(stet, work):
    shell("echo base > a; echo base > b; mkdir d; echo base > d/c", work)
    stet.sh("echo in > a; echo in > b; echo in > d/c; echo n > d/n", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work, str(work / "a"), str(work / "d/n")).ok()
    assert contents(work) == {"a": "base", "b": "in", "d/c": "in"}


@pytest.mark.parametrize("paths", [["nothing"], ["a/../../x"], ["d/none*"]])
def test_no_such_piece(stet, work, paths):
    shell("echo base > a", work)
    stet.sh("echo in > a", cwd=work).ok()
    before = same_inodes(work)
    commit(stet, work, *paths)
    assert differences(before, same_inodes(work)) == []
    commit(stet, work).ok()
    assert contents(work) == {"a": "in"}


@pytest.mark.parametrize("user", [False, True], ids=["alone", "user, too"])
def test_deleted_in_part_and_made_anew(stet, work, user):
    """That it is gone from the host is our own doing; that it is there again is not."""
    shell("echo 0 > a", work)
    stet.sh("rm a; echo 1 > rest", cwd=work).ok()
    commit(stet, work, "a").ok()
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > a", cwd=work).ok()
    if user:
        shell("echo user > a", work)
        assert names_conflict(commit(stet, work).ok(CONFLICT), "a")
    else:
        commit(stet, work).ok()
    assert contents(work) == ({"a": "user"} if user else {"a": "2", "rest": "1"})


NEW = "mkdir -p d/e/f; echo 1 | tee d/a d/e/b > d/e/f/c; echo 1 > rest"
# What the user does on the host to a directory that was committed whole.
ON_HOST = {
    "nothing": ":",
    "beside it": "echo user > d/x; echo user > y",
    "a file": "echo user > d/e/f/c",
    "its mode": "chmod 600 d/e/f/c",
    "another in its place": "mv d/e/f/c t; cp t d/e/f/c",
    "a directory": "mv d/e/f old; mv other d/e/f",
    "the one above": "mv d/e old; mkdir other/f; mv other/c other/f/c; mv other d/e",
    "all": "mv d old; mkdir -p other/e/f; mv other/c other/e/f/c; mv other d",
}


@pytest.mark.parametrize("then", ["echo 2 > d/e/f/c", "echo 2 >> d/e/f/c", "rm d/e/f/c", "rm -r d",
                                  "rm -r d; echo 2 > d"])
@pytest.mark.parametrize("user", ON_HOST)
def test_a_directory_committed_whole(stet, work, tmp_path, user, then):
    """What lies in it is in no list by its own name; it is ours all the same, until somebody
    has moved something."""
    shell("mkdir other; echo 1 > other/c", work)
    stet.sh(NEW, cwd=work).ok()
    commit(stet, work, "d").ok()
    stet("explore", "-q", "--", "sh", "-c", then, cwd=work).ok()
    shell(ON_HOST[user], work)
    before = contents(work)
    # Somebody's new file in a directory that is to go is a conflict of its own.
    if user == "nothing" or (user == "beside it" and "rm -r" not in then):
        commit(stet, work).ok()
        shutil.copytree(work, tmp_path / "plain")
        shell("rm -rf d; mkdir -p d/e/f; echo 1 | tee d/a d/e/b > d/e/f/c;" + then, tmp_path / "plain")
        if user != "nothing":
            shell("echo user > d/x", tmp_path / "plain")
        assert contents(work) == contents(tmp_path / "plain") and contents(work)["rest"] == "1"
    else:
        commit(stet, work).ok(CONFLICT)
        assert contents(work) == before


@pytest.mark.parametrize("user", [False, True], ids=["alone", "user, too"])
def test_attributes_of_a_directory_that_a_piece_needed(stet, work, user):
    """It is made with them; its mode comes with the rest, unless somebody has set another."""
    stet.sh("mkdir d; chmod 750 d; setfattr -n user.t -v 1 d; touch d/a d/b", cwd=work).ok()
    commit(stet, work, "d/a").ok()
    if user:
        shell("chmod 700 d", work)
    commit(stet, work).ok(CONFLICT if user else 0)
    assert os.path.exists(work / "d/b") != user
    assert os.listxattr(work / "d") == ["user.t"]
    assert os.stat(work / "d").st_mode & 0o777 == (0o700 if user else 0o750)
