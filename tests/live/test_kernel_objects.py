# SPDX-License-Identifier: Apache-2.0
"""What the host's kernel has under names that are seen inside, too: device nodes, procfs, cgroups.

Their attributes are the host's wherever they are mounted, and must not change.
"""
import contextlib
import os
import subprocess

import pytest

NEEDS = "cgroup"
ROOT = os.geteuid() == 0
NODES = [f"/dev/{n}" for n in ("null", "zero", "full", "random", "urandom", "tty")]

# Every call that changes an attribute, by name and by descriptor; says which ones could be done.
CALLS = r"""
import os, struct, sys
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, perm, who) for tag, perm, who in
    ((1, 6, 2 ** 32 - 1), (2, 7, os.getuid()), (4, 6, 2 ** 32 - 1), (16, 7, 2 ** 32 - 1),
     (32, 6, 2 ** 32 - 1)))
def opened(how, flags):
    def call(p):
        fd = os.open(p, flags | os.O_NOCTTY)
        try: how(fd)
        finally: os.close(fd)
    return call
CALLS = {
    "chmod": lambda p: os.chmod(p, 0o777),
    "chown": lambda p: os.chown(p, os.getuid(), 1),
    "lchown": lambda p: os.lchown(p, os.getuid(), 1),
    "utime": lambda p: os.utime(p, (1, 1)),
    "utime now": lambda p: os.utime(p),
    "utime link": lambda p: os.utime(p, (1, 1), follow_symlinks=False),
    "acl": lambda p: os.setxattr(p, "system.posix_acl_access", ACL),
    "xattr": lambda p: os.setxattr(p, "user.x", b"1"),
    "trusted": lambda p: os.setxattr(p, "trusted.x", b"1"),
    "security": lambda p: os.setxattr(p, "security.x", b"1"),
    "fchmod": opened(lambda fd: os.fchmod(fd, 0o777), os.O_RDWR),
    "fchown": opened(lambda fd: os.fchown(fd, os.getuid(), 1), os.O_RDWR),
    "futime": opened(lambda fd: os.utime(fd, (1, 1)), os.O_RDWR),
    "futime now": opened(os.utime, os.O_RDONLY),
    "fsetxattr": opened(lambda fd: os.setxattr(fd, "system.posix_acl_access", ACL), os.O_RDONLY),
    "chmod by descriptor": opened(lambda fd: os.chmod(f"/proc/self/fd/{fd}", 0o777), os.O_PATH),
}
for path in sys.argv[1:]:
    for name, call in CALLS.items():
        try:
            call(path)
        except OSError:
            continue
        print(name, path)
"""

# What programs do with these files: all of it works.
USES = r"""
import os
for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_TRUNC | os.O_CREAT,
              os.O_WRONLY | os.O_APPEND):
    os.close(os.open("/dev/null", flags, 0o666))
assert os.write(os.open("/dev/null", os.O_WRONLY), b"x") == 1
assert os.read(os.open("/dev/null", os.O_RDONLY), 1) == b""
assert os.read(os.open("/dev/zero", os.O_RDONLY), 2) == bytes(2)
assert len(os.read(os.open("/dev/urandom", os.O_RDONLY), 8)) == 8
assert len(os.read(os.open("/dev/random", os.O_RDONLY), 8)) == 8
assert os.access("/dev/null", os.R_OK | os.W_OK)
try:
    os.write(os.open("/dev/full", os.O_WRONLY), b"x")
except OSError as e:
    assert e.errno == 28
os.system("echo lost > /dev/null; echo more >> /dev/null; cat < /dev/null")
"""


def attributes(path):
    st = os.stat(path)
    times = (st.st_atime_ns, st.st_mtime_ns, st.st_ctime_ns)
    # Others read and write the host's nodes meanwhile: only what nobody else does is looked at.
    acl = [n for n in os.listxattr(path) if n != "security.selinux"]
    return st.st_mode, st.st_uid, st.st_gid, [t for t in times if t <= 10 ** 9], acl


@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    stet.no_policy = True


def test_nodes_keep_their_attributes(stet, work):
    before = {n: attributes(n) for n in NODES}
    try:
        r = stet.run("/usr/bin/python3", "-c", CALLS, *NODES, cwd=work).ok()
        assert {n: attributes(n) for n in NODES} == before
    finally:
        for n in NODES if ROOT and {n: attributes(n) for n in NODES} != before else []:
            for name in attributes(n)[4]:
                os.removexattr(n, name)
            os.chmod(n, before[n][0] & 0o7777)
            os.chown(n, before[n][1], before[n][2])
    assert r.out == ""


def test_nodes_do_what_they_are_for(stet, work):
    stet.run("/usr/bin/python3", "-c", USES, cwd=work).ok()


def procfs():
    names = [f"/proc/{n}" for n in os.listdir("/proc") if not n.isdigit()]
    return [n for n in names if not os.path.islink(n)]


def test_procfs_keeps_its_attributes(stet, work):
    """They are those of every instance of procfs."""
    paths = procfs() + ["/proc/sys/kernel/hostname", "/proc/sys/fs", "/proc/fs/ext4"]
    before = {p: os.stat(p).st_mode for p in procfs()}
    try:
        r = stet.run("/usr/bin/python3", "-c", CALLS, *filter(os.path.exists, paths), cwd=work)
        inside = stet.run("stat", "-c", "%f %n", *before, cwd=work)
    finally:
        # Outside the old mode may be shown still, from what is in memory of the entry.
        for p in before if ROOT else []:
            with contextlib.suppress(PermissionError):
                os.chmod(p, before[p] & 0o7777)
    assert r.ok().out == ""
    shown = dict(reversed(line.split()) for line in inside.out.splitlines())
    for p, mode in before.items():
        # Some are covered by an empty file or device inside.
        assert int(shown[p], 16) in (mode, os.stat("/dev/null").st_mode), p


GROUPS = {
    "no limits": [],
    "a group of its own": ["--cpu", "60s"],
}


@pytest.mark.parametrize("name", GROUPS)
def test_nobody_leaves_the_cgroup(stet, work, probe, filesystem, name):
    where = f"{filesystem('cgroup')}/path"
    if not os.path.exists(where):
        pytest.skip("impossible here: no cgroups of version 2, or none can be made")
    with open(where, encoding="utf-8") as f:
        top = f.read()
    tries = [f"clone-into-cgroup={top}/other", f"clone-into-cgroup={top}",
             f"write={top}/other/cgroup.procs", f"open-write={top}/other/cgroup.procs",
             f"open-write={top}/other/cgroup.threads", f"mkdir={top}/other/new",
             f"chmod={top}/other/cgroup.procs"]
    # The same outside: the first could be done, so it is stet that refuses.
    out = subprocess.run([probe, tries[0]], stdout=subprocess.PIPE, check=True).stdout
    assert out == b"clone-into-cgroup: ok\n"
    # While a limit keeps a group of its own beside it, and while none does.
    r = stet.run(probe, *tries, opts=GROUPS[name], cwd=work).ok()
    for line in r.out.splitlines():
        assert line.partition(": ")[2].startswith("denied("), line
    with open(f"{top}/other/cgroup.procs", encoding="ascii") as f:
        assert f.read() == ""
    assert os.listdir(f"{top}/own") == os.listdir(f"{top}/other")


def test_threads_and_processes_start_all_the_same(stet, work):
    """clone3 is not there: the C library goes on with clone."""
    code = ("import subprocess, threading\n"
            "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
            "subprocess.run(['echo', 'process'], check=True, close_fds=False)\n")
    r = stet.run("/usr/bin/python3", "-u", "-c", code, cwd=work).ok()
    assert r.out == "thread\nprocess\n"
