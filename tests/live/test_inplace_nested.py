# SPDX-License-Identifier: Apache-2.0
"""--backend btrfs, and what no snapshot holds: nested subvolumes, mounts, other users' stores.

Nothing that a command could do with them is lost in silence.
"""
import fcntl
import os
import pathlib
import struct
import subprocess

import pytest
from stetlib import differences, digest

# It takes long.
SANITIZED_APART = True

NEEDS = "btrfs subvol"
ROOT = os.geteuid() == 0

TREE = {"a": "a\n", "src": {"p": "precious\n", "deep": {"q": "q\n"}}, "empty": {}, "d": {"c": "c\n"}}


def subvolume(path, **files):
    subprocess.run(["btrfs", "-q", "subvolume", "create", path], check=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(name="sub")
def fixture_sub(filesystem, tree):
    top = pathlib.Path(filesystem("btrfs"))
    return tree(subvolume(top / f"nested-{os.getpid()}-{len(os.listdir(top))}"), TREE)


def look(sub):
    return {n: {k: v for k, v in d.items() if k not in ("ctime", "ino")}
            for n, d in digest(sub).items() if n}


def run(stet, sub, script, *opts):
    return stet("run", "-q", "--no-policy", "--backend", "btrfs", *opts, "--", "sh", "-c", script,
                cwd=sub)


def meanwhile(stet, sub, script, others, *opts):
    """@others do something when the command is done, and has not ended yet."""
    p = stet.popen("run", "--no-policy", "--backend", "btrfs", *opts, "--", "sh", "-c",
                   f"{script}\necho; read x", cwd=sub, stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    others()
    _, said = p.communicate(b"\n", timeout=60)
    assert p.returncode == 0, said
    return said.decode()


@pytest.mark.parametrize("where", ["cache", "d/cache", "src/deep/cache"])
def test_refused_with_one_nested(stet, sub, where):
    """A command could move it over a directory, or write into it: no snapshot would tell."""
    subvolume(sub / where, text="kept\n")
    before = look(sub)
    r = run(stet, sub, f"rm -rf src; mv {where} src").ok(125)
    assert f"holds nothing of the subvolume {sub}/{where}" in r.err
    assert f"--read-only '{sub}/{where}'" in r.err and "leave --backend out" in r.err
    assert not differences(before, look(sub)) and stet.transactions() == []


def test_one_that_is_read_only(stet, sub):
    """Out of the command's reach it is no obstacle, and stays what it is."""
    nested = subvolume(sub / "cache", text="kept\n")
    before = look(sub)
    r = run(stet, sub, "echo 1 > a; rm -rf src; mv -T cache src; rm -rf cache; echo 1 > cache/text; "
            "mv -T d cache; mv empty cache/; ls cache", "--read-only", nested).ok()
    assert r.out == "text\n"
    assert stet.changes(cwd=sub, below=sub)[b"src/p"] == "D"
    stet("rollback", cwd=sub).ok()
    assert not differences(before, look(sub))


def test_one_after_many(stet, sub):
    """The kernel lists them by 255."""
    many = sub / "many"
    many.mkdir()
    fd = os.open(many, os.O_RDONLY)
    for i in range(260):  # BTRFS_IOC_SUBVOL_CREATE
        fcntl.ioctl(fd, 0x5000940E, bytearray(struct.pack("q4088s", 0, str(i).encode())))
    os.close(fd)
    run(stet, sub, "echo 1 > a", "--read-only", many).ok()
    subvolume(sub / "src/last")
    r = run(stet, sub, "true", "--read-only", many).ok(125)
    assert f"holds nothing of the subvolume {sub}/src/last" in r.err


def test_those_of_others_stay(stet, sub):
    """Made while the command ran or later, by somebody else: a rollback removes none of them."""
    def others():
        subvolume(sub / "early", text="kept\n")
        subvolume(sub / "made/early", text="kept\n")

    meanwhile(stet, sub, "echo 1 > a; mkdir made; echo 1 > made/1", others)
    changes = stet.changes(cwd=sub, below=sub)
    assert changes[b"early"] == "A" and changes[b"made/early"] == "A", changes
    subvolume(sub / "late", text="kept\n")
    subvolume(sub / "made/late", text="kept\n")
    stet("rollback", cwd=sub).ok()
    assert (sub / "a").read_text() == "a\n"
    for name in ("early", "made/early", "late", "made/late"):
        assert (sub / name / "text").read_text() == "kept\n"
    assert sorted(os.listdir(sub / "made")) == ["early", "late"]


def test_in_the_place_of_what_was_deleted(stet, sub):
    """What the command has deleted beneath is named, and comes back when there is room for it."""
    before = look(sub)
    said = meanwhile(stet, sub, "rm -rf src", lambda: subvolume(sub / "src", text="kept\n"))
    assert "nothing changed" not in said
    assert stet.changes(cwd=sub, below=sub)[b"src/p"] == "D"
    r = stet("rollback", cwd=sub).ok(3)
    assert "src  another subvolume lies there now" in r.err and "--ours" not in r.err, r.err
    assert os.listdir(sub / "src") == ["text"]
    os.rename(sub / "src", sub / "aside")
    assert "changed by it, deleted since it ended" in stet("rollback", cwd=sub).ok(3).err
    stet("rollback", "--ours", "src", cwd=sub).ok()
    assert (sub / "aside/text").read_text() == "kept\n"
    subprocess.run(["rm", "-rf", sub / "aside"], check=True)
    assert not differences(before, look(sub))


def test_in_the_place_of_a_file(stet, sub):
    meanwhile(stet, sub, "rm a", lambda: subvolume(sub / "a", text="kept\n"))
    assert "a  another subvolume lies there now" in stet("rollback", cwd=sub).ok(3).err
    stet("rollback", "--theirs", "a", cwd=sub).ok()
    assert (sub / "a/text").read_text() == "kept\n"


def test_nothing_else_than_the_kind_of_a_directory(stet, sub):
    """Where only that differs, the snapshot is kept all the same."""
    said = meanwhile(stet, sub, "rmdir empty", lambda: subvolume(sub / "empty"))
    assert "nothing changed" not in said
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    assert list(stet.changes(cwd=sub, below=sub)) == [b"empty"]
    stet("rollback", "--theirs", "empty", cwd=sub).ok()


def test_in_the_place_of_what_nobody_touched(stet, sub):
    """Others have put one where the command did nothing: that is their business."""
    run(stet, sub, "echo 1 > a").ok()
    subprocess.run(["rm", "-rf", sub / "src"], check=True)
    subvolume(sub / "src", text="kept\n")
    stet("rollback", cwd=sub).ok()
    assert (sub / "a").read_text() == "a\n" and os.listdir(sub / "src") == ["text"]


def test_one_that_is_gone(stet, sub):
    """Of what was nested there is no copy: a rollback says so."""
    nested = subvolume(sub / "cache", text="kept\n")
    meanwhile(stet, sub, "true", lambda: os.rename(nested, sub.parent / f"{sub.name}-aside"),
              "--read-only", nested)
    assert stet.changes(cwd=sub, below=sub) == {b"cache": "D"}
    r = stet("rollback", cwd=sub).ok(3)
    assert "cache  was another subvolume" in r.err and "--ours" not in r.err, r.err
    stet("rollback", "--theirs", "cache", cwd=sub).ok()


def test_no_visit_beside_one(stet, sub):
    run(stet, sub, "echo 1 > one").ok()
    nested = subvolume(sub / "late", text="kept\n")
    r = stet("explore", "-q", "--", "sh", "-c", "rm -rf src; mv late src", cwd=sub).ok(125)
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    assert f"holds nothing of the subvolume {nested}" in r.err
    assert (nested / "text").exists() and (sub / "src/p").exists()
    stet("rollback", cwd=sub).ok()
    assert not (sub / "one").exists()


def test_the_name_of_a_store_hides_nothing(stet, sub):
    """A directory that a command gives the name of a store is its work as any other."""
    before = look(sub)
    name = f".stet-{os.geteuid()}"
    run(stet, sub, f"mkdir -m 700 {name}; echo evil > {name}/f; mkdir d/{name}; echo evil > d/{name}/f").ok()
    assert {os.fsencode(f"{name}/f"), os.fsencode(f"d/{name}/f")} <= set(stet.changes(cwd=sub, below=sub))
    stet("rollback", cwd=sub).ok()
    assert not differences(before, look(sub))


def test_stores_of_other_users(stet, filesystem):
    """They are no part of the work, and out of the command's reach: root's for a user, too."""
    sub = pathlib.Path(filesystem("subvol")) / "top/stores"
    others = [n for n in (".stet-0", ".stet-1") if n != f".stet-{os.geteuid()}"]
    kept = {n: os.stat(sub / n).st_ino for n in others}
    if ROOT:
        subvolume(sub / ".stet-1/snap")  # nested in a store it is no obstacle
    for i, name in enumerate(others):
        script = f"echo 1 > f{i}; mv {name} moved; rm -rf {name}; rmdir {name}; touch {name}/x; ls -A {name}"
        r = run(stet, sub, script).ok(0)
        assert r.out == "", repr(r)
        assert list(stet.changes(cwd=sub, below=sub)) == [os.fsencode(f"f{i}")]
        stet("rollback", cwd=sub).ok()
        assert not (sub / "moved").exists() and not (sub / f"f{i}").exists()
    assert {n: os.stat(sub / n).st_ino for n in others} == kept
    if ROOT:
        assert os.listdir(sub / ".stet-1") == ["f", "snap"]


@pytest.mark.skipif(not ROOT, reason="impossible here: only root mounts")
def test_mounted_over_it_since(stet, sub):
    """What the command has changed beneath a mount is not passed over."""
    before = look(sub)
    run(stet, sub, "echo 1 > d/c; echo 1 > a; rm -r src/deep").ok()
    for name in ("d", "empty"):
        subprocess.run(["mount", "-t", "tmpfs", "none", sub / name], check=True)
    try:
        r = stet("rollback", cwd=sub).ok(3)
        assert "d  something is mounted there now" in r.err and "empty" not in r.err, r.err
        assert (sub / "a").read_text() == "1\n"
        subprocess.run(["umount", sub / "d"], check=True)
        stet("rollback", cwd=sub).ok()
    finally:
        subprocess.run(["umount", sub / "empty"], check=True)
    assert not differences(before, look(sub))
