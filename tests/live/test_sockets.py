# SPDX-License-Identifier: Apache-2.0
"""Unix sockets of the host that have a path: none can be reached but those that were allowed.

So it is with FIFOs, locks and leases: through the view they are not the host's.
"""
import contextlib
import fcntl
import os
import re
import socket
import subprocess
import threading

import pytest

NEEDS = "shared tmpfs fixed huge single devices"
SANITIZED_APART = True
ROOT = os.geteuid() == 0

# Connects to each path of a socket, by each kind of call; says which were heard.
CLIENT = r"""
import os, socket, sys
for path in sys.argv[1:]:
    for name, kind in (("stream", socket.SOCK_STREAM), ("packets", socket.SOCK_SEQPACKET),
                       ("datagram", socket.SOCK_DGRAM), ("sendto", socket.SOCK_DGRAM),
                       ("sendmsg", socket.SOCK_DGRAM)):
        with socket.socket(socket.AF_UNIX, kind) as s:
            try:
                if name == "sendto": s.sendto(b"x", path)
                elif name == "sendmsg": s.sendmsg([b"x"], [], 0, path)
                else: s.connect(path)
                print("reached", name, path)
            except OSError:
                pass
"""

# Waits to be told, then does the same.
LATE = "import sys; print('ready', flush=True); sys.stdin.readline()\n" + CLIENT

KINDS = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)


@contextlib.contextmanager
def listening(directory):
    """The paths of sockets of each kind in @directory, as long as it lasts."""
    with contextlib.ExitStack() as stack:
        paths = []
        here = os.open(directory, os.O_PATH)
        stack.callback(os.close, here)
        for i, kind in enumerate(KINDS):
            s = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            s.bind(f"/proc/self/fd/{here}/s{i}")
            paths.append(f"{directory}/s{i}")
            stack.callback(os.unlink, paths[-1])
            if kind != socket.SOCK_DGRAM:
                s.listen(100)
        yield paths


@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    stet.no_policy = True


@pytest.fixture(name="place")
def fixture_place(home, work, tmp_path, filesystem):
    """place(name) -> a directory of that kind, and the options with which it is one."""
    def get(name):
        if name == "outside of all layers":
            (tmp_path / "out").mkdir(exist_ok=True)
            return str(tmp_path / "out"), []
        if name == "beside a mount point":
            return filesystem("shared"), []
        if name == "top of a mount":
            return filesystem("tmpfs"), []
        if name == "huge pages":
            return filesystem("huge"), []
        if name == "home":
            return str(home), []
        if name == "read-only":
            (work / "closed").mkdir(exist_ok=True)
            return str(work / "closed"), ["--read-only", "closed"]
        if name == "read-only mount":
            return filesystem("tmpfs"), ["--read-only", filesystem("tmpfs")]
        return {"workspace": str(work), "var": "/var/tmp"}[name], []
    return get


PLACES = ["outside of all layers", "beside a mount point", "top of a mount", "home", "workspace",
          "read-only", "read-only mount", "huge pages"]


@pytest.mark.parametrize("where", PLACES)
def test_sockets_of_the_host(stet, work, place, where):
    directory, opts = place(where)
    with listening(directory) as paths:
        # Outside they are there.
        seen = subprocess.run(["python3", "-c", CLIENT, *paths], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        assert len(seen.splitlines()) == 5
        r = stet.run("/usr/bin/python3", "-c", CLIENT, *paths, cwd=work, opts=opts).ok()
        assert r.out == ""
        again = stet("exec", "--no-policy", "--json", "--", "/usr/bin/python3", "-c", CLIENT,
                     *paths, cwd=work).ok().json()
        assert again["stdout"] == ""


@pytest.mark.parametrize("where", PLACES)
def test_sockets_that_come_later(stet, work, place, where):
    """Made, or made anew under the same name, when the command runs already."""
    directory, opts = place(where)
    with listening(directory) as old, subprocess.Popen(
            [stet.path, "run", "-q", "--no-policy", *opts, "--", "/usr/bin/python3", "-c", LATE,
             *old, *[f"{directory}/new/s{i}" for i in range(3)]],
            cwd=work, env=stet.environ(), text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == "ready\n"
        for path in old:
            os.rename(path, f"{path}.before")
        try:
            os.mkdir(f"{directory}/new")
            with listening(directory), listening(f"{directory}/new"):
                out, _ = p.communicate("go\n")
                for path in old:
                    assert os.path.exists(path)
        finally:
            os.rmdir(f"{directory}/new")
            for path in old:
                os.rename(f"{path}.before", path)
    assert (p.returncode, out) == (0, "")


OWN = r"""
import os, socket, sys, threading
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.bind(path)
            s.listen()
            if os.fork() == 0:
                with socket.socket(socket.AF_UNIX, kind) as c:
                    c.connect(path)
                    c.sendall(b"hello")
                os._exit(0)
            with s.accept()[0] as c:
                assert c.recv(5) == b"hello"
            os.wait()
        if path[0] != "\0":
            os.unlink(path)
"""


def test_sockets_of_its_own(stet, home, work):
    """What is made inside can be reached inside."""
    paths = ["own", f"{home}/own", "/tmp/own", "/var/tmp/own", "/dev/shm/own"]
    if not ROOT and os.path.isdir("/run"):
        paths += [f"/run/user/{os.getuid()}/own", "/run/lock/own"]
    script = OWN.replace("sys.argv[1:]", "sys.argv[1:] + ['\\0abstract']")
    stet.run("/usr/bin/python3", "-c", script, *paths, cwd=work).ok()


def test_fifos_of_the_host(stet, work, place):
    directory, _ = place("outside of all layers")
    others = [place(name)[0] for name in ("beside a mount point", "huge pages")]
    paths = [f"{d}/fifo" for d in (directory, *others)]
    script = 'for f; do timeout 1 bash -c "echo out > $f"; done; true'
    with contextlib.ExitStack() as stack:
        ends = []
        for path in paths:
            os.mkfifo(path)
            stack.callback(os.unlink, path)
            ends.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            stack.callback(os.close, ends[-1])
        stet.run("bash", "-c", script, "bash", *paths, cwd=work).ok()
        assert [os.read(fd, 10) for fd in ends] == [b""] * 3


@pytest.mark.parametrize("need", ["fixed", "single"])
def test_what_was_there_before(stet, work, filesystem, need):
    """On a filesystem that is read-only by now, or mounted one by one: as anywhere else."""
    place = filesystem(need)
    paths = [f"{place}/s{i}" for i in range(3)]
    outside = subprocess.run(["python3", "-c", CLIENT, *paths], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    assert len(outside.splitlines()) == 5
    assert stet.run("/usr/bin/python3", "-c", CLIENT, *paths, cwd=work).ok().out == ""
    end = os.open(f"{place}/fifo", os.O_RDONLY | os.O_NONBLOCK)
    stet.run("timeout", "1", "bash", "-c", f"echo out > {place}/fifo", cwd=work)
    assert os.read(end, 10) == b""
    os.close(end)


def test_mounts_on_single_files(stet, work, filesystem):
    """A file is seen, and not written; a socket can be allowed; a device is nobody's."""
    place = filesystem("single")
    r = stet.run("sh", "-c", f"cat {place}/file; echo evil > {place}/file; "
                 f"test -c {place}/device && echo device; echo x > x", cwd=work).ok()
    assert r.out == "text\n"
    with open(f"{place}/file", encoding="ascii") as f:
        assert f.read() == "text\n"
    stet("commit", "-q", cwd=work).ok()
    r = stet.run("/usr/bin/python3", "-c", CLIENT, f"{place}/s0", cwd=work,
                 opts=["--allow-socket", f"{place}/s0"]).ok()
    assert r.out == f"reached stream {place}/s0\n"


def test_devices_elsewhere(stet, work, filesystem):
    """What is below another mount of the host's devices is neither seen nor made."""
    place = filesystem("devices")
    r = stet.run("sh", "-c", f"ls {place}; mkdir {place}/made; echo x > {place}/made; echo x > x",
                 cwd=work).ok()
    assert r.out == ""
    assert list(stet.changes(cwd=work)) == [os.fsencode(work / "x")]


LOCKS = {
    "flock": "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "shared flock": "fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "record": "fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "description": "fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0))",
    "lease": "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "write lease": "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)",
}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_stay_inside(stet, work, place, name):
    """Nobody outside waits for a lock that is held inside, or is told of a lease."""
    directory, _ = place("outside of all layers")
    path = f"{directory}/file"
    with open(path, "w", encoding="ascii") as f:
        f.write("x")
    code = ("import fcntl, os, struct, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\ntry:\n"
            f"    {LOCKS[name]}\nexcept OSError as e:\n    print(e, end=' ')\n"
            "print('held', flush=True); sys.stdin.readline()\n")
    with subprocess.Popen([stet.path, "run", "-q", "--no-policy", "--", "/usr/bin/python3", "-c",
                           code, path], cwd=work, env=stet.environ(), text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline().endswith("held\n")
        with open(path, "r+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A lease would hold up who opens it, or fail with O_NONBLOCK.
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        p.communicate("\n")
    assert p.returncode == 0


@pytest.mark.parametrize("opts", [[], ["--write-through", "."]], ids=["layer", "written through"])
@pytest.mark.parametrize("name", ["lease", "write lease"])
def test_no_leases(stet, work, name, opts):
    """As on a filesystem that has none; where writes reach the host, these would as well."""
    (work / "file").write_text("x")
    code = ("import fcntl, os, errno\nfd = os.open('file', os.O_RDONLY)\n"
            "assert fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_UNLCK\n"
            f"try:\n    {LOCKS[name]}\n    print('given')\n"
            "except OSError as e:\n    print(errno.errorcode[e.errno])\n")
    r = stet.run("/usr/bin/python3", "-c", code, cwd=work, opts=opts).ok()
    assert r.out == "EINVAL\n"


# --- --allow-socket -------------------------------------------------------------------

ALLOWED = ["outside of all layers", "beside a mount point", "home", "workspace", "var"]


@pytest.mark.parametrize("where", ALLOWED)
def test_allowed(stet, work, place, where):
    """That one and no other; with every command in the transaction, and on record."""
    directory, _ = place(where)
    client = ("/usr/bin/python3", "-c", CLIENT)
    with contextlib.ExitStack() as stack:
        if where == "var":
            directory = f"{directory}/stet-sockets-{os.getpid()}"
            os.mkdir(directory, 0o700)
            stack.callback(os.rmdir, directory)
        paths = stack.enter_context(listening(directory))
        for path in paths:
            os.chmod(path, 0o600)
        opts = ["--allow-socket", paths[0], "--on-success", "keep"]
        expected = f"reached stream {paths[0]}\n"
        r = stet.run(*client, *paths, cwd=work, opts=opts).ok()
        assert r.out == expected
        status = stet("status", cwd=work).ok().out.replace("~", str(stet.home))
        assert re.search(rf"not undoable .*socket (\./)?{os.path.relpath(paths[0], work)}|"
                         rf"not undoable .*socket {paths[0]}", status), status
        effects = stet("status", "--json", cwd=work).ok().json()["txn"]["not_undoable"]
        assert [e for e in effects if e["kind"] == "socket"] == [
            {"kind": "socket", "what": paths[0]}]
        assert stet("explore", "-q", "--", *client, *paths, cwd=work).ok().out == expected
        r = stet("exec", "--json", "--no-policy", "--allow-socket", paths[2], "--allow-socket",
                 paths[1], "--", *client, *paths, cwd=work).ok().json()
        assert r["stdout"].splitlines() == [
            f"reached packets {paths[1]}", *[f"reached {k} {paths[2]}"
                                             for k in ("datagram", "sendto", "sendmsg")]]
        # For a visit one can be added, which is on record, too; in a copy as well.
        more = ["--allow-socket", paths[1], "-q", "--", *client, *paths]
        both = f"{expected}reached packets {paths[1]}\n"
        assert stet("explore", *more, cwd=work).ok().out == both
        stet("checkpoint", "t1", cwd=work).ok()
        assert stet("explore", "--at", "0", *more, cwd=work).ok().out == both
        effects = stet("status", "--json", "t1", cwd=work).ok().json()["txn"]["not_undoable"]
        assert [e["what"] for e in effects if e["kind"] == "socket"] == paths[:2]
        assert stet("explore", "--allow-socket", "no-such", "-q", "--", "true",
                    cwd=work).rc == 125
        # Nothing of it is a change.
        assert stet("diff", "--json", "t1", cwd=work).ok().json()["changes"] == []
    # Who looks in later, when it is gone, goes without.
    assert stet("explore", "t1", "-q", "--", *client, *paths, cwd=work).ok().out == ""


@pytest.mark.parametrize("name", ["ssh-agent", "gpg-agent"])
def test_agents(stet, home, work, name):
    """In a private directory of the host's /tmp, as ssh-agent makes it; in GnuPG's own."""
    if name == "ssh-agent":
        directory = f"/tmp/ssh-{os.getpid()}-stet"
        path, env = f"{directory}/agent.1", {"SSH_AUTH_SOCK": f"{directory}/agent.1"}
        sees = 'test "$SSH_AUTH_SOCK" = "$1" && '
    else:
        directory = f"{home}/.gnupg"
        path, env, sees = f"{directory}/S.gpg-agent", {}, ""
    os.mkdir(directory, 0o700)
    script = f'{sees}exec /usr/bin/python3 -c "$2" "$1"'
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            s.listen()
            args = ("bash", "-c", script, "bash", path, CLIENT)
            assert stet.run(*args, cwd=work, env=env).ok().out == ""
            r = stet.run(*args, cwd=work, env=env, opts=["--clean-env", "--allow-socket", name])
            assert r.ok().out == f"reached stream {path}\n"
    finally:
        os.unlink(path)
        os.rmdir(directory)


@pytest.mark.parametrize("value,said", [
    ("no-such", r"--allow-socket: no-such: No such file"),
    ("file", r"--allow-socket: .*/file is not a socket"),
    (".", r"--allow-socket: .* is not a socket"),
    ("ssh-agent", r"--allow-socket ssh-agent: SSH_AUTH_SOCK is not set"),
    ("gpg-agent", r"--allow-socket: .*/S.gpg-agent: No such file"),
    ("dir/s0", r"--allow-socket .*/dir/s0 would show what must stay hidden"),
])
def test_what_cannot_be_allowed(stet, work, value, said):
    (work / "file").write_text("x")
    (work / "dir").mkdir()
    with listening(str(work / "dir")):
        r = stet.run("true", cwd=work, opts=["--hide", "dir", "--allow-socket", value]).ok(125)
    assert re.search(said, r.err), r.err
    assert "; " in r.err, "no word on what to do"
    assert stet.transactions() == []


def test_a_socket_is_not_shown_by_read_only(stet, work):
    (work / "dir").mkdir()
    with listening(str(work / "dir")):
        r = stet.run("true", cwd=work, opts=["--read-only", "dir/s0"]).ok(125)
    assert "dir/s0 is a socket; " in r.err and "--allow-socket '" in r.err


def test_one_that_is_slow(stet, work, place):
    """A call that waits for the host's answer waits alone."""
    directory, _ = place("outside of all layers")
    code = ("import socket, sys\nwith socket.socket(socket.AF_UNIX) as s:\n"
            "    s.connect(sys.argv[1]); print(s.recv(3).decode())\n")
    with listening(directory) as paths, socket.socket(socket.AF_UNIX) as s:
        os.unlink(paths[0])
        s.bind(paths[0])
        s.listen()

        def answer():
            with s.accept()[0] as c:
                c.sendall(b"yes")
        t = threading.Thread(target=answer)
        t.start()
        r = stet.run("/usr/bin/python3", "-c", code, paths[0], cwd=work,
                     opts=["--allow-socket", paths[0]])
        t.join()
    assert r.ok().out == "yes\n"
