# SPDX-License-Identifier: Apache-2.0
"""Root has a layer on every writable mount, a user pieces around those below his workspace; a mount
that is gone later matters if it was used."""
import os
import subprocess

import pytest
from stetlib import has_user_xattrs, wait_until

NEEDS = "tmpfs anyfuse"


def until_it_works(*command):
    """The last user of a mount, in the background, may be about to end."""
    wait_until(lambda: subprocess.run(command, check=False).returncode == 0)


@pytest.fixture(name="mount")
def fixture_mount(tmp_path):
    """A mount of our own; taken away by its second value, if it is still there then."""
    if os.geteuid() != 0:
        pytest.skip("impossible here: only root mounts")
    where = tmp_path / "mount"
    where.mkdir()

    def umount():
        until_it_works("umount", where)

    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", where], check=True)
    if not has_user_xattrs(where):
        # It cannot hold a layer, and so it cannot take one away either.
        umount()
        with open(tmp_path / "image", "wb") as f:
            f.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", tmp_path / "image"], check=True)
        subprocess.run(["mount", "-o", "loop", tmp_path / "image", where], check=True)
    yield where, umount
    if os.path.ismount(where):
        umount()


@pytest.fixture(name="fuse")
def fixture_fuse(work):
    """A mount in the workspace that anybody can make; where it is, and how it is taken away."""
    where, source = work / "fuse", work.parent / "source"
    where.mkdir()
    source.mkdir()
    if subprocess.run(["bindfs", "-n", source, where], check=False).returncode:
        pytest.skip("impossible here: no FUSE")

    def umount():
        until_it_works("fusermount", "-u", where)

    yield where, umount
    if os.path.ismount(where):
        umount()


def settled(stet, work):
    """What is noted after the command's end is there."""
    wait_until(lambda: stet("status", "--json", cwd=work).json()["on_disk"], 60)


def run_settled(stet, work, script, *opts):
    stet.sh(script, cwd=work, opts=opts).ok()
    settled(stet, work)


def test_what_was_not_touched_does_not_matter(stet, work, mount):
    _, umount = mount
    run_settled(stet, work, "echo one > a")
    umount()
    changes = stet("status", "--json", cwd=work).ok().json()["changes"]
    assert [c["path"] for c in changes] == [str(work / "a")]
    stet("commit", cwd=work).ok()
    assert (work / "a").read_text() == "one\n"
    stet("undo", cwd=work).ok()
    assert not (work / "a").exists()
    stet("redo", cwd=work).ok()
    assert (work / "a").read_text() == "one\n"


@pytest.mark.parametrize("how", ["explore", "checkpoint"])
def test_what_is_touched_later(stet, work, mount, how):
    """A visit, or the way back to a checkpoint, may put something there after all."""
    place, umount = mount
    script = "echo one > a"
    if how == "checkpoint":
        script = f"> {place}/x; {stet.path} checkpoint && rm {place}/x; > a"
    run_settled(stet, work, script, "--no-policy")
    if how == "explore":
        stet("explore", "-q", "--", "touch", f"{place}/x", cwd=work).ok()
    else:
        stet("rollback", "--to", "1", cwd=work).ok()
    umount()
    r = stet("commit", cwd=work)
    assert r.rc != 0 and "mount that again" in r.err
    assert not (work / "a").exists()


def test_visited_afterwards(stet, work, mount):
    _, umount = mount
    run_settled(stet, work, "echo one > a")
    umount()
    for i in range(2):
        stet("explore", "-q", "--", "sh", "-c", f"cat a; echo {i} > b{i}", cwd=work).ok()
    settled(stet, work)
    stet("commit", cwd=work).ok()
    assert [(work / n).read_text() for n in ("a", "b0", "b1")] == ["one\n", "0\n", "1\n"]


def test_below_the_workspace(stet, work, fuse):
    """The workspace was cut into pieces for it: a visit finds them all."""
    _, umount = fuse
    os.mkdir(work / "sub")
    run_settled(stet, work, "echo one > sub/a; echo two > b")
    umount()
    os.mkdir(work / "later")
    script = "cat sub/a b; echo more >> sub/a; touch later/x || echo refused"
    out = stet("explore", "-q", "--", "sh", "-c", script, cwd=work).ok().out.split()
    # To root it is part of what he sees; for a user there is no piece of that name.
    assert out == ["one", "two"] + ["refused"] * (os.geteuid() != 0)
    settled(stet, work)
    stet("commit", cwd=work).ok()
    assert (work / "sub/a").read_text() == "one\nmore\n" and (work / "b").read_text() == "two\n"


def test_no_visit_without_a_layer(stet, work, mount):
    """What cannot be shown as the command left it is not shown as the host has it."""
    place, _ = mount
    (place / "x").write_text("host")
    run_settled(stet, work, f"echo changed > {place}/x", "--no-policy")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    r = stet("explore", "-q", "--", "cat", str(place / "x"), cwd=work)
    assert r.rc == 125 and "is not what it was" in r.err and not r.out


def test_checkpoints_afterwards(stet, work, mount):
    _, umount = mount
    script = f"echo one > a; {stet.path} checkpoint; echo two > a; echo > b; {stet.path} checkpoint"
    run_settled(stet, work, script, "--no-policy")
    umount()
    stet("restore", "--from", "1", "a", cwd=work).ok()
    assert stet("explore", "-q", "--", "sh", "-c", "cat a; ls", cwd=work).ok().out == "one\na\nb\n"
    assert "two" in stet("diff", "1..2", cwd=work).ok().out
    stet("rollback", "--to", "2", cwd=work).ok()
    stet("checkpoint", cwd=work).ok()
    assert stet("explore", "-q", "--at", "1", "--", "cat", "a", cwd=work).ok().out == "one\n"
    stet("rollback", "--to", "0", cwd=work).ok()
    stet("rollback", "--to", "1", cwd=work).ok()
    stet("commit", cwd=work).ok()
    assert (work / "a").read_text() == "one\n" and not (work / "b").exists()


def test_checkpoint_that_needs_it(stet, work, mount):
    place, umount = mount
    script = f"> {place}/x; {stet.path} checkpoint; rm {place}/x; > a; {stet.path} checkpoint"
    run_settled(stet, work, script, "--no-policy")
    umount()
    r = stet("rollback", "--to", "1", cwd=work)
    assert r.rc != 0 and "mount that again" in r.err
    stet("commit", cwd=work).ok()
    assert (work / "a").exists()


def test_what_was_committed_at_once_is_undone(stet, work, mount):
    _, umount = mount
    stet("exec", "--", "sh", "-c", "echo one > a", cwd=work).ok()
    umount()
    stet("undo", cwd=work).ok()
    assert not (work / "a").exists()


@pytest.mark.parametrize("where", ["added", "deleted"])
def test_what_was_touched_is_missed(stet, work, mount, where):
    """Nothing is done by half; once it is mounted again all goes on."""
    place, umount = mount
    (place / "deleted").write_text("x")
    os.mkdir(work / "aside")
    run_settled(stet, work, f"echo one > a; cd {place}; rm -f deleted; "
                f"[ {where} = deleted ] || echo > {where}", "--no-policy")
    subprocess.run(["mount", "--bind", place, work / "aside"], check=True)
    umount()
    try:
        r = stet("commit", cwd=work)
        assert r.rc != 0 and f"the filesystem of {place}: mount that again" in r.err
        assert not (work / "a").exists()
        subprocess.run(["mount", "--bind", work / "aside", place], check=True)
        stet("commit", cwd=work).ok()
        assert (work / "a").exists() and not (place / "deleted").exists()
        umount()
        r = stet("undo", cwd=work)
        assert r.rc != 0 and f"the filesystem of {place}: mount that again" in r.err
        assert (work / "a").exists()
    finally:
        subprocess.run(["umount", work / "aside"], check=True)


def test_a_layer_that_lies_elsewhere(stet, work, fuse):
    """What is below the mount point is not what the command saw; and all goes on afterwards."""
    where, umount = fuse
    (where / "x").write_text("host\n")
    run_settled(stet, where, "echo inside > x; echo n > n")
    for verb, found, made in (("commit", "host\n", "inside\n"), ("undo", "inside\n", "host\n"),
                              ("redo", "host\n", "inside\n")):
        umount()
        (where / "x").write_text(found)
        r = stet(verb, "t1", cwd=work).ok(4)
        assert f"{where} is not the filesystem that it was" in r.err
        assert "mount that again" in r.err
        assert os.listdir(where) == ["x"] and (where / "x").read_text() == found
        os.unlink(where / "x")
        subprocess.run(["bindfs", "-n", work.parent / "source", where], check=True)
        stet(verb, "t1", cwd=work).ok()
        assert (where / "x").read_text() == made
        assert (where / "n").exists() == (made == "inside\n")


def test_a_layer_that_lies_elsewhere_and_holds_nothing(stet, work, fuse):
    _, umount = fuse
    run_settled(stet, work, "echo one > a")
    umount()
    stet("commit", cwd=work).ok()
    assert (work / "a").read_text() == "one\n"
