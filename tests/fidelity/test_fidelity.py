# SPDX-License-Identifier: Apache-2.0
"""What is committed is what the same commands would have made without a sandbox.

Every pair of what the host has and what the command makes of it, through commit, undo and
redo. The expectation is never written down: the same scripts run on a second tree.
"""
import ast
import os

import pytest
import stetlib
from commitlib import commit, plain, redo, same_inodes, shell, undo
from stetlib import differences

NEEDS = "ext4 xfs btrfs tmpfs"
ROOT = os.geteuid() == 0
LIB = os.path.abspath(stetlib.__file__)

# A group that the user is in but that the sandbox cannot know; for root any other owner.
GROUPS = [g for g in os.getgroups() if g != os.getegid()]
OWN = "chown -h 1234:1235" if ROOT else f"chgrp -h {GROUPS[0]}" if GROUPS else ": "

T1 = "touch -h -d '2021-01-02 03:04:05.123456789'"
T2 = "touch -h -d '2022-02-03 04:05:06.987654321'"
# Inside, a user has one id and one group: others can be kept there, but not given.
ACL = "u:1:r,g:2:rw" if ROOT else f"u:{os.geteuid()}:r,g:{os.getegid()}:rw"
ACL2 = "u:1:rx,d:u:3:rwx" if ROOT else f"u:{os.geteuid()}:rx,d:g:{os.getegid()}:rwx"
ACL3 = "u:7:rwx" if ROOT else f"g:{os.getegid()}:rwx"
CAP = "; setcap cap_net_raw+ep x" if ROOT else ""

# Scripts that make "x" (and what belongs to it) where there is none.
MAKE = {
    "none": ":",
    "file": "echo {} > x",
    "empty file": ": > x",
    "empty directory": "mkdir x",
    "full directory": "mkdir -p x/s/t; echo {} > x/a; echo b > x/s/b; ln -s a x/l; echo c > x/s/t/c",
    "symlink": "ln -s {} x",
    "dangling link out": "ln -s /nonexistent/{} x",
    "fifo": "mkfifo x",
    "hard links": "echo {} > x; ln x x2",
    "sparse": "truncate -s 1M x; printf {} | dd of=x bs=1 seek=262144 conv=notrunc status=none",
    "xattrs": "echo {} > x; setfattr -n user.one -v {} x; setfacl -m " + ACL + " x" + CAP,
    "directory with acl": "mkdir x; echo {} > x/a; setfattr -n user.d -v {} x; setfacl -m "
                          + ACL2 + " x",
    "read-only directory": "mkdir x; echo {} > x/a; mkdir x/s; echo b > x/s/b; chmod 555 x/s x",
    "other owner": "echo {} > x; mkdir xd; echo {} > xd/f; " + OWN + " x xd xd/f",
    "mode": "echo {} > x; chmod 4750 x; chmod g+s x",
    "acl of others": "echo {} > x; setfacl -m u:1:r,g:2:rw x",
    "sticky directory": "mkdir x; echo {} > x/a; chmod 3771 x",
}
HOST = [k for k in MAKE if k not in ("empty file", "dangling link out", "sticky directory")]

# Only what a user must open first, so that nothing else is changed on the way.
CLEAR = "find x xd -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null; rm -rf x xd"

TIMES = "find . -depth -print0 | xargs -0 {}"

# What a command does to what it finds: by kind of host object, in place.
IN_PLACE = {
    "nothing": ("*", ":"),
    "read only": ("*", "cat x >/dev/null 2>&1 & sleep 0; kill $! 2>/dev/null; ls -la . >/dev/null"),
    "times": ("*", f"[ -e x -o -L x ] && {T2} x"),
    "delete": ("*", CLEAR),
    "append": ("file,hard links,sparse,xattrs,acl of others", "echo more >> x"),
    "other owner's append": ("other owner", "echo more >> x; echo more >> xd/f; echo new > xd/n"),
    "cut": ("file,sparse,xattrs", "truncate -s 1 x"),
    "grow": ("file,sparse", "truncate -s 2M x"),
    "punch": ("sparse", "fallocate -p -o 262144 -l 4096 x"),
    "same content": ("file,xattrs,mode", "cp -p x y; cat y > x; chmod --reference=y x; rm y"),
    "chmod": ("file,hard links,sparse,xattrs,mode,other owner,empty directory,full directory,"
              "read-only directory,directory with acl,fifo", "chmod 700 x"),
    "chown": ("file,hard links,symlink,fifo,full directory,sparse,xattrs,mode", OWN + " x"),
    "xattr": ("file,hard links,sparse,xattrs,full directory,directory with acl",
              "setfattr -n user.new -v 1 x"),
    "xattr gone": ("xattrs,directory with acl",
                   "setfattr -x user.one x 2>/dev/null || setfattr -x user.d x"),
    "acl": ("file,xattrs,full directory,directory with acl", "setfacl -m " + ACL3 + " x"),
    "acl gone": ("xattrs,directory with acl", "setfacl -b x"),
    "rename": ("*", "[ -d x ] && chmod u+w x; [ -e x -o -L x ] && mv x z"),
    "rename and back": ("file,symlink,fifo,hard links,sparse,xattrs,mode", "mv x z; mv z x"),
    "one link gone": ("hard links", "rm x2"),
    "link more": ("file,hard links,xattrs,fifo", "ln x x3; mkdir n; ln x n/x4"),
    "link more and chmod": ("file,hard links", "ln x x3; chmod 600 x"),
    "link over": ("file,hard links", "echo n > n; ln -f n x; ln n n2"),
    "add inside": ("empty directory,full directory,directory with acl",
                   "echo n > x/n; mkdir x/m; echo m > x/m/m"),
    "add inside, same times": ("empty directory,full directory", f"echo n > x/n; {T1} x"),
    "change inside": ("full directory", "echo n > x/a; rm x/s/b; echo d > x/s/t/d; chmod 700 x/s"),
    "replaced by itself": ("full directory,directory with acl",
                           "cp -a x y; rm -rf x; mv y x"),
    "another of its name": ("full directory,read-only directory,empty directory",
                            "chmod -R u+w x; rm -rf x; mkdir x; echo o > x/other; mkdir x/s"),
    "through a read-only directory": ("read-only directory",
                                      "chmod 755 x; echo n > x/n; rm x/a; chmod 555 x"),
    "empty it": ("full directory", "rm -rf x/*"),
    "moved within": ("full directory", "mv x/s/t x/t2; mv x/a x/s/"),
    "swap": ("*", "[ -d x ] && chmod u+w x; [ -e x -o -L x ] && { echo s > s; mv x t; mv s x; mv t s; }"),
    "setuid": ("file", "chmod 4755 x"),
    "target": ("symlink", "ln -sfn other x"),
}


def applies(kinds, host):
    return kinds == "*" or host in kinds.split(",")


def cells():
    for host in HOST:
        for tx in MAKE:
            if tx != "none" and (ROOT or tx not in ("other owner", "acl of others")):
                yield host, "make " + tx
        for tx, (kinds, _) in IN_PLACE.items():
            if applies(kinds, host) and (ROOT or tx != "chown"):
                yield host, tx


CELLS = list(cells())

# Cells in which the sandbox itself differs from a plain run; what is committed is then what
# was seen inside.
SEEN_INSIDE = {
    # Overlayfs gives a file with several names a copy of its own when one of them is first
    # changed: the other keeps the old content, and a new name is not a link to it.
    ("hard links", "append"), ("hard links", "rename"), ("hard links", "swap"),
    # The copy of a file with holes has fewer of them. Where the file keeps its name, they
    # are put back; a copy under another name is not known to be one.
    ("sparse", "rename"), ("sparse", "swap"),
}
if not ROOT:
    # Moving a directory is moving what it holds, and read-only directories in it hold on.
    SEEN_INSIDE |= {("read-only directory", "rename"), ("read-only directory", "swap")}
    # Inside, what has another of the user's groups has his own; under a new name it keeps it.
    SEEN_INSIDE |= {("other owner", "rename"), ("other owner", "swap")}


def place(host, tx):
    return f"c/{host}/{tx}".replace(" ", "_").replace("'", "").replace(",", "")


def host_script(cells_):
    parts = [f"(mkdir -p {place(*c)}/sub; cd {place(*c)}; echo keep > sub/keep; "
             f"{MAKE[c[0]].replace('{}', 'old')}) || exit 1" for c in cells_]
    return "\n".join(parts) + "\n" + f"find c -depth -print0 | xargs -0 {T1}"


def tx_script(cells_):
    parts = []
    for host, tx in cells_:
        if tx.startswith("make "):
            body = (f"{CLEAR}; rm -rf x2; {MAKE[tx[5:]].replace('{}', 'new')}; "
                    f"for i in x x2 xd; do [ -e $i -o -L $i ] && {T2} $i; done")
        else:
            body = IN_PLACE[tx][1]
        parts.append(f"(cd {place(host, tx)}; {body})")
    # New objects get a time that can be compared; what was not touched keeps its own.
    return ("\n".join(parts) + "\n" +
            f"find c -depth -newermt 2023-01-01 -print0 | xargs -0r {T2}; true")


def inside(stet, script, work):
    """Runs the script; the digest of what it left, as the sandbox sees it."""
    full = f"( {script}\n) >/dev/null 2>&1 </dev/null; exec /usr/bin/python3 \"$1\" \"$2\""
    # What policy says of such commands is not the question here.
    return ast.literal_eval(stet.run("bash", "-c", full, "bash", LIB, work, cwd=work,
                                     opts=("--no-policy",), timeout=400).ok().out)


def expectation(reference, seen, cells_):
    """What a plain run made; where that cannot be, what the sandbox saw."""
    expected = plain(reference)
    for cell in SEEN_INSIDE & set(cells_):
        top = os.fsencode(place(*cell)) + b"/"
        for name in [n for n in expected if n.startswith(top)]:
            del expected[name]
        for name in [n for n in seen if n.startswith(top)]:
            expected[name] = {k: v for k, v in seen[name].items() if k != "nlink"}
            expected[name]["links"] = [name]
    return below(expected)


def keep_groups(expected, before):
    """What replaces an object of its kind keeps a group that the sandbox cannot know."""
    for name, d in expected.items():
        was = before.get(name)
        if was and was["type"] == d["type"] and was["gid"] != os.getegid():
            for link in d["links"]:
                expected[link]["gid"] = was["gid"]


def below(tree):
    """The workspace's own directory is nobody's change: its times are left out."""
    return {k: v for k, v in tree.items() if k != b""}


def agree(expected, found, what):
    wrong = differences(expected, found)
    assert not wrong, what + ":\n" + "\n".join(wrong)


def check(stet, work, reference, cells_):
    for where in (work, reference):
        os.makedirs(where, exist_ok=True)
        shell(host_script(cells_), where)
    before = same_inodes(work)
    script = tx_script(cells_)
    seen = inside(stet, script, work)
    shell(script, reference)
    agree(before, same_inodes(work), "before the commit")
    expected = expectation(reference, seen, cells_)
    if not ROOT:
        keep_groups(expected, before)
    commit(stet, work).ok()
    agree(expected, below(plain(work)), "commit")
    undo(stet, work).ok()
    agree(below(before), below(same_inodes(work)), "undo")
    redo(stet, work).ok()
    agree(expected, below(plain(work)), "redo")


@pytest.mark.parametrize("host", HOST, ids=lambda v: v.replace(" ", "_"))
def test_every_pair(stet, work, home, host):
    check(stet, str(work), str(home / "reference"), [c for c in CELLS if c[0] == host])


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs"])
def test_file_systems(stet, filesystem, tmp_path, kind):
    where = f"{filesystem(kind)}/{tmp_path.name}"
    check(stet, where + "/work", where + "/reference", CELLS)
