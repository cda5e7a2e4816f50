# SPDX-License-Identifier: Apache-2.0
"""What the host does to one path is found, whatever the transaction has done to others since: a ctime
is the transaction's own only until its last operation at that path. On three filesystems."""
import pytest
from commitlib import CONFLICT, commit, names_conflict, plain, redo, shell, undo
from test_commit_touch import fixture_place  # noqa: F401

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True

# Edits that leave size and mtime as they are, each of a file of its own in a/.
EDIT = {
    "write": "touch -r $f .t; printf HOST | dd of=$f conv=notrunc status=none; touch -r .t $f; rm .t",
    "attribute": "setfattr -n user.host -v 1 $f",
    "acl": "setfacl -m u:nobody:rwx,m::r $f",
}
EDITS = "; ".join(f"f=a/{name}; {edit}" for name, edit in EDIT.items())
# Verbs with paths before the edit, after it, and the one that finds it.
SEQUENCES = {
    "undo": (["commit"], ["undo b"], "undo"),
    "undo twice": (["commit"], ["undo b", "undo c"], "undo"),
    "commits": (["commit a"], ["commit b"], "undo a"),
    "commits, undo": (["commit a"], ["commit b", "undo"], "undo"),
    "redo": (["commit", "undo a"], ["undo b", "redo"], "redo"),
    "again": (["commit", "undo"], ["commit b"], "commit"),
    "undo, redo": (["commit", "undo", "redo"], ["undo b", "redo"], "undo"),
    "fork": (["commit", "undo"], ["commit b", "undo", "fork --name f"], "commit f"),
    "fork of a fork": (["commit", "undo"], ["commit b", "undo", "fork --name f", "fork f --name g"],
                       "commit g"),
}
# Of large files no digest is kept.
SIZES = {"small": "echo base-base >", "large": "truncate -s 5000000"}


def run(stet, top, words):
    verb, *args = words.split()
    if verb == "commit":
        args.append("--accept-risky")
    return stet(verb, *args, cwd=top)


def held(top):
    tree = plain(top)
    return {n: {k: v for k, v in d.items() if k != "links"} for n, d in tree.items() if n}


def begin(stet, top, size, work="for f in a/* b c; do echo inside >> $f; done; touch -d 2001-01-01 a/*"):
    shell(f"mkdir a; for f in {' '.join(EDIT)}; do {SIZES[size]} a/$f; done; echo base > b; echo base > c", top)
    stet.sh(work, cwd=top).ok()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_edit_is_found(stet, place, name, size):
    before, after, last = SEQUENCES[name]
    begin(stet, place, size)
    for words in before:
        run(stet, place, words).ok()
    shell(EDITS, place)
    for words in after:
        run(stet, place, words).ok()
    was = held(place)
    r = run(stet, place, last)
    assert r.rc == CONFLICT and held(place) == was
    for kind in EDIT:
        assert names_conflict(r, f"a/{kind}"), (kind, r.out, r.err)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_without_an_edit(stet, place, name, size):
    begin(stet, place, size)
    for words in SEQUENCES[name][0] + SEQUENCES[name][1] + [SEQUENCES[name][2]]:
        run(stet, place, words).ok()


def test_names_of_one_file(stet, place):
    """Operations at one name move the ctime of the others, and that is no edit; an edit of one is."""
    begin(stet, place, "large", "echo inside >> a/write; ln a/write n; ln a/write m; echo inside >> b")
    for words in ("commit a", "commit n", "commit m b", "undo b", "redo", "undo m", "redo"):
        run(stet, place, words).ok()
    shell("f=a/write; " + EDIT["write"], place)
    run(stet, place, "undo b").ok()
    assert undo(stet, place, "a").rc == CONFLICT
    undo(stet, place, "a", "--ours", "a").ok()


def test_directory_put_there_whole(stet, place):
    """Its own attributes count, too, after operations elsewhere."""
    for before, after, last in ((["commit"], ["undo b"], "undo"),
                                (["commit", "undo", "redo"], ["undo b", "redo"], "undo"),
                                (["commit", "undo", "redo"], ["undo b"], "undo")):
        begin(stet, place, "small", "mkdir d; echo inside > d/x; echo inside >> b")
        for words in before:
            run(stet, place, words).ok()
        shell("setfattr -n user.host -v 1 d", place)
        for words in after:
            run(stet, place, words).ok()
        assert run(stet, place, last).rc == CONFLICT
        assert shell("getfattr -n user.host d", place)
        shell("rm -rf a b c d", place)


# What the host gives to a directory that a commit of a part has made.
GIVEN = {"attribute": "setfattr -n user.host -v 1 d", "acl": "setfacl -m u:nobody:rx d",
         "default acl": "setfacl -d -m u:nobody:rx d", "mode": "chmod 700 d"}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("instead", [False, True], ids=["new", "instead"])
def test_made_directory_with_attributes(stet, place, given, instead):
    """The undo does not take away what the host has given to it."""
    shell("umask 022; echo base > d" if instead else ":", place)
    stet.sh("umask 022; rm -f d; mkdir d; echo 1 > d/a; echo 2 > d/b", cwd=place).ok()
    commit(stet, place, "d/a").ok()
    shell(GIVEN[given], place)
    r = undo(stet, place)
    if given != "mode" or not instead:
        assert r.rc == CONFLICT and names_conflict(r, "d"), (r.out, r.err)
        assert shell("cat d/a", place) == "1\n"


def test_made_directory_with_its_own_attributes(stet, place):
    """What it has inherited, and what the command has given to it, is no edit."""
    shell("mkdir p; setfacl -d -m u:nobody:rwx p", place)
    stet.sh("mkdir p/d q; setfattr -n user.inside -v 1 q; setfacl -m u:nobody:rx q; "
            "for d in p/d q; do echo 1 > $d/a; echo 2 > $d/b; done", cwd=place).ok()
    for words in ("commit p/d/a q/a", "undo", "redo", "commit", "undo", "undo"):
        run(stet, place, words).ok()
    assert shell("ls p", place) == "" and shell("ls", place) == "p\n"


@pytest.mark.parametrize("verb", ["undo", "redo"])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_decided_against_an_attribute(stet, place, what, verb):
    """The host's value is kept for the opposite operation."""
    shell("mkdir d" if what == "directory" else "echo base > d", place)
    shell("setfattr -n user.both -v base d; setfattr -n user.kept -v base d", place)
    stet.sh("setfattr -n user.both -v inside d; setfattr -n user.new -v inside d", cwd=place).ok()
    commit(stet, place).ok()
    host = "setfattr -n user.both -v hosts d; setfattr -n user.new -v hosts d; setfattr -n user.more -v hosts d"
    if what == "file":
        host = "cp -p d .d; " + host.replace(" d", " .d") + "; mv .d d"

    def attributes():
        return shell("getfattr -d d", place)

    if verb == "redo":
        undo(stet, place).ok()
    shell(host, place)
    hosts = attributes()
    run(stet, place, f"{verb} --ours d").ok()
    assert attributes() != hosts
    (redo if verb == "undo" else undo)(stet, place).ok()
    assert attributes() == hosts
