# SPDX-License-Identifier: Apache-2.0
"""The store cannot be reached from inside, whatever name it has there."""
import array
import fcntl
import glob
import os
import re
import subprocess

import pytest
from stetlib import has_user_xattrs

NEEDS = "alias ext4 nojournal tmpfs stacked stackedrw mirror"
GETFLAGS, SETFLAGS, TOPDIR = 0x80086601, 0x40086602, 0x00020000  # as chattr +T
NO = r"denied\(\w+\)|killed\(\d+\)"


def stores(stet, work):
    """Directories that hold the running transaction's layers, told by a finished one."""
    stet.sh("echo x > made-inside", cwd=work).ok()
    found = []
    for top in {stet.state, *mounts_of(work)}:
        for where, dirs, files in os.walk(top):
            if "made-inside" in files and not where.startswith(os.fspath(work)):
                found.append(where)
    assert found, "the data must lie somewhere"
    return found


def mounts_of(path):
    """Places where a store may be: `.stet-UID` on the mount of the path."""
    path = os.fspath(path)
    while True:
        candidate = os.path.join(path, f".stet-{os.getuid()}")
        if os.path.isdir(candidate):
            yield candidate
        if os.path.dirname(path) == path:
            return
        path = os.path.dirname(path)


def hidden(stet, work, probe, path):
    """Asserts that a path is not to be seen or changed inside, nor behind any mount."""
    ways = ["stat", "open-read", "nested-uncover", "nested-rbind-uncover", "nested-overlay",
            "uncover", "rbind-uncover", "overlay", "nested-umount", "umount"]
    r = stet.run(probe, *[f"{w}={path}" for w in ways], cwd=work).ok()
    for line in r.out.splitlines():
        assert re.fullmatch(NO, line.partition(": ")[2]), (path, line)


def test_state_directory(stet, work, probe):
    for path in [stet.state + "/journal.db"] + stores(stet, work):
        hidden(stet, work, probe, path)


def test_state_cannot_be_listed_or_replaced(stet, work):
    """A name made anew inside is inside; the journal outside goes on."""
    stet.ready()
    r = stet.sh('ls -A "$1" 2>/dev/null; mkdir -p "$1" 2>/dev/null && echo x > "$1/journal.db"; '
                "exit 0", stet.state, cwd=work).ok()
    assert r.out == ""
    stet("list").ok()
    assert os.path.getsize(stet.state + "/journal.db") > 100


@pytest.mark.parametrize("kind", ["ext4", "tmpfs"])
def test_store_on_another_file_system(stet, filesystem, probe, kind):
    work = os.path.join(filesystem(kind), "project")
    os.makedirs(work, exist_ok=True)
    where = filesystem(kind) if has_user_xattrs(work) else stet.state
    for path in stores(stet, work):
        assert path.startswith(where), "the store must be on the tree's mount, if that can hold it"
        hidden(stet, work, probe, path)


@pytest.mark.parametrize("kind", ["stacked", "stackedrw", "mirror"])
def test_stacks_on_the_store(stet, home, work, probe, filesystem, kind):
    """Through another file system that has it below; so it is with what is to be hidden."""
    top = filesystem(kind)
    base = os.path.dirname(os.path.dirname(top))
    if not os.path.ismount(top):
        pytest.skip("impossible here: no file systems in user space")
    (home / "secret").mkdir()
    (home / "secret" / "key").write_text("secret")
    found = stores(stet, work)
    (home / "secret" / "key2").write_text("secret")
    for path in [*found, stet.state + "/journal.db"]:
        seen = top + path.removeprefix(base)
        # What was looked for before it was there an overlay may never show.
        assert os.path.lexists(seen) or path not in found, "the stack must show it outside"
        hidden(stet, work, probe, seen)
    seen = f"{top}{str(home).removeprefix(base)}/secret"
    assert os.path.exists(f"{seen}/key")
    r = stet.run(probe, f"stat={seen}/key", f"open-read={seen}/key", f"stat={home}/secret/key",
                 opts=["--hide", home / "secret"], cwd=work).ok()
    for line in r.out.splitlines():
        assert re.fullmatch(NO, line.partition(": ")[2]), line
    # What else is there is seen.
    stet.run("ls", f"{top}{str(work).removeprefix(base)}", cwd=work).ok()


def test_a_stack_made_of_the_store(stet, work, probe, tmp_path):
    """One of its layers lies in the store itself."""
    if os.geteuid() != 0:
        pytest.skip("impossible here: only root can mount it")
    found = stores(stet, work)[0]
    (tmp_path / "empty").mkdir()
    (tmp_path / "over").mkdir()
    (tmp_path / "link").symlink_to(found)
    for name in (found, tmp_path / "link"):
        subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={name}:{tmp_path}/empty",
                        "overlay", tmp_path / "over"], check=True)
        try:
            assert os.listdir(tmp_path / "over")
            hidden(stet, work, probe, f"{tmp_path}/over/{os.listdir(tmp_path / 'over')[0]}")
        finally:
            subprocess.run(["umount", tmp_path / "over"], check=True)


def test_alias_of_the_root_file_system(stet, work, probe, filesystem):
    """The same file system bound at another place shows the home, but no store."""
    alias = filesystem("alias")
    for path in stores(stet, work) + [stet.state + "/journal.db"]:
        assert os.path.lexists(alias + path), "the alias must show it outside"
        hidden(stet, work, probe, alias + path)


@pytest.mark.parametrize("mask", ["0777", "0077", "0277", "0377", "0577", "0000"])
def test_modes_whatever_the_umask(stet, work, mask):
    """At the very first use; the command has the caller's mask, the state has none of it."""
    begin = ["bash", "-c", f"umask {mask}; exec \"$@\"", "bash", stet.path]

    def do(*words):
        r = subprocess.run(begin + [*words], cwd=work, env=stet.environ(), check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert r.returncode == 0, (words, r.stdout)
        return r.stdout

    assert do("run", "-q", "--", "sh", "-c", "umask; echo x > f; mkdir d").startswith(mask)
    for words in (["checkpoint"], ["commit"], ["undo"], ["redo"], ["check"], ["list"]):
        do(*words)
    stet.settle()
    want = ~int(mask, 8)
    assert os.stat(f"{work}/f").st_mode & 0o777 == 0o666 & want
    assert os.stat(f"{work}/d").st_mode & 0o777 == 0o777 & want
    for where in (stet.state, f"{stet.state}/tx", *glob.glob(f"{stet.state}/tx/*")):
        assert os.stat(where).st_mode & 0o777 == 0o700, where
    for file in glob.glob(f"{stet.state}/*"):
        if os.path.isfile(file):
            assert os.stat(file).st_mode & 0o777 in (0o600, 0o644), file
            assert os.access(file, os.R_OK | os.W_OK)
    assert mask in do("run", "-q", "--name", "more", "--", "sh", "-c", "echo more > g; umask")
    assert mask in do("explore", "more", "--", "sh", "-c", "echo more >> h; umask")
    assert mask in do("exec", "-q", "--", "sh", "-c", "umask")
    do("commit", "more")


def test_find_sees_no_layer(stet, work, filesystem):
    """Searched through and through, a file of an earlier transaction is nowhere."""
    stet.sh("echo x > made-by-the-first", cwd=work).ok()
    roots = [filesystem("alias") + stet.home, stet.home]
    r = stet.run("find", *roots, "-name", "made-by-the-first", cwd=work)
    assert r.out == ""


def test_other_users_transactions_are_private(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    assert os.stat(stet.state).st_mode & 0o077 == 0


def flags_of(path, flags=None):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        word = array.array("I", [flags or 0, 0])
        fcntl.ioctl(fd, SETFLAGS if flags is not None else GETFLAGS, word)
        return word[0]
    finally:
        os.close(fd)


@pytest.mark.parametrize("kind,apart", [("ext4", 0), ("nojournal", TOPDIR)])
def test_transactions_lie_apart_where_it_helps(stet, filesystem, kind, apart):
    """A new store is made so, and one that was made otherwise becomes so."""
    work = os.path.join(filesystem(kind), "project")
    os.makedirs(work, exist_ok=True)
    own = os.path.join(filesystem(kind), f".stet-{os.getuid()}")
    tops = {os.path.join(own, os.path.relpath(path, own).split("/")[0])
            for path in stores(stet, work)}
    for again in (False, True):
        for top in tops:
            assert flags_of(top) & TOPDIR == apart, (top, again)
            flags_of(top, flags_of(top) & ~TOPDIR)
        stet.sh("echo 2 > f", cwd=work).ok()
