# SPDX-License-Identifier: Apache-2.0
"""--backend btrfs in a subvolume that is mounted by itself, or lies in a mount of somebody else's.

There is no other place for the snapshot than the subvolume: it lies in it, out of the command's reach.
"""
import json
import os
import pathlib
import subprocess

import pytest
from stetlib import differences, digest, expected_changes

NEEDS = "subvol ext4"
ROOT = os.geteuid() == 0
STORE = f".stet-{os.geteuid()}"


# Root's store for a mount of root's lies at its top, where every command has it hidden.
PLACES = ["mine", "top/nested"]


@pytest.fixture(name="sub", params=PLACES)
def fixture_sub(request, filesystem):
    sub = pathlib.Path(filesystem("subvol")) / request.param
    subprocess.run("find . -mindepth 1 -maxdepth 1 ! -name '.stet-*' -exec rm -rf {} +", shell=True,
                   cwd=sub, check=True)
    (sub / "d").mkdir()
    (sub / "a").write_text("a\n")
    (sub / "d/b").write_text("b\n")
    return sub


def look(sub):
    return {n: {k: v for k, v in d.items() if k not in ("ctime", "ino")}
            for n, d in digest(sub, ignore=(os.fsencode(STORE),)).items() if n}


def run(stet, sub, *argv, opts=()):
    return stet("run", "-q", "--backend", "btrfs", *opts, "--", *argv, cwd=sub)


def stores(sub):
    """What is in our stores there, but for what makes git look away."""
    found = []
    for top in {sub, sub.parent}:
        for at, dirs, files in os.walk(top / STORE):
            found += [os.path.join(at, n) for n in dirs + files if n != ".gitignore"]
    return found


def test_there_and_back(stet, sub):
    """Status, diff and rollback see the command's work and nothing of the store."""
    before = look(sub)
    run(stet, sub, "sh", "-c", "echo 1 >> a; rm -r d; mkdir e; echo n > e/n").ok()
    after = look(sub)
    assert differences(before, after)
    assert stet.changes(cwd=sub, below=sub) == expected_changes(before, after)
    stet("explore", "-q", "--", "sh", "-c", "echo 2 > two", cwd=sub).ok()
    assert b"two" in stet.changes(cwd=sub, below=sub)
    (sub / "others").write_text("1")
    r = json.loads(stet("rollback", "--json", cwd=sub).ok().out)
    assert r["kept"] == 1 and (sub / "others").read_text() == "1"
    os.unlink(sub / "others")
    assert not differences(before, look(sub))
    stet("prune", cwd=sub).ok()
    assert not [x for x in stores(sub) if "/snap" in x or "/end" in x or "/after" in x]


def test_kept(stet, sub):
    run(stet, sub, "sh", "-c", "echo 1 > kept", opts=["--on-success", "commit"]).ok()
    assert (sub / "kept").read_text() == "1\n" and stet("check").ok()


def test_beside_an_overlay(stet, sub):
    """A captured transaction and one in place use the same store."""
    stet("run", "-q", "--", "sh", "-c", "echo 1 > captured", cwd=sub).ok()
    run(stet, sub, "sh", "-c", "test ! -e captured && echo 1 > direct").ok()
    stet("rollback", "t2", cwd=sub).ok()
    assert not (sub / "direct").exists()
    stet("commit", "t1", cwd=sub).ok()
    assert (sub / "captured").read_text() == "1\n"


# What a command may try on the store, which lies in its own work, and on the whole as root sees it.
TRIES = [
    "ls -A {store}/* | grep .", "mv {store} moved", "mv -T --exchange a {store}", "rmdir {store}",
    "rm -rf {store} && test ! -e {store}", "chmod 777 {store}", "touch {store}/x", "mkdir {store}/x",
    "ln -s x {store}/y", "btrfs -q subvolume snapshot . copy", "btrfs -q subvolume snapshot -r . copy",
    "umount {store}", "unshare -rm umount {store}", "unshare -rm mount --bind . /mnt",
    "unshare -rm sh -c 'mkdir l; mount -t overlay -o lowerdir=.:l none l && ls l/{store}/*'",
    "find . /proc/1/root /proc/self/root/{sub} -path '*stet*' -name snap 2>/dev/null | grep .",
    "find / -xdev -name snap -path '*/.stet-*' 2>/dev/null | grep .",
    "find {top}/@mine -name snap 2>/dev/null | grep .", "ls -A {top}/@mine/{store}/* | grep .",
]


@pytest.mark.parametrize("script", TRIES)
@pytest.mark.parametrize("sub", PLACES[:1] if ROOT else PLACES, indirect=True)
def test_out_of_reach(stet, sub, script):
    """Neither read nor changed nor moved away, and what it holds is what it was."""
    before = look(sub)
    script = script.format(store=STORE, sub=sub, top=sub.parent if sub.name == "nested"
                           else sub.parent / "top")
    r = run(stet, sub, "sh", "-c", f"echo x > a; {script}", opts=["--no-policy"])
    assert r.rc != 0 and r.rc != 125, repr(r)
    stet("rollback", cwd=sub).ok()
    assert not differences(before, look(sub))


DESTROY = """
import fcntl, os, struct, sys
fd = os.open(".", os.O_RDONLY)
found = 0
for id in range(256, 400):
    # struct btrfs_ioctl_vol_args_v2, with BTRFS_SUBVOL_SPEC_BY_ID
    args = bytearray(4096)
    struct.pack_into("qQQ", args, 0, 0, 0, 1 << 4)
    struct.pack_into("Q", args, 56, id)
    try:
        fcntl.ioctl(fd, 0x5000943F, args)
        found += 1
    except OSError as e:
        if e.errno not in (1, 2, 25, 13, 22):
            print(id, e)
sys.exit(0 if found else 3)
"""


def test_not_by_number(stet, sub):
    """Where users may remove subvolumes, one is removed by its number from anywhere."""
    before = look(sub)
    run(stet, sub, "python3", "-c", f"open('a', 'w')\n{DESTROY}", opts=["--no-policy"]).ok(3)
    stet("rollback", cwd=sub).ok()
    assert not differences(before, look(sub))


def test_of_somebody_else(stet, filesystem):
    """Said at once, with what to do, and nothing is left there."""
    there = pathlib.Path(filesystem("subvol")) / "roots"
    # Of layers over it, in other runs.
    subprocess.run(f"chmod -R u+rwx {STORE}; rm -rf {STORE}", shell=True, cwd=there, check=True,
                   stderr=subprocess.DEVNULL)
    if ROOT:
        run(stet, there, "touch", "x").ok()  # may have one made of everything
        return
    r = run(stet, there, "touch", "x").ok(125)
    assert r.err.startswith(f"stet: {there} cannot be snapshotted: the subvolume belongs to somebody else")
    assert "write-through" not in r.err and "leave --backend out" in r.err
    assert os.listdir(there) == []


def test_seen_from_nowhere(stet, sub, work):
    """Nor from a transaction that works elsewhere, where that mount is only shown."""
    secret = "secret-" + os.path.basename(os.path.dirname(stet.home))
    run(stet, sub, "sh", "-c", f"echo 1 > {secret}").ok()
    stet("run", "-q", "--", "sh", "-c", f"echo 2 > {secret}", cwd=sub).ok()
    r = stet.sh(f"find {sub} {sub.parent} -name {secret}", cwd=work, opts=["--no-policy"])
    assert {x for x in r.out.splitlines() if ".stet-" in x} == set(), r.out
    assert f"{sub}/{secret}" in r.out.splitlines()


@pytest.mark.parametrize("opts,says", [
    (["--hide", "d"], "would show what must stay hidden"), (["--hide", ".."], "would hide the workspace")])
def test_hidden_in_it(stet, sub, opts, says):
    r = run(stet, sub, "true", opts=opts).ok(125)
    assert says in r.err and "--write-through" not in r.err


def test_git_does_not_mind(stet, sub):
    """Neither inside nor outside is the store part of anybody's work."""
    subprocess.run("git init -q . && git add . && git -c user.name=a -c user.email=b commit -qm x",
                   shell=True, cwd=sub, check=True)
    r = run(stet, sub, "git", "status", "--porcelain").ok()
    assert (r.out, r.err) == ("", "")
    assert subprocess.run(["git", "status", "--porcelain"], cwd=sub, stdout=subprocess.PIPE,
                          check=True).stdout == b""


@pytest.mark.parametrize("how", ["remove", "rename"])
def test_the_store_stays_where_it_is(stet, sub, probe, how):
    """Not even with mounts of its own does a command move it aside, and the snapshot with it."""
    before = look(sub)
    run(stet, sub, "bash", "-c", 'echo 1 >> a; ls -d .stet-*; "$1" nested-$2=$PWD/$3; ls -a', "-",
        probe, how, STORE).ok()
    assert not (sub / "moved").exists()
    stet("rollback", cwd=sub).ok()
    assert look(sub) == before
