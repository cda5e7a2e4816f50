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
    "xattrs": "echo {} > x; setfattr -n user.one -v {} x; setfacl -m u:1:r,g:2:rw x" + CAP,
    "directory with acl": "mkdir x; echo {} > x/a; setfattr -n user.d -v {} x; "
                          "setfacl -m u:1:rx,d:u:3:rwx x",
    "read-only directory": "mkdir x; echo {} > x/a; mkdir x/s; echo b > x/s/b; chmod 555 x/s x",
    "other owner": "echo {} > x; mkdir xd; echo {} > xd/f; " + OWN + " x xd xd/f",
    "mode": "echo {} > x; chmod 4750 x; chmod g+s x",
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
    "append": ("file,hard links,sparse,xattrs", "echo more >> x"),
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
    "acl": ("file,xattrs,full directory,directory with acl", "setfacl -m u:7:rwx x"),
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
            if tx != "none":
                yield host, "make " + tx
        for tx, (kinds, _) in IN_PLACE.items():
            if applies(kinds, host):
                yield host, tx


CELLS = list(cells())

# Overlayfs gives a file with several names a copy of its own when it is first changed in
# place: inside, the other name keeps the old content. What is committed is what was seen.
SEEN_INSIDE = {("hard links", "append")}


def host_script(host):
    return f"mkdir -p c/sub; echo keep > c/sub/keep; cd c; {MAKE[host].replace('{}', 'old')}; " + \
        TIMES.format(T1)


def tx_script(tx):
    if tx.startswith("make "):
        body = CLEAR + "; rm -rf x2; " + MAKE[tx[5:]].replace("{}", "new") + f"; [ -e x -o -L x ] && {T2} x x2 xd -c"
    else:
        body = IN_PLACE[tx][1]
    # New objects get a time that can be compared; what was not touched keeps its own.
    return (f"cd c; {body}; find . -depth -newermt 2023-01-01 -print0 | xargs -0r {T2}; "
            "true")


def inside(stet, script, work):
    full = f"({script}\n) >&2 </dev/null; exec /usr/bin/python3 \"$1\" \"$2\""
    return ast.literal_eval(stet.run("bash", "-c", full, "bash", LIB, work, cwd=work).ok().out)


def check(stet, work, reference, host, tx):
    os.makedirs(work, exist_ok=True)
    os.makedirs(reference, exist_ok=True)
    shell(host_script(host), work)
    shell(host_script(host), reference)
    # The layer's own root is nobody's change.
    before, top = same_inodes(work), (b"",)
    seen = inside(stet, tx_script(tx), work)
    shell(tx_script(tx), reference)
    agree(before, same_inodes(work))
    expected = without(plain(reference), top)
    if (host, tx) in SEEN_INSIDE:
        expected = {k: {n: v for n, v in d.items() if n != "nlink"} for k, d in seen.items()}
    if not stet.transactions():
        # It changed nothing that counts, and was forgotten.
        same = without(plain(work), top)
        for d in list(same.values()) + list(expected.values()):
            d.pop("mtime")
        agree(same, expected)
        return
    commit(stet, work).ok()
    compare(expected, work, top)
    undo(stet, work).ok()
    agree(without(before, top), without(same_inodes(work), top))
    redo(stet, work).ok()
    compare(expected, work, top)


def compare(expected, work, top):
    found = without(plain(work), top)
    if expected and "links" not in next(iter(expected.values())):
        for d in found.values():
            d.pop("links")
        expected = without(expected, top)
    agree(expected, found)


def agree(expected, found):
    wrong = differences(expected, found)
    assert not wrong, "\n".join(wrong)


def without(tree, names):
    return {k: v for k, v in tree.items() if k not in names}


@pytest.mark.parametrize("host,tx", CELLS, ids=lambda v: v.replace(" ", "_"))
def test_cell(stet, work, home, host, tx):
    check(stet, str(work), str(home / "reference"), host, tx)
