# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad circumstances: a clear error of the right kind, nothing lost."""
import os
import shutil
import sqlite3

import pytest
from stetlib import differences

NEEDS = "small"
ROOT = os.geteuid() == 0


def complains(r, rc):
    """One line that says what is wrong, perhaps one that says what to do."""
    assert r.rc == rc, repr(r)
    lines = r.err.strip().splitlines()
    assert 1 <= len(lines) <= 3, repr(r)
    assert lines[0].startswith("stet: "), repr(r)


@pytest.mark.parametrize("args,rc", [
    (["frobnicate"], 1), (["--frobnicate"], 1), (["status", "--frobnicate"], 1),
    (["run"], 125), (["run", "--"], 125), (["run", "--frobnicate", "--", "true"], 125),
    (["run", "--timeout", "soon", "--", "true"], 125),
    (["run", "--timeout", "-1", "--", "true"], 125),
    (["run", "--timeout"], 125), (["run", "--on-success", "maybe", "--", "true"], 125),
    (["run", "--tmp", "public", "--", "true"], 125),
    (["run", "--name", "", "--", "true"], 125), (["run", "--name", "a/b", "--", "true"], 125),
    (["run", "--name", "7", "--", "true"], 125), (["run", "--env", "=x", "--", "true"], 125),
    (["run", "--workspace", "/no-such-directory-here", "--", "true"], 125),
    (["run", "--workspace", "/etc/passwd", "--", "true"], 125),
    (["run", "--workspace", "/", "--", "true"], 125),
    (["run", "--workspace", "/proc", "--", "true"], 125),
    (["run", "--workspace", "", "--", "true"], 125),
    (["run", "--write-through", "/", "--", "true"], 125),
    (["status"], 1), (["status", "t99"], 1), (["status", "nobody"], 1), (["diff", "99"], 1),
    (["rollback", "99"], 1), (["rollback", "a", "b"], 1), (["explore", "99"], 125),
    (["help", "frobnicate"], 1), (["diff", "--color=pink"], 1), (["list", "extra"], 1),
    (["status", "t99999999999999999999"], 1), (["status", "-1"], 1),
])
def test_bad_arguments(stet, work, args, rc):
    r = stet(*args, cwd=work)
    if args[0] == "explore" and r.rc == 1:
        rc = 1  # nothing was to be executed: either is right
    complains(r, rc)
    assert r.out == ""


def test_errors_as_json(stet, work):
    r = stet("status", "t99", "--json", cwd=work)
    assert r.rc == 1
    error = r.json()["error"]
    assert error["kind"] == "usage" and error["message"]


def test_options_end_at_the_command(stet, work):
    r = stet("run", "--quiet", "echo", "--json", "-x", cwd=work).ok()
    assert r.out == "--json -x\n"
    r = stet("run", "--quiet", "--", "echo", "--", "-n", cwd=work).ok()
    assert r.out == "-- -n\n"


def test_store_as_workspace(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    complains(stet("run", "--workspace", stet.state, "--", "true", cwd=work), 125)


def test_name_taken(stet, work):
    stet.sh("echo x > f", cwd=work, opts=["--name", "mine"]).ok()
    complains(stet.sh("echo y > f", cwd=work, opts=["--name", "mine"]), 125)
    assert len(stet.transactions()) == 1


@pytest.mark.skipif(ROOT, reason="impossible here: root can read everything")
def test_unreadable_workspace(stet, work):
    os.chmod(work, 0)
    try:
        complains(stet("run", "--workspace", work, "--", "true"), 125)
    finally:
        os.chmod(work, 0o755)


def test_vanished_current_directory(stet, home):
    gone = home / "gone"
    gone.mkdir()
    fd = os.open(gone, os.O_RDONLY)
    gone.rmdir()
    r = stet("run", "--", "true", preexec_fn=lambda: os.fchdir(fd))
    os.close(fd)
    complains(r, 125)


def test_no_home(stet, work):
    """The state goes by the user database, or a clear refusal says what to set."""
    state = work.parent / "state"
    env = {"HOME": None, "STET_STATE_DIR": str(state)}
    stet.sh("echo x > f", cwd=work, env=env).ok()
    assert (state / "journal.db").exists()
    r = stet.sh("echo x > f", cwd=work, env={"HOME": None, "XDG_STATE_HOME": str(state) + "2"})
    assert r.rc == 0, repr(r)


@pytest.mark.parametrize("value", ["relative", "{}/none/home", "/dev/null", ""])
def test_strange_home(stet, home, work, value):
    r = stet.sh("echo RAN", cwd=work, env={"HOME": value.format(home)})
    assert not os.path.exists(home / "none"), "a home is not ours to make"
    if r.rc == 0:
        assert r.out == "RAN\n"
        assert not os.path.exists(work / "relative")
    else:
        complains(r, 125)


@pytest.mark.skipif(ROOT, reason="impossible here: modes do not stop root")
def test_read_only_home(stet, home, work):
    os.chmod(home, 0o555)
    try:
        r = stet.sh("echo RAN", cwd=work)
        complains(r, 125)
        assert "RAN" not in r.out
    finally:
        os.chmod(home, 0o755)


@pytest.mark.parametrize("how", ["garbage", "text", "truncated", "directory"])
def test_corrupt_journal(stet, work, how):
    """Said, not repaired by force: the file stays as it is."""
    stet.sh("echo x > f", cwd=work).ok()
    stet.settle()
    path = stet.state + "/journal.db"
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    with open(path, "rb") as f:
        good = f.read()
    bad = {"garbage": os.urandom(8192), "text": b"hello\n" * 1000,
           "truncated": good[:len(good) // 2 - 100], "directory": None}[how]
    if how == "directory":
        os.unlink(path)
        os.mkdir(path)
    else:
        with open(path, "wb") as f:
            f.write(bad)
    r = stet("list")
    assert r.rc in (6, 7), repr(r)
    complains(r, r.rc)
    r = stet.sh("echo RAN", cwd=work)
    assert r.rc == 125 and "RAN" not in r.out
    if bad is not None:
        with open(path, "rb") as f:
            assert f.read() == bad


def test_newer_journal(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    path = stet.state + "/journal.db"
    db = sqlite3.connect(path)
    version = db.execute("pragma user_version").fetchone()[0]
    db.execute(f"pragma user_version = {version + 100}")
    db.commit()
    db.close()
    complains(stet("list"), 5)
    r = stet.sh("echo RAN", cwd=work)
    assert r.rc == 125 and "RAN" not in r.out


def test_state_directory_of_somebody_else(stet, home, work):
    """A state directory that others can write is not to be trusted."""
    state = home / "open"
    state.mkdir(mode=0o777)
    os.chmod(state, 0o777)
    r = stet("list", env={"STET_STATE_DIR": str(state)})
    assert r.rc != 0 or os.stat(state).st_mode & 0o077 == 0, repr(r)


def test_full_disk(stet, filesystem, digest):
    """ENOSPC reaches the program; the journal is sound and the space comes back."""
    place = filesystem("small")
    work = f"{place}/project"
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    with open(f"{work}/a", "w", encoding="ascii") as f:
        f.write("a\n")
    before = digest(work)
    r = stet.sh("echo changed > a; dd if=/dev/zero of=big bs=64k 2>&1; sync; echo end", cwd=work)
    assert "No space left" in r.out and r.out.endswith("end\n")
    assert r.rc == 0
    assert differences(before, digest(work)) == []
    assert stet.changes(cwd=work, below=work) == {b"a": "M", b"big": "A"}
    stet("rollback", cwd=work).ok()
    stet("prune").ok()
    assert os.statvfs(place).f_bavail * os.statvfs(place).f_bsize > 4 << 20


def test_full_disk_under_the_state(stet, filesystem):
    """State, journal and tree on one full disk: refused, and well again afterwards."""
    place = filesystem("small")
    work = f"{place}/project2"
    os.makedirs(work, exist_ok=True)
    env = {"STET_STATE_DIR": f"{place}/state"}
    stet.sh("echo x > f", cwd=work, env=env, opts=["--name", "first"]).ok()
    fill = f"{place}/fill"
    with open(fill, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"\0" * 4096)
        except OSError:
            pass
    r = stet.sh("echo RAN", cwd=work, env=env)
    if r.rc == 0:
        assert r.out == "RAN\n"
    else:
        complains(r, 125)
        assert "RAN" not in r.out and "stet prune" in r.err
    r = stet("explore", "first", "--", "true", env=env)
    if r.rc != 0:
        complains(r, 125)
        assert "stet prune" in r.err
    os.unlink(fill)
    names = [t["name"] for t in stet("list", "--json", env=env).ok().json()["transactions"]]
    assert "first" in names
    stet.sh("echo y > g", cwd=work, env=env, opts=["--name", "second"]).ok()
    assert sqlite3.connect(f"{place}/state/journal.db").execute(
        "pragma integrity_check").fetchone() == ("ok",)
