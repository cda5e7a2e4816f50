# SPDX-License-Identifier: Apache-2.0
"""What PID 1 does for the inside reaches no further than who asks for it."""
import contextlib
import os
import signal
import subprocess
import time

import pytest
from stetlib import digest, wait_until

NEEDS = "tmpfs"
SANITIZED_APART = True
ROOT = os.geteuid() == 0

# rename(2) with words of any kind; says how each went.
PRELUDE = r"""
import ctypes, errno, os, resource, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def error(r):
    return errno.errorcode[ctypes.get_errno()] if r else "done"
def rename(a, b, flags=0, olddir=-100, newdir=-100):
    return error(libc.renameat2(olddir, os.fsencode(a), newdir, os.fsencode(b), flags))
"""


def inside(stet, work, script, *args, **kw):
    return stet.run("/usr/bin/python3", "-c", PRELUDE + script, *args, cwd=work, **kw)


# Beginnings of names that would mean something else to whoever resolves them for the caller.
OUT = r"""
top = sys.argv[1]
os.mkdir("d")
def tries(begin):
    for up in range(8):
        for name in ("victim", "victim/below"):
            rename(begin + "../" * up + top.lstrip("/") + "/" + name, begin + "../" * up +
                   top.lstrip("/") + "/moved")
        rename(begin + "../" * up + top.lstrip("/") + "/victim", "taken")
        rename("d", begin + "../" * up + top.lstrip("/") + "/made")
begins = [f"/proc/{who}/{what}/" for who in ("self", "thread-self", "1", "2", "self/task/1")
          for what in ["root", "cwd", "exe"] + [f"fd/{n}" for n in range(40)]]
begins += [f"/dev/fd/{n}/" for n in range(40)]
begins += [f"/proc/self/fd/{n}/../../{pid}/root/" for n in range(40) for pid in (1, sys.argv[2])]
for i, begin in enumerate(begins):
    os.symlink(begin, f"link{i}")
    os.symlink(begin + "../../../.." + top, f"far{i}")
    tries(begin)
    tries(f"link{i}/")
    tries(f"{os.getcwd()}/link{i}/")
    rename(f"far{i}/victim", "taken")
"""


@pytest.mark.parametrize("opts", [["--no-policy"], []], ids=["alone", "policy"])
def test_no_name_leads_out(stet, home, tree, tmp_path, opts):
    """The canary lies where the inside has no layer: nothing there may change, whatever is asked."""
    tree(home / "work", {"f": "1"})
    outside = tree(tmp_path / "outside", {"victim": {"f": "1", "below": {"g": "2"}}})
    before = digest(outside)
    inside(stet, home / "work", OUT, str(outside), str(os.getpid()), opts=opts).ok()
    assert digest(outside) == before


TREE = {"d": {"f": "1", "sub": {"g": "2"}}, "p": {"x": "3"}, "q": {"y": "4"}, "file": "5",
        "link": ("link", "d"), "abs": ("link", "{work}/p")}

# What is asked, how it goes, and what is there afterwards.
FORMS = {
    "relative": ('rename("d", "p/d")', "done", "p/d/sub/g"),
    "absolute": ('rename(f"{w}/d", f"{w}/p/d")', "done", "p/d/sub/g"),
    "slashes": ('rename("d//", ".//p///d/")', "done", "p/d/sub/g"),
    "up": ('os.chdir("p"); r = rename("../d", "../q/d")', "done", "q/d/sub/g"),
    "up from a descriptor": ('rename("../d", "../q/d", 0, fd("p"), fd("q"))', "done", "q/d/sub/g"),
    "beyond the root": ('rename("/../.." + w + "/d", "d2")', "done", "d2/sub/g"),
    "by descriptor": ('rename("sub", "sub", 0, fd("d"), fd("q"))', "done", "q/sub/g"),
    "own cwd": ('rename("/proc/self/cwd/d", "/proc/thread-self/cwd/q/d")', "done", "q/d/sub/g"),
    "own root": ('rename("/proc/self/root" + w + "/d", "q/d")', "done", "q/d/sub/g"),
    "own descriptor": ('rename(f"/proc/self/fd/{fd(\'d\')}/sub", "q/sub")', "done", "q/sub/g"),
    "/dev/fd": ('rename(f"/dev/fd/{fd(\'d\')}/sub", "q/sub")', "done", "q/sub/g"),
    "absolute link on the way": ('rename("d", "abs/d")', "done", "p/d/sub/g"),
    "a link": ('rename("link", "q/link")', "done", "q/link"),
    "a link with a slash": ('rename("link/", "q/link")', "ENOTDIR", "d/sub/g"),
    "a descriptor itself": ('rename(f"/proc/self/fd/{fd(\'d\')}", "q/d")', "EXDEV", "d/sub/g"),
    "a file": ('rename("file", "q/file")', "done", "q/file"),
    "no such": ('rename("none/d", "q/d")', "ENOENT", "d/sub/g"),
    "no such descriptor": ('rename("d", "e", 0, 99)', "EBADF", "d/sub/g"),
    "through a file": ('rename("file/d", "q/d")', "ENOTDIR", "d/sub/g"),
    "dot": ('rename("d/.", "q/d")', "EBUSY", "d/sub/g"),
    "dots": ('rename("d/sub/..", "q/d")', "EBUSY", "d/sub/g"),
    "empty": ('rename("", "q/d")', "ENOENT", "d/sub/g"),
    "too long": ('rename("d", "q/" + "x" * 256)', "ENAMETOOLONG", "d/sub/g"),
    "as long as can be": ('rename("./" * 2046 + "d", "q/d")', "done", "q/d/sub/g"),
    "longer": ('rename("./" * 2048 + "d", "q/d")', "ENAMETOOLONG", "d/sub/g"),
    "into itself": ('rename("d", "d/sub/d")', "EINVAL", "d/sub/g"),
    "full target": ('rename("d", "q")', "ENOTEMPTY", "d/sub/g"),
    "exchange": ('rename("d", "file", 2)', "done", "file/sub/g"),
    "exchange with a slash": ('rename("d", "file/", 2)', "ENOTDIR", "d/sub/g"),
    "exchange with a link and a slash": ('rename("d", "abs/", 2)', "ENOTDIR", "d/sub/g"),
    "exchange of a file with a slash": ('rename("file/", "d", 2)', "ENOTDIR", "d/sub/g"),
    "to another mount": ('rename("d", "/tmp/d")', "EXDEV", "d/sub/g"),
}


@pytest.mark.parametrize("form", FORMS)
def test_names_mean_what_they_mean_to_the_caller(stet, work, tree, form):
    what, result, there = FORMS[form]
    tree(work, {k: (v[0], v[1].format(work=work)) if isinstance(v, tuple) else v
                for k, v in TREE.items()})
    what = what if "r = " in what else f"r = {what}"
    script = f"""
w = os.getcwd()
def fd(name): return os.open(name, os.O_RDONLY)
{what}
os.chdir(w)
print(r, os.path.lexists({there!r}))
"""
    assert inside(stet, work, script).ok().out == f"{result} True\n"


# Who has another root or other mounts is left to the kernel: it renames what the inside has made,
# and says EXDEV of what the host has.
@pytest.mark.parametrize("where", ["mount namespace", "chroot"])
def test_other_mounts_are_not_the_views(stet, work, tree, where):
    tree(work, {"d": {"f": "1", "sub": {"g": "2"}}})
    script = r"""
kind = sys.argv[1]
os.mkdir("made"); os.mkdir("made/x")
if os.getuid() or kind != "chroot":
    def put(name, text):
        with open(f"/proc/self/{name}", "w") as f: f.write(text)
    ids = os.getuid(), os.getgid()
    if libc.unshare(0x10000000 | 0x20000 if os.getuid() else 0x20000): sys.exit("unshare")
    if ids[0]:
        put("setgroups", "deny"); put("uid_map", f"0 {ids[0]} 1"); put("gid_map", f"0 {ids[1]} 1")
if kind == "chroot":
    os.chroot("."); os.chdir("/")
print(rename("made", "made2"), rename("d", "e"), sorted(os.listdir(".")))
"""
    r = inside(stet, work, script, where).ok()
    assert r.out == "done EXDEV ['d', 'made2']\n"


def test_mounts_of_the_inside_do_not_count(stet, work, tree):
    """What root inside mounts, be it in place of all that was there."""
    if not ROOT:
        pytest.skip("impossible here: only root has mounts of his own at once")
    tree(work, {"d": {"f": "1"}, "m": {}})
    script = r"""
def mount(*a):
    if libc.mount(*[x if x is None or isinstance(x, int) else os.fsencode(x) for x in a]):
        sys.exit(f"mount {a}: {os.strerror(ctypes.get_errno())}")
mount("/", "m", None, 0x1000 | 0x4000, None)
os.chdir("m" + os.getcwd())
print(rename("d", "e"), sorted(os.listdir(".")))
os.chdir("/" + sys.argv[1] + "/m")
if libc.syscall(155, b".", b"."): sys.exit("pivot_root")
if libc.umount2(b".", 2): sys.exit("umount")
os.chdir(sys.argv[1])
for i in range(300):
    mount("none", "m", "tmpfs", 0, None)
print(rename("d", "e"))
mount(".", "m", None, 0x1000 | 0x4000, None)
print(rename("m/d", "m/e"), sorted(os.listdir(".")))
"""
    r = inside(stet, work, script, str(work)).ok()
    assert r.out == "EXDEV ['d', 'm']\nEXDEV\nEXDEV ['d', 'm']\n"


@pytest.mark.skipif(not ROOT, reason="impossible here: a user's / is read-only")
@pytest.mark.parametrize("name", ["proc", "sys", "dev", "tmp"])
def test_mount_points_stay(stet, work, name):
    """With mounts of its own the inside can reach what lies beneath a mount, but not remove it."""
    script = r"""
old, name = os.open("/", os.O_PATH), sys.argv[1]
os.mkdir("m")
def check(r): r and sys.exit(error(r))
check(libc.unshare(0x20000))
check(libc.mount(b".", b"m", None, 0x1000 | 0x4000, None))
os.chdir("m")
check(libc.syscall(155, b".", b"."))
check(libc.umount2(b".", 2))
ds = [error(libc.unlinkat(old, os.fsencode(name), 0x200)),
      rename("x", name, 0, old, old), rename(name, "x", 0, old, old)]
print(*ds)
"""
    tell = "test -d /proc/self && test -e /sys/fs && test -e /dev/null && test -d /tmp && echo there"
    r = stet.sh(f"python3 -c '{PRELUDE}{script}' {name}; {tell}", cwd=work).ok()
    assert r.out == "ENOTEMPTY ENOENT EXDEV\nthere\n"


# The mount of a layer is to be taken away from beneath, for a link where it was.
PLANTED = r"""
import subprocess
stet, name, out = sys.argv[1:]
def say(*words): return subprocess.run([stet, *words], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
with open(name + "/file", "w") as f: f.write("one")
assert say("checkpoint").returncode == 0
with open(name + "/file", "w") as f: f.write("two")
child = os.fork()
if child == 0:
    here, ids = os.open(".", os.O_PATH), (os.getuid(), os.getgid())
    assert libc.unshare(0x10020000) == 0
    for what, text in ("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"), ("gid_map", f"0 {ids[1]} 1"):
        with open(f"/proc/self/{what}", "w") as f: f.write(text)
    assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0
    os.chdir("/tmp")
    assert libc.syscall(155, b".", b".") == 0 and libc.umount2(b".", 2) == 0
    try: os.rmdir(name, dir_fd=here)
    except OSError as e: os._exit(e.errno)
    os._exit(0)
print(errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "gone"))
for n in range(8, 26 if not os.path.ismount(name) else 0):
    os.symlink(f"/proc/self/fd/{n}" + "/.." * 20 + out, name)
    say("rollback", "--to", "1")
    os.unlink(name)
print(say("rollback", "--to", "1").returncode, open(name + "/file").read())
"""


@pytest.mark.skipif(not ROOT, reason="impossible here: the mount lies in a directory of root's")
def test_a_layer_is_where_its_mount_is(stet, tmp_path, tree, filesystem):
    """A rollback in the middle of a run is carried out there and nowhere else."""
    mount = filesystem("tmpfs")
    outside = tree(tmp_path / "outside", {"file": "host"})
    stet.env["HOME"] = os.path.dirname(mount)
    stet.env["STET_STATE_DIR"] = str(tmp_path / "state")
    r = inside(stet, os.path.dirname(mount), PLANTED, stet.path, os.path.basename(mount),
               str(outside), opts=["--no-policy"])
    assert r.out == "ENOTEMPTY\n0 one\n", r
    assert (outside / "file").read_text() == "host" and os.listdir(outside) == ["file"]


def test_limits_of_pid_1_are_not_to_be_set(stet, work):
    """Others' can be read, and set where it is not one of ours."""
    script = r"""
nofile = resource.RLIMIT_NOFILE
def limit(pid, new=()):
    try:
        resource.prlimit(pid, nofile, *new)
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
new = [(64, 64)]
child = os.fork()
if child == 0:
    import signal; signal.pause()
raw = libc.syscall(302, ctypes.c_ulong(0x100000001), nofile,
                   (ctypes.c_ulong * 2)(64, 64), None)
print(limit(1), limit(1, new), error(raw), limit(child, new), limit(os.getpid(), new), limit(0, new),
      limit(99999, new))
os.kill(child, 9)
"""
    assert inside(stet, work, script).ok().out == "done EPERM EPERM done done done ESRCH\n"


RACE = r"""
def race(i, to, results, gate):
    gate.wait()
    results.append(rename(f"d{i}", to))
for i in range(int(sys.argv[1])):
    results, gate = [], threading.Barrier(3)
    ts = [threading.Thread(target=race, args=(i, f"{x}{i}", results, gate)) for x in "abc"]
    [t.start() for t in ts]; [t.join() for t in ts]
    print(*sorted(results))
"""


def test_renames_at_once(stet, work, tree):
    """One wins, the others find nothing there; nothing lies about."""
    n = 12
    entry = {"f": "1", "s": {str(i): {"x": "2", "y": {"z": "3"}} for i in range(20)}}
    tree(work, {f"d{i}": entry for i in range(n)})
    script = RACE + r"""
names = sorted(os.listdir("."))
print(len(names), {len(fs) + len(ds) for d in names for _, ds, fs in os.walk(d)},
      [x for x in names if x[0] not in "abc"])
"""
    r = inside(stet, work, script, str(n)).ok()
    assert r.out == "ENOENT ENOENT done\n" * n + f"{n} {{1, 2, 20}} []\n"


def sandbox_of(stet):
    """PID 1 of the sandbox, and its children."""
    top = stet.started[-1].pid
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                lines = dict(line.split(":", 1) for line in f)
        except OSError:
            continue
        if int(lines["PPid"]) == top and lines["NSpid"].split()[-1] == "1":
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                return int(pid), [int(x) for x in f.read().split()]
    return 0, []


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
def test_who_asked_is_answered(stet, work, tree, sign):
    """Even if the process that renames for it is killed; one that is stopped goes on."""
    tree(work, {"d": {str(i): {} for i in range(4000)}})
    script = r"""
print("begun", flush=True)
print(rename("d", "e"), flush=True)
print(rename("f", "g"), rename("e" if os.path.exists("e") else "d", "h"))
"""
    tree(work, {"f": {"x": "1"}})
    p = stet.popen("run", "-q", "--no-policy", "--", "/usr/bin/python3", "-c", PRELUDE + script,
                   cwd=work)
    assert p.stdout.readline() == b"begun\n"
    hit = False
    until = time.monotonic() + 20
    while not hit and p.poll() is None and time.monotonic() < until:
        _, children = sandbox_of(stet)
        for pid in children[1:]:
            time.sleep(0.01)
            os.kill(pid, sign)
            hit = True
    out, err = p.communicate(timeout=60)
    assert hit, "too fast for the test"
    expected = ["EIO"] if sign == signal.SIGKILL else ["done"]
    assert out.decode().split() == expected + ["done", "done"], err


def test_deep_and_wide(stet, work):
    """Deeper than there are descriptors as a rule; wider than is read at once."""
    at = os.open(work, os.O_RDONLY)
    os.mkdir("d", dir_fd=at)
    for name in ["d"] + ["s"] * 1500:
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
        os.mkdir("s", dir_fd=at)
    os.close(at)
    wide = work / "w" / "below"
    wide.mkdir(parents=True)
    for i in range(9000):
        (wide / f"{i:0200}").touch()
    (wide / "sub").mkdir()
    script = r"""
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(rename("d", "e"), rename("w", "v"), len(os.listdir("v/below")))
n = 0
os.chdir("e")
while os.path.exists("s"):
    os.chdir("s"); n += 1
print(n)
"""
    try:
        r = inside(stet, work, script).ok()
        assert r.out == "done done 9001\n1501\n"
    finally:
        subprocess.run(["rm", "-rf", str(work / "d")], check=True)


@pytest.mark.skipif(not ROOT, reason="impossible here: nobody else may look at PID 1")
def test_what_pid_1_holds(stet, work, tree):
    """No directory in it, working directory or root leads anywhere but into the view."""
    tree(work, {"d": {"f": "1"}})
    script = r"""
print(rename("d", "e"), flush=True)
sys.stdin.read()
"""
    p = stet.popen("run", "-q", "--", "/usr/bin/python3", "-c", PRELUDE + script, cwd=work,
                   stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"done\n"
    wait_until(lambda: sandbox_of(stet)[0])
    pid, children = sandbox_of(stet)
    mounts = set()
    for one in [pid] + children:
        with contextlib.suppress(OSError):  # one that has just ended
            with open(f"/proc/{one}/mountinfo", encoding="utf-8", errors="replace") as f:
                mounts |= {line.split()[0] for line in f}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        name = f"/proc/{pid}/fd/{fd}"
        if not os.path.isdir(name):
            continue
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
            info = dict(line.split(":", 1) for line in f)
        if info["mnt_id"].strip() not in mounts:  # the upper of a layer on another mount, alone
            assert os.path.samefile(name, name + "/..") and os.readlink(name) == "/"
            with pytest.raises(OSError, match="Read-only"):
                os.mkdir(name + "/made")
    p.communicate(timeout=30)
