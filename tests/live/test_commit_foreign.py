# SPDX-License-Identifier: Apache-2.0
"""Commits where the user may write but does not own: directories and files of other people.

The kernel cannot copy such objects into a layer, so stet does it before the command starts:
what the command leaves alone must be as if that had never happened.
"""
import os
import re
import subprocess

import pytest
from commitlib import CONFLICT, commit, names_conflict, redo, shell, undo
from stetlib import differences, digest

ROOT = os.geteuid() == 0
NEEDS = "foreign"


def seen(place):
    """Without what only an owner can put back: the times of other people's directories."""
    tree = digest(place, exact=False, ignore=[n for n in os.listdir(os.fsencode(place))
                                              if n.startswith(b".stet-")])
    for d in tree.values():
        d.pop("mtime", None)
    return tree


def other_group():
    """One of the user's groups, and not his first."""
    return 1 if ROOT else next(g for g in os.getgroups() if g != os.getgid())


def there_and_back(stet, top, place):
    """What was made in @place, and in nothing around it, is committed, undone and done again."""
    before = seen(top)
    assert stet.changes("t1", cwd=place) == {os.fsencode(f"{place}/{n}"): "A" for n in ("new", "d", "d/n")}
    commit(stet, place, tx="t1").ok()
    assert sorted(os.listdir(place)) == ["d", "new"]
    undo(stet, place, "t1").ok()
    assert differences(before, seen(top)) == []
    redo(stet, place, "t1").ok()
    undo(stet, place, "t1").ok()
    stet("rollback", "t1", cwd=place).ok()
    assert differences(before, seen(top)) == []


@pytest.mark.parametrize("mode", [0o755, 0o2775, 0o1777])
def test_workspace_below_another_group(stet, home, mode):
    """The kernel copies the directories above up first."""
    place = home / "around" / "group" / "between" / "work"
    place.mkdir(parents=True)
    os.chown(home / "around" / "group", -1, other_group())
    (home / "around" / "group").chmod(mode)
    script = "echo n > new; mkdir d; echo n > d/n; test -w ../.. && stat -c %a ../.."
    assert stet.sh(script, cwd=place).ok().out == f"{mode:o}\n"
    there_and_back(stet, home / "around", place)


@pytest.mark.parametrize("where", ["in-group/own", "in-root/deep/own"])
def test_in_directories_below_others(stet, filesystem, where):
    """What is somebody else's around them is as closed as outside."""
    top = filesystem("foreign")
    may = "open" if ROOT or where.startswith("in-group") else "closed"
    script = f"cd {where}; echo n > new; mkdir d; echo n > d/n; test -w .. && echo open || echo closed"
    r = stet.sh(script, cwd=top).ok()
    assert r.out == f"{may}\n"
    there_and_back(stet, top, os.path.join(top, where))


@pytest.mark.skipif(ROOT, reason="impossible here: root's view maps every group")
def test_what_was_too_large_to_copy(stet, filesystem):
    """It keeps nobody from running; who fails hears why that may be."""
    place = os.path.join(filesystem("foreign"), "large")
    stet.sh("echo n > new; rm new; cat file > /dev/null", cwd=place).ok()
    r = stet("run", "--", "sh", "-c", "echo more >> file", cwd=place)
    assert r.rc != 0 and "too large" in r.err
    assert re.search(r"(?m)^stet: file belongs to another owner or group .*EOVERFLOW", r.err), r
    assert "--write-through file" in r.err
    for verb in ("run", "exec"):
        r = stet(verb, "--json", "--", "sh", "-c", "echo more >> file", cwd=place)
        assert f'"not_copied":"{place}/file"' in r.out + r.err, r
        r = stet(verb, "--json", "--", "true", cwd=place).ok()
        assert "not_copied" not in r.out + r.err
    assert "EOVERFLOW" not in stet("run", "-q", "--", "false", cwd=place).err
    assert "EOVERFLOW" not in stet("run", "--", "false", cwd=os.path.dirname(place) + "/much/deep").err
    stet.sh("printf x | dd of=file bs=1 conv=notrunc status=none", cwd=place, opts=("--write-through", "file")).ok()
    with open(f"{place}/file", "rb") as f:
        assert f.read(1) == b"x"
    shell("printf '\\0' | dd of=file bs=1 conv=notrunc status=none", place)


# What is done there, as outside.
WORK = {
    "new": "echo n > new",
    "replaced": "echo more >> file",
    "deleted": "rm file",
    "renamed": "mv file moved",
    "new directory": "mkdir d; echo n > d/n",
    "all": "echo n > new; mkdir d; echo n > d/n; rm file",
}


@pytest.mark.parametrize("script", WORK.values(), ids=WORK)
@pytest.mark.parametrize("where", ["group-2775", "root-1777"])
def test_in_directories_of_others(stet, filesystem, where, script):
    place = os.path.join(filesystem("foreign"), where)
    if where == "root-1777":
        shell("echo own > file", place)
    before = seen(place)
    stet.sh(script, cwd=place).ok()
    commit(stet, place).ok()
    after = seen(place)
    assert before.keys() != after.keys() or script == WORK["replaced"]
    undo(stet, place).ok()
    assert differences(before, seen(place)) == []
    redo(stet, place).ok()
    assert differences(after, seen(place)) == []
    undo(stet, place).ok()
    stet("rollback", cwd=place).ok()
    assert stet("recover", cwd=place).ok().out == "nothing to recover\n"


@pytest.mark.skipif(ROOT, reason="impossible here: root may change what others own")
@pytest.mark.parametrize("script", ["chmod 700 group-2775", "setfattr -n user.k -v 1 root-0666",
                                    "chmod 600 root-0666"])
def test_what_only_its_owner_may_do(stet, filesystem, script):
    """The copy inside is the user's own; the host's is not."""
    place, name = filesystem("foreign"), script.split()[-1]
    before = digest(place)
    stet.sh(f"{script}; echo n > new", cwd=place).ok()
    r = commit(stet, place).ok(CONFLICT)
    assert names_conflict(r, name) and "belongs to another user" in r.out + r.err, repr(r)
    assert differences(before, digest(place)) == []
    commit(stet, place, theirs=[name]).ok()
    assert os.path.exists(os.path.join(place, "new"))
    undo(stet, place).ok()
    stet("rollback", cwd=place).ok()


def of_the_group(work):
    """Files of one of the user's other groups."""
    other = other_group()
    shell("echo 0 > own; echo 0 > g; ln g twin; setfacl -m u:nobody:rw g; setfattr -n user.k -v v g; "
          "mkdir gd; setfacl -d -m u:nobody:rwx gd; setfattr -n user.k -v v gd; echo 0 > gone; "
          "truncate -s 4M sparse", work)
    for name in ("g", "gd", "gone", "sparse"):
        os.chown(work / name, -1, other)


def test_what_was_left_alone(stet, work):
    """It keeps all it had, and is no change, whatever the host does to it meanwhile."""
    of_the_group(work)
    p = stet.popen("run", "--quiet", "--", "sh", "-c",
                   "stat -c %b sparse; getfattr --only-values -n user.k g; echo; read line; echo 1 > own",
                   cwd=work, stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"0\n"
    assert p.stdout.readline() == b"v\n"
    shell("echo host >> g; rm gone; chmod 770 gd", work)
    p.communicate(b"\n", timeout=60)
    assert stet("diff", "--name-status", cwd=work).ok().out == "M\town\n"
    before = digest(work)
    commit(stet, work, accept=False).ok()
    after = digest(work)
    assert differences({k: v for k, v in before.items() if k not in (b"", b"own")},
                       {k: v for k, v in after.items() if k not in (b"", b"own")}) == []
    assert (work / "own").read_text() == "1\n"


def test_what_was_changed_in_it(stet, work):
    of_the_group(work)
    stet.sh("echo 1 >> g; echo n > gd/n; setfattr -n user.k -v w gd", cwd=work).ok()
    assert stet("diff", "--name-status", cwd=work).ok().out == "M\tg\nM\tgd/\nA\tgd/n\n"
    commit(stet, work).ok()
    assert (work / "g").read_text() == "0\n1\n"
    assert os.getxattr(work / "g", "user.k") == b"v" and os.getxattr(work / "gd", "user.k") == b"w"
    assert "nobody" in shell("getfacl g", work) and "nobody" in shell("getfacl gd", work)


@pytest.mark.parametrize("how", ["setfacl -m u:nobody:r x", "setfattr -n user.k -v 1 x"])
@pytest.mark.parametrize("script", ["echo 1 > x", "echo 1 > y; mv y x"])
def test_attributes_set_after_the_commit(stet, work, script, how):
    """An undo would lose them; a mere link, which moves the same time of the file, is none."""
    shell("echo 0 > x", work)
    stet.sh(script, cwd=work).ok()
    commit(stet, work).ok()
    shell("ln x link", work)
    undo(stet, work).ok()
    redo(stet, work).ok()
    shell(how, work)
    r = undo(stet, work).ok(CONFLICT)
    assert names_conflict(r, "x"), repr(r)
    undo(stet, work, "--ours", "x").ok()
    assert (work / "x").read_text() == "0\n"
