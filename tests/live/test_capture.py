# SPDX-License-Identifier: Apache-2.0
"""Nothing that runs inside changes anything outside."""
import os
import socket
import tempfile
import uuid

import pytest
from stetlib import differences, processes_with, wait_until

TREE = {
    "file": "content\n",
    "empty": "",
    "script": ("mode", 0o755, "#!/bin/sh\necho hi\n"),
    "dir": {"a": "a\n", "b": "b\n", "deep": {"er": {"c": "c\n"}}},
    "full": {str(i): f"{i}\n" for i in range(40)},
    "link": ("link", "file"),
    "dirlink": ("link", "dir"),
    "twin": ("hard", "file"),
    "big": b"x" * 300_000,
    "holes": ("sparse", 1 << 20),
    "tagged": ("xattr", {"user.color": b"red"}, "tagged\n"),
    "fifo": ("fifo",),
    "old": ("mtime", 1_000_000_000_123_456_789, "old\n"),
}

# Each is given the workspace and a directory outside it, and changes all it can in both.
SHELL = r"""
set -e
for d in "$1" "$2"; do
	echo changed > "$d/file"
	rm -rf "$d/dir" && mkdir "$d/dir" && echo new > "$d/dir/a"
	rm -rf "$d/full"
	mv "$d/big" "$d/bigger"
	chmod 600 "$d/script"
	ln "$d/tagged" "$d/tagged2"
	ln -sfn /etc "$d/link"
	: > "$d/holes"
	truncate -s 10 "$d/twin"
	touch -d 2001-01-01 "$d/old" "$d"
	mkdir -p "$d/x/y/z" && echo z > "$d/x/y/z/z"
	[ "$(cat "$d/file")" != content ] && [ ! -e "$d/full" ] && [ ! -e "$d/dir/b" ]
done
"""
PYTHON = r"""
import mmap, os, shutil, sys
for d in sys.argv[1:]:
    os.chdir(d)
    with open("file", "r+b") as f:
        m = mmap.mmap(f.fileno(), 0)
        m[0:3] = b"XYZ"
        m.flush()
    # An overlay without an index (docs/adr/0010) does not keep links of the host's together.
    assert open("twin", "rb").read(3) in (b"XYZ", b"con")
    shutil.rmtree("full")
    os.rename("dir", "dir2")
    os.replace("empty", "old")
    os.setxattr("tagged", "user.color", b"blue")
    os.utime("script", (1, 1))
    fd = os.open("big", os.O_RDONLY)
    with open(f"/proc/self/fd/{fd}", "r+b") as f:
        f.truncate(5)
    with open("/proc/self/root" + d + "/new", "w") as f:
        f.write("new")
    os.unlink("link"); os.mkdir("link")
    assert sorted(os.listdir("dir2")) == ["a", "b", "deep"]
"""
NODE = r"""
const fs = require('fs'), path = require('path');
for (const d of process.argv.slice(1)) {
	fs.writeFileSync(path.join(d, 'file'), 'node\n');
	fs.rmSync(path.join(d, 'dir'), { recursive: true });
	fs.renameSync(path.join(d, 'full'), path.join(d, 'fuller'));
	fs.appendFileSync(path.join(d, 'big'), 'more');
	fs.truncateSync(path.join(d, 'tagged'), 0);
	fs.chmodSync(path.join(d, 'script'), 0o000);
	fs.linkSync(path.join(d, 'old'), path.join(d, 'older'));
	fs.mkdirSync(path.join(d, 'p/q'), { recursive: true });
	if (fs.existsSync(path.join(d, 'dir/a'))) process.exit(3);
}
"""
COMMANDS = {
    "shell": ["bash", "-c", SHELL, "bash"],
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "node": ["node", "-e", NODE],
}

@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    """What is tried here, the policy would refuse: the rest must hold without it."""
    stet.no_policy = True



@pytest.fixture(name="places")
def fixture_places(stet, home, work, tree):
    """A workspace and a directory beside it, both full."""
    stet.ready()
    outside = home / "outside"
    tree(work, TREE)
    tree(outside, TREE)
    return work, outside


@pytest.mark.parametrize("how", COMMANDS)
def test_destruction_stays_inside(stet, home, places, digest, how):
    stet.rules_off()
    before = digest(home, ignore=(b".local",))
    stet.run(*COMMANDS[how], *places, cwd=places[0]).ok()
    assert differences(before, digest(home, ignore=(b".local",))) == []
    changes = stet.changes(cwd=places[0])
    for place in places:
        assert os.fsencode(place / "file") in changes, "it must have been captured"


@pytest.mark.parametrize("what,as_user", [
    ("write=file", "ok"), ("append=file", "ok"), ("create=new", "ok"), ("unlink=file", "ok"),
    ("mkdir=newdir", "ok"), ("rename=file", "ok"), ("rename=dir", "ok"), ("link=file", "ok"),
    ("chmod=file", "ok"), ("chmod=dir", "ok"), ("chown=file", "denied(EINVAL)"),
    ("truncate=file", "ok"), ("utimes=file", "ok"), ("setxattr=file", "ok"),
    ("mmap-write=file", "ok"), ("mmap-upgrade=file", "denied(EACCES)"),
    ("fallocate=file", "ok"), ("symlink-write=file", "ok"), ("reopen-write=file", "ok"),
])
def test_static_program(stet, home, places, digest, probe, what, as_user):
    """Every call, in the workspace and outside it, from a program without libc.so."""
    expected = "ok" if os.geteuid() == 0 and what == "chown=file" else as_user
    name, _, path = what.partition("=")
    before = digest(home, ignore=(b".local",))
    args = [f"{name}={place / path}" for place in places]
    r = stet.run(probe, *args, cwd=places[0]).ok()
    assert r.out.splitlines() == [f"{name}: {expected}"] * 2
    assert differences(before, digest(home, ignore=(b".local",))) == []


def test_standard_input_from_a_file_is_not_writable(stet, work, probe):
    victim = work / "input"
    victim.write_text("precious\n")
    with open(victim, "r+b") as f:
        stet.run(probe, "stdio-write=0", cwd=work, stdin=f).ok()
    assert victim.read_text() == "precious\n"


def test_standard_input_passes_through(stet, work):
    victim = work / "input"
    victim.write_bytes(os.urandom(200_000))
    with open(victim, "rb") as f:
        r = stet.run("cat", cwd=work, stdin=f).ok()
    assert r.raw == victim.read_bytes()


def test_standard_output_to_a_file_cannot_be_rewritten(stet, work):
    log = work / "log"
    log.write_text("earlier\n")
    with open(log, "ab") as f:
        stet.sh(": > /proc/self/fd/1; echo now", cwd=work, stdout=f).ok()
    assert log.read_text() == "earlier\nnow\n"


def test_standard_input_from_a_directory_is_no_way_out(stet, work, probe):
    fd = os.open("/", os.O_RDONLY)
    try:
        r = stet.run(probe, "stdio-openat=0", cwd=work, stdin=fd)
    finally:
        os.close(fd)
    # Refusing such an input is fine, too.
    assert "stdio-openat: ok" not in r.out


def test_standard_input_from_a_socket_is_no_way_out(stet, work, probe):
    """Who sits at the other end could hand descriptors in."""
    a, b = socket.socketpair()
    with a, b:
        b.sendall(b"hello")
        b.shutdown(socket.SHUT_WR)
        r = stet.sh("cat; readlink /proc/self/fd/0", cwd=work, stdin=a).ok()
    assert r.out.startswith("hello")
    assert "socket:" not in r.out


def test_no_descriptor_is_inherited(stet, home, work, probe):
    victim = home / "victim"
    victim.write_text("precious\n")
    fds = [os.open(victim, os.O_RDWR), os.open("/", os.O_RDONLY), os.open(home, os.O_RDONLY)]
    try:
        r = stet.run(probe, "descriptors", cwd=work, pass_fds=fds).ok()
        shell = stet.sh(f"echo x >&{fds[0]}", cwd=work, pass_fds=fds)
    finally:
        for fd in fds:
            os.close(fd)
    assert r.out == "descriptors: 0\n"
    assert shell.rc != 0
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("daemon", [
    "sleep 1000 &", "setsid sleep 1000 &", "nohup setsid sleep 1000 >/dev/null 2>&1 &",
    "(setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &)",
])
def test_nothing_outlives_the_command(stet, work, daemon):
    mark = f"mark-{uuid.uuid4()}"
    stet.sh(f"export MARK={mark}; exec -a {mark} true || true; "
            + daemon.replace("sleep", f"exec -a {mark} sleep", 1), cwd=work).ok()
    wait_until(lambda: not processes_with(mark), message="still running")


def test_a_background_writer_changes_nothing_later(stet, work):
    """What it writes after the end must neither reach the host nor the transaction."""
    (work / "counter").write_text("0\n")
    stet.sh("setsid bash -c 'while :; do echo more >> counter; done' & "
            "until [ -s counter ] && [ $(wc -l < counter) -gt 5 ]; do :; done", cwd=work).ok()
    assert (work / "counter").read_text() == "0\n"
    first = stet("diff", cwd=work).ok().out
    assert stet("diff", cwd=work).ok().out == first


@pytest.mark.parametrize("place", ["/etc", "/usr/local/bin", "/opt", "/var/lib"])
def test_system_directories(stet, work, place):
    """The user cannot write there, as outside; what root writes there is captured."""
    name = f"{place}/stet-test-{uuid.uuid4()}"
    try:
        r = stet.sh('echo x > "$1" && cat "$1"', name, cwd=work)
        if os.geteuid() == 0 or os.access(place, os.W_OK):
            assert r.ok().out == "x\n"
            assert stet.changes(cwd=work)[name.encode()] == "A"
        else:
            assert r.rc != 0
        assert not os.path.lexists(name)
    finally:
        if os.path.lexists(name):
            os.unlink(name)


def test_private_tmp(stet, work):
    name = f"stet-test-{uuid.uuid4()}"
    for place in ("/tmp", "/var/tmp", "/dev/shm"):
        r = stet.sh('echo x > "$1" && cat "$1"', f"{place}/{name}", cwd=work).ok()
        assert r.out == "x\n"
        assert not os.path.lexists(f"{place}/{name}")


def test_host_tmp_is_captured(stet, work):
    name = f"/tmp/stet-test-{uuid.uuid4()}"
    with open(name, "w", encoding="ascii") as f:
        f.write("host\n")
    try:
        r = stet.sh('cat "$1"; echo inside > "$1"; cat "$1"', name, cwd=work,
                    opts=["--tmp", "host"]).ok()
        assert r.out == "host\ninside\n"
        with open(name, encoding="ascii") as f:
            assert f.read() == "host\n"
        assert stet.changes(cwd=work)[name.encode()] == "M"
    finally:
        os.unlink(name)


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
def test_no_workspace_in_what_is_thrown_away(stet, home, place):
    """What is private inside as a whole would lose all work without a word."""
    (home / "way").symlink_to(place)
    name = f"stet-test-{uuid.uuid4()}"
    script = ["sh", "-c", f"echo ran; echo x > {name}"]
    if place == "/run" and os.geteuid() == 0:  # root's is an overlay like any other
        stet("run", "--quiet", "--", *script, cwd=place).ok()
        assert stet.changes(cwd=place)[f"/run/{name}".encode()] == "A"
        return
    refusals = [stet("run", "--", *script, cwd=place), stet("exec", "--", *script, cwd=place),
                stet("run", "--workspace", home / "way", "--", *script, cwd=home)]
    if "tmp" in place:
        refusals.append(stet("run", "--tmp", "private", "--", *script, cwd=place))
    for r in refusals:
        assert (r.rc, r.out) == (125, ""), repr(r)
        line = r.err.splitlines()
        assert len(line) == 1 and line[0].startswith(f"stet: {place} cannot be "), repr(r)
        assert "--workspace DIR" in line[0]
        assert ("--tmp host" in line[0]) == ("tmp" in place)
    o = stet("exec", "--json", "--", *script, cwd=place).ok(125).json()
    assert o["error"]["kind"] == "usage"
    assert not stet.transactions()
    if "tmp" in place:
        stet("run", "--quiet", "--tmp", "host", "--", *script, cwd=place).ok()
        assert stet.changes(cwd=place)[f"{place}/{name}".encode()] == "A"


def test_a_workspace_below_tmp_is_kept(stet):
    with tempfile.TemporaryDirectory(dir="/tmp") as d:
        stet.run("sh", "-c", "echo x > f", cwd=d).ok()
        assert stet.changes(cwd=d, below=d) == {b"f": "A"}
        assert stet("fork", "--quiet", "--", "cat", "f", cwd=d).ok().out == "x\n"


def test_write_through_reaches_the_host_and_is_told(stet, home, work):
    through = home / "cache"
    through.mkdir()
    stet.sh('echo out > "$1/f"; echo in > g', through, cwd=work,
            opts=["--write-through", through]).ok()
    assert (through / "f").read_text() == "out\n"
    assert not (work / "g").exists()
    status = stet("status", "--json", cwd=work).ok().json()
    assert {"kind": "write-through", "what": str(through)} in status["txn"]["not_undoable"]


def test_read_only_and_hidden_paths(stet, home, work):
    (home / "ro").mkdir()
    (home / "ro" / "f").write_text("f\n")
    (home / "secret").mkdir()
    (home / "secret" / "key").write_text("key\n")
    r = stet.sh('cat "$1/ro/f"; echo x > "$1/ro/f" || echo refused; '
                'cat "$1/secret/key" 2>/dev/null || echo hidden; ls "$1/secret" 2>/dev/null; true',
                home, cwd=work,
                opts=["--read-only", home / "ro", "--hide", home / "secret"]).ok()
    assert r.out == "f\nrefused\nhidden\n"
    assert (home / "ro" / "f").read_text() == "f\n"


@pytest.mark.parametrize("above", ["/", "home", "parent"])
def test_read_only_above_what_is_captured(stet, home, work, above):
    """What lies on top of a read-only directory is read-only, too; /tmp is not the host's."""
    top = {"/": "/", "home": home, "parent": work.parent}[above]
    (work / "f").write_text("f\n")
    r = stet.sh('cat f; echo x > f || echo refused; rm f || echo refused; touch /tmp/x', cwd=work,
                opts=["--read-only", top]).ok()
    assert r.out == "f\nrefused\nrefused\n"
    assert stet.transactions() == []


def test_writable_below_a_read_only_directory(stet, home, work):
    through = work / "through"
    through.mkdir()
    stet.sh("echo x > f || echo y > through/f", cwd=work,
            opts=["--read-only", "/", "--write-through", through]).ok()
    assert (through / "f").read_text() == "y\n"
    assert stet.changes(cwd=work) == {}


def test_run_can_be_hidden(stet, work):
    r = stet.sh('ls /run && echo seen', cwd=work, opts=["--hide", "/run"])
    assert r.out == ""
