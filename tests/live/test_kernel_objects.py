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


def devices():
    found = ["/dev", "/sys"]
    for top, dirs, files in os.walk("/dev"):
        found += [f"{top}/{n}" for n in dirs + files]
    return [n for n in found if not os.path.islink(n)]


def test_all_of_dev_keeps_its_attributes(stet, work):
    """What has the same name inside is another object, or cannot be changed."""
    here = os.ttyname(os.openpty()[1])
    before = {n: attributes(n) for n in devices()}
    assert here in before
    # Terminals are told apart by number: the first one inside has another one's name.
    code = CALLS.replace("CALLS = {", "import pty; keep = pty.openpty()\nCALLS = {", 1)
    stet.run("/usr/bin/python3", "-c", code, *before, cwd=work).ok()
    there = {n: a for n, a in before.items() if os.path.exists(n)}  # others' terminals come and go
    assert here in there and {n: attributes(n) for n in there} == there


def test_nodes_do_what_they_are_for(stet, work):
    stet.run("/usr/bin/python3", "-c", USES, cwd=work).ok()


TERMINALS = {
    "script": "script -qec 'tty >&2; echo told > /dev/tty' /dev/null | grep -qx 'told.'",
    "spawn": "python3 -c 'import pty; exit(pty.spawn([\"sh\", \"-c\", \"test -t 0 && : < /dev/tty\"]))'",
    # `tmux wait` could hang: the server ends with its session, perhaps before the wait.
    "tmux": "tmux -L t -f /dev/null new -d 'echo x > /dev/tty; tty > seen' && "
            "for i in $(seq 100); do test -s seen && break; sleep 0.1; done; "
            "grep -q /dev/pts/ seen",
    "su": "test $(id -u) != 0 || su -c 'test $(id -u) = 0 && : > /dev/null' root",
}


@pytest.mark.parametrize("name", TERMINALS)
def test_terminals_are_made(stet, work, name):
    stet.sh(TERMINALS[name], cwd=work, env={"PATH": "/usr/bin:/bin", "TERM": "xterm"}).ok()


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
    # Nor from a namespace of one's own, in which everything may be mounted.
    script = ('p="$1"; unshare -Urm sh -c "mount -o remount,rw,bind \'$p\'; mkdir m; '
              'mount -t cgroup2 none m; echo 0 > m/cgroup.procs; echo 0 > \'$p/other/cgroup.procs\'; '
              'mount --bind \'$p\' m; echo 0 > m/other/cgroup.procs"; '
              'unshare -UrmC sh -c "mount -t cgroup2 none m"; true')
    stet.run("bash", "-c", script, "bash", top, opts=GROUPS[name], cwd=work).ok()
    with open(f"{top}/other/cgroup.procs", encoding="ascii") as f:
        assert f.read() == ""
    assert os.listdir(f"{top}/own") == os.listdir(f"{top}/other")


def old_groups():
    """The hierarchies of version 1, one directory each."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split()[4] for line in f if " - cgroup " in line]


def test_nobody_leaves_the_old_cgroups(stet, work, probe):
    tops = old_groups()
    if not tops or not ROOT:
        pytest.skip("impossible here: no cgroups of version 1, or none that may be changed")
    tries = [f"{what}={top}/{name}" for top in tops
             for what, name in (("open-write", "cgroup.procs"), ("open-write", "tasks"),
                                ("write", "tasks"), ("mkdir", "stet-new"))]
    r = stet.run(probe, *tries, "mount-type=cgroup", "nested-mount-type=cgroup",
                 "nested-mount-type=cgroup2", cwd=work).ok()
    for line in r.out.splitlines():
        assert line.partition(": ")[2].startswith("denied("), line


# A descriptor of a group cannot be brought along: files and directories become pipes.
BROUGHT = (r"import os, stat"
           "\nfor fd in range(3):"
           "\n    assert stat.S_ISFIFO(os.fstat(fd).st_mode), fd"
           "\nassert len(os.listdir('/proc/self/fd')) == 4")


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_no_group_is_brought_along(stet, work, tmp_path, kind):
    path = tmp_path / "group"
    path.mkdir()
    (path / "file").touch()
    fd = os.open(path if kind == "directory" else path / "file", os.O_RDONLY)
    try:
        subprocess.run([stet.path, "run", "-q", "--no-policy", "--", "/usr/bin/python3", "-c",
                        BROUGHT], cwd=work, env=stet.environ(), stdin=fd, stdout=fd, stderr=fd,
                       pass_fds=[fd], check=True)
    finally:
        os.close(fd)


PROGRAM = r"""
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <threads.h>
static void *run(void *a) { return a; }
static int other(void *a) { (void)a; return 7; }
int main(void) {
    char *argv[] = { "true", 0 }, *env[] = { 0 };
    pthread_t t; thrd_t u; void *r; int n, status; pid_t pid;
    if (pthread_create(&t, 0, run, argv) || pthread_join(t, &r) || r != argv) return 1;
    if (thrd_create(&u, other, 0) != thrd_success || thrd_join(u, &n) != thrd_success || n != 7)
        return 2;
    if (posix_spawn(&pid, "/bin/true", 0, 0, argv, env) || waitpid(pid, &status, 0) != pid)
        return 3;
    return status;
}
"""

STARTERS = {
    "C": "gcc -pthread -o p p.c && ./p",
    "C, static": "gcc -static -pthread -o p p.c && ./p",
    "node": "node -e 'const w = require(\"worker_threads\"); "
            "new w.Worker(\"process.exit(0)\", {eval: true}).on(\"exit\", () => "
            "process.exit(require(\"child_process\").spawnSync(\"true\").status))'",
}


@pytest.mark.parametrize("name", STARTERS)
def test_languages_start_threads_and_processes(stet, work, name):
    (work / "p.c").write_text(PROGRAM)
    stet.sh(STARTERS[name], cwd=work).ok()


def test_threads_and_processes_start_all_the_same(stet, work):
    """clone3 is not there: the C library goes on with clone."""
    code = ("import subprocess, threading\n"
            "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
            "subprocess.run(['echo', 'process'], check=True, close_fds=False)\n")
    r = stet.run("/usr/bin/python3", "-u", "-c", code, cwd=work).ok()
    assert r.out == "thread\nprocess\n"
