# SPDX-License-Identifier: Apache-2.0
"""Commits where the user may write but does not own: directories and files of other people.

The kernel cannot copy such objects into a layer, so stet does it before the command starts:
what the command leaves alone must be as if that had never happened.
"""
import os
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
    other = 1 if ROOT else next(g for g in os.getgroups() if g != os.getgid())
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
