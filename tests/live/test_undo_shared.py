# SPDX-License-Identifier: Apache-2.0
"""What an undo puts back may have names on the host: nothing that is done inside reaches them. And
what others have put where something is to be taken away is never lost."""
import os
import subprocess

import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, shell, undo
from test_commit_several import contents
from stetlib import differences

# What the host has, the command's work, what the host does after the commit, what is undone, what
# goes on inside, and which host file must not notice.
SHARED = {
    "a link in a new directory": ("echo a > a", "mkdir f; ln a f/a", ":", [], "echo X > f/a", "a"),
    "where a file was": ("echo a > a; echo f > f", "rm f; mkdir f; ln a f/a", ":", [],
                         "echo X > f/a", "a"),
    "linked in a directory": (":", "mkdir d; echo new > d/f", "ln d/f g", [], "echo X > d/f", "g"),
    "linked": (":", "echo new > f", "ln f g", [], "echo X > f", "g"),
    "linked, replaced": ("echo old > f", "echo new > f", "ln f g", [], "echo X > f", "g"),
    "mode": (":", "echo new > f", "ln f g", [], "chmod 600 f", "g"),
    "one of two": (":", "echo new > p; ln p q", ":", ["p"], "echo X > p", "q"),
    "one in a directory": (":", "mkdir d; echo new > d/f; ln d/f g", ":", ["d"], "echo X > d/f", "g"),
    "a fifo": (":", "mkfifo f", "ln f g", [], "chmod 600 f", "g"),
    "in a shut one": (":", "mkdir d; echo new > d/f", "ln d/f g; chmod 500 d", [],
                      "chmod 700 d; echo X > d/f", "g"),
}


@pytest.mark.parametrize("case", SHARED)
def test_what_goes_on_inside(stet, work, case):
    before, inside, later, paths, more, watched = SHARED[case]
    shell(before, work)
    stet.sh(f"{inside}; echo r > rest", cwd=work).ok()
    # Not all of it: then it is pending, whatever is undone.
    commit(stet, work, "[a-q]*").ok()
    shell(later, work)
    undo(stet, work, *(["t1", *paths] if paths else ["--ours", "."])).ok()
    host = plain(work)[os.fsencode(watched)]
    stet("explore", "t1", "--", "bash", "-c", more, cwd=work).ok()
    assert plain(work)[os.fsencode(watched)] == host
    if "X" in more:
        name = more.split()[-1]
        assert stet("explore", "t1", "--", "cat", name, cwd=work).ok().out == "X\n"


def test_a_rollback_to_a_checkpoint(stet, work):
    """That is written in place, by us and not by overlayfs."""
    stet.sh("echo one > f", cwd=work).ok()
    point = stet("checkpoint", "--json", cwd=work).ok().json()["checkpoint"]["checkpoint"]
    stet("explore", "t1", "--", "sh", "-c", "echo two > f", cwd=work).ok()
    commit(stet, work).ok()
    shell("ln f g", work)
    undo(stet, work, "--ours", ".").ok()
    stet("rollback", "t1", "--to", str(point), cwd=work).ok()
    assert stet("explore", "t1", "--", "cat", "f", cwd=work).ok().out == "one\n"
    assert (work / "g").read_text() == "two\n"


def test_names_in_the_layer_stay_one(stet, work):
    stet.sh("echo new > p; ln p q; mkdir d; ln p d/r", cwd=work).ok()
    commit(stet, work).ok()
    shell("ln p mine", work)
    undo(stet, work, "--ours", ".").ok()
    stet("explore", "t1", "--", "bash", "-c", "echo X > q; cat p d/r", cwd=work).ok()
    assert (work / "mine").read_text() == "new\n"
    shell("rm mine", work)
    commit(stet, work).ok()
    assert (work / "p").samefile(work / "q") and (work / "p").samefile(work / "d/r")
    assert (work / "p").read_text() == "X\n"


def killed(stet, work, nth, *args):
    """The verb, killed at its nth rename, and recovery."""
    subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                    f"inject=renameat2:signal=KILL:when={nth}", stet.path, *args],
                   cwd=work, env=stet.environ(), check=False, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    stet("recover").ok()


@pytest.mark.parametrize("before", ["echo file > f", ":"])
def test_a_crash_takes_nothing_away(stet, work, before):
    """Between taking a directory away and looking whether it was empty."""
    shell(before, work)
    stet.sh("rm -f f; mkdir -p f/sub; echo x > f/x; echo y > f/y", cwd=work).ok()
    for nth in range(1, 9):
        commit(stet, work, "f/x").ok()
        (work / "f/user").write_text("his\n")
        killed(stet, work, nth, "undo", "t1", "--ours", ".") if nth > 6 else \
            killed(stet, work, nth, "undo", "t1")
        found = shell("find . -name user; find ../.local/state/stet -name user", work).split()
        assert len(found) == 1, (nth, found)
        if nth <= 6:
            assert (work / "f/user").read_text() == "his\n", nth
            (work / "f/user").unlink()
            if (work / "f/x").exists():
                undo(stet, work).ok()
        else:
            return
        shell("rmdir f 2>/dev/null; true", work)


def test_a_directory_that_holds_more(stet, work):
    """Each of the ways out that the refusal names."""
    shell("echo file > f", work)
    stet.sh("rm f; mkdir f; echo x > f/x; echo y > f/y", cwd=work).ok()
    commit(stet, work, "f/x").ok()
    (work / "f/user").write_text("his\n")
    before = contents(work)
    undo(stet, work).ok(CONFLICT)
    assert contents(work) == before
    undo(stet, work, "--theirs", "f").ok()
    assert sorted(os.listdir(work / "f")) == ["user"]
    redo(stet, work).ok()
    assert contents(work) == before
    undo(stet, work, "--ours", "f").ok()
    assert (work / "f").read_text() == "file\n"
    redo(stet, work).ok()
    assert sorted(os.listdir(work / "f")) == ["user", "x"]


@pytest.mark.parametrize("side, wanted", [("--ours", ["x"]), ("--theirs", None)])
def test_a_file_that_was_changed_before_the_redo(stet, work, side, wanted):
    shell("echo file > f", work)
    stet.sh("rm f; mkdir f; echo x > f/x; echo y > f/y; echo o > o", cwd=work).ok()
    commit(stet, work, "f/x", "o").ok()
    undo(stet, work).ok()
    (work / "f").write_text("changed\n")
    redo(stet, work).ok(CONFLICT)
    r = redo(stet, work, side, "f")
    if wanted:
        r.ok()
        assert os.listdir(work / "f") == wanted
        undo(stet, work).ok()
    assert (work / "f").read_text() == "changed\n"


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("how", ["cp -p a t; mv t a", "rm a", "rm a; echo other > a"])
def test_redo_of_a_link_whose_file_is_another(stet, work, how, side):
    shell("echo a > a; echo bbbb > b", work)
    stet.sh("ln -f a b; echo z > z", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    shell(how, work)
    before = contents(work)
    if how.startswith("cp"):
        redo(stet, work).ok()
        assert (work / "a").samefile(work / "b")
    else:
        redo(stet, work).ok(CONFLICT)
        redo(stet, work, f"--{side}", "b").ok()
        assert (work / "b").read_text() == ("bbbb\n" if side == "theirs" else "a\n")
        assert (work / "z").exists()
    undo(stet, work).ok()
    assert contents(work) == before


def test_a_part_that_dresses_the_rest(stet, work):
    """The attributes of one name are undone first, and the other has them, too."""
    shell("echo a > a; echo bbbb > b", work)
    before = plain(work)
    stet.sh("chmod 600 a; ln -f a b", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work, "t1", "a").ok()
    undo(stet, work).ok()
    assert differences(before, plain(work)) == []


def test_time_of_a_directory_with_a_link_instead(stet, work):
    shell("mkdir d; echo a > d/a; cp -p d/a d/b; chmod 600 d/b; touch -d 2020-01-01 d", work)
    before = plain(work)
    stet.sh("ln -f d/a d/b; echo r > r", cwd=work).ok()
    commit(stet, work, "d/b").ok()
    assert (work / "d/a").samefile(work / "d/b")
    undo(stet, work).ok()
    assert differences({k: v for k, v in before.items() if k},
                       {k: v for k, v in plain(work).items() if k}) == []


def test_a_large_file_with_its_old_time(stet, work):
    """Nothing is known of what it held: then its ctime alone says that it was changed."""
    shell("head -c 5000000 /dev/zero > f", work)
    stet.sh("echo new > f", cwd=work).ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    shell("touch -r f ../ref; echo USER | dd of=f conv=notrunc 2>/dev/null; touch -r ../ref f", work)
    redo(stet, work).ok(CONFLICT)
    redo(stet, work, "--ours", "f").ok()
    undo(stet, work).ok()
    assert (work / "f").read_bytes().startswith(b"USER")


def test_from_a_directory_that_is_gone(stet, work):
    """The shell still stands in it: what is meant is the transaction that took it away."""
    shell("mkdir -p sub/deep; echo 1 > sub/deep/f", work)
    r = subprocess.run(["bash", "-c", """cd sub/deep
(cd ../..; "$0" run -q -- rm -rf sub; "$0" commit) && "$0" status && "$0" undo && ls -l /proc/self/cwd""",
                        stet.path], cwd=work, env=stet.environ(), check=True, text=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert "t1 committed" in r.stdout and r.stdout.rstrip().endswith(str(work / "sub/deep"))
    assert (work / "sub/deep/f").read_text() == "1\n"


@pytest.mark.parametrize("way", [["t1", "z"], ["--theirs", "d"], ["--ours", "d"]])
def test_a_redo_excuses_nothing_of_others(stet, work, way):
    """What the user wrote before a redo is his after it."""
    stet.sh("mkdir d; echo agent > d/t; echo z > z", cwd=work).ok()
    commit(stet, work).ok()
    (work / "d/t").write_text("precious\n")
    undo(stet, work, *way).ok()
    redo(stet, work).ok()
    undo(stet, work).ok(CONFLICT)
    assert (work / "d/t").read_text() == "precious\n"


@pytest.mark.parametrize("how", ["mv a a2", "rm -r a", "rm a/x"])
def test_a_link_whose_file_has_moved(stet, work, how):
    """Taken back, as what it is; and not done again without the file, half or whole."""
    shell("mkdir a; echo 1 > a/x", work)
    stet.sh("ln a/x b; echo z > z", cwd=work).ok()
    commit(stet, work).ok()
    shell(how, work)
    after = contents(work)
    undo(stet, work).ok()
    assert contents(work) == {n: v for n, v in after.items() if n not in ("b", "z")}
    if how.startswith("mv"):
        redo(stet, work).ok(CONFLICT)
        assert not (work / "z").exists()
    else:
        # It was the last name: it is kept, and comes back.
        redo(stet, work).ok()
        assert contents(work) == after
    assert "all well" in stet("check").ok().out


def test_a_redo_leaves_a_file_its_attributes(stet, work):
    shell("echo file > f", work)
    stet.sh("rm f; mkdir f; echo x > f/x; echo y > f/y; chmod 777 f; touch -d 2001-01-01 f",
            cwd=work).ok()
    commit(stet, work, "f/x").ok()
    shell("rm -r f; echo mine > f; chmod 600 f", work)
    undo(stet, work, "t1", "--theirs", "f", "--theirs", "f/x").ok()
    redo(stet, work)
    st = (work / "f").stat()
    assert oct(st.st_mode) == "0o100600" and st.st_mtime > 1e9
    assert (work / "f").read_text() == "mine\n"


@pytest.mark.parametrize("mode", ["400", "600", "100", "000"])
def test_directories_that_cannot_be_searched(stet, work, mode):
    stet.sh(f"mkdir d f; echo 1 > d/x; echo 1 > f/y; chmod {mode} f", cwd=work).ok()
    commit(stet, work, "d").ok()
    commit(stet, work).ok()
    undo(stet, work).ok()
    undo(stet, work).ok()
    assert os.listdir(work) == []


def test_into_a_directory_of_the_users(stet, work):
    stet.sh("mkdir d; echo x > d/x; echo y > d/y", cwd=work).ok()
    commit(stet, work, "d/x").ok()
    undo(stet, work).ok()
    (work / "d").mkdir()
    redo(stet, work).ok()
    undo(stet, work).ok()
    assert os.listdir(work / "d") == []


def test_a_file_where_a_directory_was_to_be_made(stet, work):
    stet.sh("mkdir f; echo x > f/x; echo y > f/y; echo z > z", cwd=work).ok()
    commit(stet, work, "f/x", "z").ok()
    undo(stet, work).ok()
    (work / "f").write_text("mine\n")
    redo(stet, work).ok(CONFLICT)
    assert contents(work) == {"f": "mine"}


def test_a_link_that_is_all_that_is_left(stet, work):
    """What was written to it is nowhere else."""
    shell("mkdir a; echo 1 > a/x", work)
    stet.sh("ln a/x b; echo z > z", cwd=work).ok()
    commit(stet, work).ok()
    shell("rm a/x; echo mine > b", work)
    assert names_conflict(undo(stet, work).ok(CONFLICT), "b")
    assert (work / "b").read_text() == "mine\n" and (work / "z").exists()
