# SPDX-License-Identifier: Apache-2.0
"""No form of a path, in no call that stet answers, reaches what the kernel itself would not.

Each row is a call with its paths. A rename is made twice: of a directory, which stet answers, and of
a file beside it, which the kernel does. Both must say the same and move to the same place, and
outside nothing may have changed, by time or name. An exec is compared with one that nobody judges, a link
by git with one by somebody else. Where a magic link is on the way stet may say EXDEV, too: a
caller then copies.
"""
import os
import re
import shutil
import subprocess
import tempfile

import pytest
from stetlib import differences, digest

NEEDS = "ext4"
SANITIZED_APART = True
ROOT = os.geteuid() == 0
LONG = bool(os.environ.get("STET_LONG"))

UP = "/.." * 40
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
NOFOLLOW, EMPTY = 0x100, 0x1000
OF_PID_1 = 69  # what is open as its directory in /proc

# Every call that genfilter.c hands to stet (tests/meta/test_wall.py compares), with its flags.
RENAMES = [("rename", 0), ("renameat", 0), ("renameat2", 0), ("renameat2", NOREPLACE),
           ("renameat2", EXCHANGE), ("renameat2", WHITEOUT)]
EXECS = [("execve", 0), ("execveat", 0), ("execveat", NOFOLLOW), ("execveat", EMPTY)]
LINKS = [("link", 0)]

# Whose magic links? And which?
PROCS = ["/proc/self", "/proc/thread-self", "/proc/{pid}", "/proc/self/task/{tid}",
         "/proc/{ppid}", "/proc/{child}", "/proc/{child}/task/{child}", "/proc/1",
         "/proc/1/task/1", "/proc/./self", "//proc//self", "/proc/self/../self",
         "/proc/1/../self"]
MAGIC = [f"fd/{n}" for n in range(65)] + ["cwd", "root", "exe", "map_files/{map}", "ns/mnt"]
FEW = MAGIC if LONG else MAGIC[:20] + MAGIC[65:]

# Names of directory %s, and of others.
FORMS = [
    "%s", "/%s", "//%s", "/.%s", "/..%s", f"{UP}%s", f"{UP}/.//.%s", "%s/.", "%s//", "%s/./.",
    "%s/../outside", "/tmp/..%s", "/usr/bin/../..%s", "/proc/..%s", "/proc/sys/user/../../..%s",
    "/dev/..%s", "/dev/pts/../..%s", "/sys/..%s", "../outside", "./../outside",
    ".././/outside/", "../../home/outside", "../outside/sub/..", "up/outside", "abs", "./abs",
    "abs/.", "rel", "deep/rel", "chain", "loop", "dangling", "file", "abs/../outside",
    "rootlink%s", "rootlink/..%s", "no/such/way", "", ".", "..", "/", "/proc", "/dev",
    "/dev/fd", "/proc/sys/user", "/sys", f"/{'./' * 1900}%s", f"{'/' * 3900}%s", "x" * 255,
    "x" * 256, "x/" * 2000, "\x7f", "/proc/self/fd", "/proc/self", "/proc/1", "/proc/self/fdinfo",
    f"/proc/self/net{UP}%s", f"/proc/mounts{UP}%s", f"/dev/stdin{UP}%s", f"/dev/stdout{UP}%s",
]
# What links in the workspace lead to; %d: the number of a descriptor.
PLANTED = ["/proc/self/fd/%d", f"/proc/self/fd/%d{UP}", "/dev/fd/%d", f"/dev/fd/%d{UP}",
           f"/proc/1/fd/%d{UP}", f"/proc/thread-self/fd/%d{UP}"]
# Where a call may begin, and what from there.
DIRFDS = [("path", "."), ("dir", "."), ("path", ".."), ("path", "../outside"), ("path", "/"),
          ("path", "/proc"), ("path", "/proc/self"), ("path", "/proc/1"),
          ("path", "/proc/self/fd"), ("path", "/proc/self/fdinfo"), ("path", "/proc/sys/user"),
          ("path", "/sys"), ("path", "/dev"), ("path", "/dev/pts"), ("path", "/tmp"),
          ("path", "/usr/bin"), ("link", "abs"), ("link", "/proc/self/cwd"),
          ("link", "/proc/self/root"), ("link", "/proc/1/root"), ("file", "file"),
          ("path", "file"), ("pipe", ""), ("memfd", ""), ("socket", ""), ("pidfd", ""),
          ("gone", "")]
FROM_DIRFD = ["", ".", "..", "../outside", f"{UP[1:]}%s", "%s", "outside", "home/outside",
              "self/cwd/../outside", f"self/root{UP}%s", f"root{UP}%s", f"cwd{UP}%s",
              f"fd/9{UP}%s", f"fd/10{UP}%s", f"9{UP}%s", f"10{UP}%s", f"../9{UP}%s"]
# A user may change his root only where he is root.
ASCEND = [] if ROOT else ["userns"]
# As whom, or where from: what is done before.
CALLERS = {
    "thread": ["thread"],
    "chroot": [*ASCEND, "chroot .."],
    "chroot without proc": [*ASCEND, "chroot .", "chdir /"],
    "root left behind": [*ASCEND, "chroot sub"],
    "namespaces": ["userns"],
    "bind mount": ["userns", "bind ../outside sub", "chdir sub"],
    "bind mount of root": ["userns", "bind / sub"],
    "chroot in a bind mount": ["userns", "bind / sub", "chroot sub"],
    "tmpfs over proc": ["userns", "tmpfs /proc"],
    "links over proc": ["userns", "bind links /proc"],
    "processes": ["userns", "pidns"],
}
# Root's own procfs is guarded, and so he may mount no other.
if not ROOT:
    CALLERS |= {"own proc": ["userns", "pidns", "proc /proc"],
                "another proc": ["userns", "pidns", "proc sub"]}
# What rename(2) says of names at the end: as in a plain directory. v is a directory, f a file.
ENDS = [("v/", "m"), ("v", "m/"), ("v//", "m//"), ("v/.", "m"), ("v/..", "m"), ("v", "m/."),
        ("v", "m/.."), ("v", "v"), ("v", "v/sub"), ("v", "v/sub/deep/m"), ("v/sub", "v"),
        ("v", "full"), ("v", "empty"), ("v", "f"), ("f/", "m"), ("f", "m/"), ("v", "."),
        (".", "m"), ("v", ".."), ("..", "m"), ("v", ""), ("", "m"),
        ("v", "none/m"), ("none", "m"), ("v", "f/m"), ("f/v", "m"), ("v", "m" * 255),
        ("v", "m" * 256), ("./" * 2047 + "v", "m"),
        ("./" * 2047 + "vv", "m"), ("v", "./" * 2047 + "m"), ("v", "./" * 2048 + "m"),
        ("v", "loop/m"), ("loop", "m"), ("lv", "m"), ("lv/", "m"), ("v", "lv"), ("v", "lm"),
        ("v", "lm/"), ("lv/sub", "m"), ("v", "lv/m"), ("v", "dangling/m")]


class Place:
    """A home with a workspace, beside it canaries; more of those elsewhere on the host."""

    def __init__(self, top, hidden):
        self.top, self.work, self.outside = str(top), f"{top}/work", f"{top}/outside"
        self.elsewhere = [tempfile.mkdtemp(prefix="stet-test-", dir="/tmp"), hidden]
        if ROOT:
            self.elsewhere.append(tempfile.mkdtemp(prefix="stet-test-", dir="/"))
        for d in (self.work, self.outside, f"{self.outside}/sub", f"{self.work}/sub", hidden,
                  f"{self.work}/deep", f"{self.work}/links/self/fd"):
            os.makedirs(d, exist_ok=True)
        for target, name in ((f"{self.outside}", "abs"), ("../outside", "rel"), ("abs", "chain"),
                             ("../../outside", "deep/rel"), ("..", "up"), ("loop", "loop"),
                             ("no/such", "dangling"), ("/", "rootlink")):
            os.symlink(target, f"{self.work}/{name}")
        for n in range(8, 16):
            os.symlink(self.outside, f"{self.work}/links/self/fd/{n}")
        with open(f"{self.work}/file", "wb"):
            pass

    def all(self):
        return [self.work, self.outside, *self.elsewhere]

    def clear(self):
        for d in self.elsewhere:
            shutil.rmtree(d, ignore_errors=True)


class Rows:
    """Lines for the probe, and what its answers are about."""

    def __init__(self, place):
        self.place, self.lines, self.rows = place, [], {}

    def do(self, *words):
        self.lines.append("\t".join(map(str, words)))

    def rename(self, old, new, *, out=None, how=("rename", 0), may=(), dirs=("cwd", "cwd")):
        """None: a plain name in the workspace. Makes what is renamed."""
        out, n = out or self.place.outside, len(self.rows)
        at = [self.place.work if form is None else out for form in (old, new)]
        self.rows[str(n)] = (*how, *dirs, old, new, out, tuple(may))
        # An empty directory needs nothing that could not be moved.
        os.mkdir(f"{at[0]}/v{n}")
        if old is not None and new is not None:
            os.mkdir(f"{at[0]}/v{n}/x")
        os.close(os.open(f"{at[0]}/f{n}", os.O_CREAT))
        if how[1] == EXCHANGE:
            os.mkdir(f"{at[1]}/m{n}")
            os.close(os.open(f"{at[1]}/g{n}", os.O_CREAT))
        for kind, a, b in (("d", "v", "m"), ("f", "f", "g")):
            self.do("call", f"{n}{kind}", *how, dirs[0], below(old, out, f"{a}{n}"), dirs[1],
                    below(new, out, f"{b}{n}"))

    def both_ways(self, form, **kw):
        """From there to there, out of it, and into it."""
        self.rename(form, form, **kw)
        self.rename(form, None, **kw)
        self.rename(None, form, **kw)

    def call(self, how, dirfd, path, second=""):
        n = len(self.rows)
        # Which descriptors PID 1 has is another matter each time; nobody gets at them.
        may = ("EACCES", "ENOENT") if path.startswith("/proc/1/") or dirfd == OF_PID_1 else ()
        self.rows[str(n)] = (*how, dirfd, path, second, may)
        self.do("call", n, *how, dirfd, path, "cwd", second)

    def write(self, path):
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write("\n".join(self.lines) + "\n")
        return path


def below(form, out, name):
    if form is None:
        return name
    form = form.replace("%s", out)
    return f"{form}/{name}" if form else name


# --- the tables, unfolded ---

def magic(r):
    """Every magic link of every process, for every canary."""
    for proc in PROCS:
        for link in FEW:
            r.both_ways(f"{proc}/{link}{UP}%s", may=["EXDEV"])
    for link in FEW:
        r.rename(f"/proc/self/{link}", None, may=["EXDEV"])
        r.rename(None, f"/proc/self/{link}", may=["EXDEV"])
        for out in r.place.elsewhere:
            r.both_ways(f"/proc/self/{link}{UP}%s", out=out, may=["EXDEV"])
        if ROOT:
            for pid in (1, os.getpid()):
                for way in ("root", "cwd/../../../../../../../../.."):
                    r.both_ways(f"/proc/self/{link}/../../{pid}/{way}%s", may=["EXDEV"])


def every_call(r):
    for how in RENAMES:
        for link in MAGIC:
            r.both_ways(f"/proc/self/{link}{UP}%s", how=how, may=["EXDEV"])


def forms(r):
    for how in RENAMES:
        for form in FORMS:
            r.both_ways(form, how=how, may=["EXDEV"] if how[1] == WHITEOUT or "proc" in form else [])


def planted(r):
    for i, text in enumerate(PLANTED):
        for n in range(24 if LONG else 16):
            r.do("symlink", text % n, f"planted{i}-{n}")
            r.do("symlink", f"planted{i}-{n}", f"chain{i}-{n}")
            for name in (f"planted{i}-{n}", f"chain{i}-{n}", f"deep/../planted{i}-{n}"):
                r.both_ways(f"{name}{UP}%s", may=["EXDEV"])
                r.both_ways(f"{name}%s", may=["EXDEV"])


def dirfds(r):
    for i, (kind, path) in enumerate(DIRFDS):
        r.do("fd", 60 + i, kind, path)
    r.do("fd", 9, "path", ".")
    for fd in [*range(60, 60 + len(DIRFDS)), -1, 99, 9, 10, 0, 1, 2]:
        for form in FROM_DIRFD:
            r.both_ways(form, how=("renameat", 0), dirs=(fd, fd), may=["EXDEV"])
            if form.startswith((UP[1:], "..")):
                r.both_ways(form, how=("renameat2", EXCHANGE), dirs=(fd, fd), may=["EXDEV"])


def callers(r, steps):
    r.do("begin")
    for step in steps:
        r.do(*step.split(" "))
    for form in FORMS:
        if len(form) < 300:
            r.both_ways(form, may=["EXDEV"])
    for link in FEW:
        r.both_ways(f"/proc/self/{link}{UP}%s", may=["EXDEV"])
        r.rename(f"/proc/1/{link}{UP}%s", f"/proc/1/{link}{UP}%s", may=["EXDEV"])
    r.do("end")


def programs(r):
    """What is executed: a program, one that is none, and one that only the host has."""
    none = f"{r.place.outside}/none"
    for path, text in ((none, "text"), (f"{r.place.elsewhere[0]}/prog", "#!/bin/true\n"),
                       (f"{r.place.elsewhere[1]}/none", "text")):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    os.chmod(f"{r.place.elsewhere[0]}/prog", 0o755)
    return ["/usr/bin/true", none, f"{r.place.elsewhere[0]}/prog", f"{r.place.elsewhere[1]}/none"]


def execs(r):
    targets = programs(r)
    for i, (kind, path) in enumerate(DIRFDS + [("path", "/usr/bin/true"), ("file", "/usr/bin/true")]):
        fd = OF_PID_1 if path == "/proc/1" else 70 + i
        r.do("fd", fd, kind, path)
        for how in EXECS[1:]:
            r.call(how, fd, "")
            for form in FROM_DIRFD:
                r.call(how, fd, form.replace("%s", targets[0]))
    for target in targets:
        for how in EXECS if target == targets[0] else EXECS[:1]:
            for proc in PROCS if how == EXECS[0] else PROCS[:1]:
                for link in FEW:
                    r.call(how, "cwd", f"{proc}/{link}{UP}{target}")
        for form in FORMS:
            if "%s" in form:
                r.call(EXECS[0], "cwd", form.replace("%s", target))
    for link in MAGIC:
        r.call(EXECS[0], "cwd", f"/proc/self/{link}")
        r.call(EXECS[0], "cwd", f"/dev/{link}")


def links(r):
    """link(2) by a program called git looks at the first name."""
    targets = programs(r)[1:]
    for target in targets:
        for proc in PROCS:
            for link in FEW:
                r.call(LINKS[0], "cwd", f"{proc}/{link}{UP}{target}", f"g{len(r.rows)}")
        for form in FORMS:
            if "%s" in form:
                r.call(LINKS[0], "cwd", form.replace("%s", target), f"g{len(r.rows)}")


def raced(r, how, dirfd, old, new):
    """One that nobody has moved yet; %s in either is where it is to be found, or to go."""
    out, n = r.place.outside, len(r.rows)
    os.mkdir(f"{out if '%s' in old else r.place.work}/v{n}")
    if how[1] == EXCHANGE:
        os.mkdir(f"{out if '%s' in new else r.place.work}/m{n}")
    r.call(how, dirfd, old.replace("%s", out) + f"v{n}", new.replace("%s", out) + f"m{n}")


def races(r):
    """Whatever wins: nothing outside changes."""
    times = 200 if LONG else 6
    # From the host's /proc/sys/user root comes out by somebody's root, a user by its mount.
    climb = f"/../../{os.getpid()}/root" if ROOT else UP
    for n in [*range(7, 16), "cwd", "root"]:
        link = f"/proc/self/{'fd/' if isinstance(n, int) else ''}{n}"
        for kind, a, b, form in (
                ("memory", link + climb, "/" * len(link + climb), "@%s/"),
                ("memory", link, "/" * len(link), f"@{climb}%s/"),
                ("link", link + climb, "/", "flip%s/"),
                ("link", link, "/usr", f"flip{climb}%s/"),
                ("link", "/proc/1/root", "/", "flip%s/")):
            r.do("begin")
            r.do("flip", kind, a, b)
            for i in range(times):
                raced(r, RENAMES[i % len(RENAMES)], "cwd", form, form)
                raced(r, RENAMES[0], "cwd", "", form)
                raced(r, RENAMES[0], "cwd", form, "")
                r.call(EXECS[0], "cwd", form.replace("%s/", "/usr/bin/true"))
            r.do("still")
            r.do("end")
    for kind, a, b in (("fd", ".", "/proc/sys/user"), ("fd", "../outside", "/proc/self"),
                       ("cwd", r.place.work, "/proc/self/fd"), ("cwd", "../outside", "/proc/1"),
                       ("fd", "/", "/proc/self/root")):
        r.do("begin")
        r.do("flip", kind, a, b)
        for i in range(3 * times):
            for form in (f"..{UP}%s/", f"../9{UP}%s/", f"9{UP}%s/", f"../root{UP}%s/"):
                dirfd = 50 if kind == "fd" else "cwd"
                raced(r, RENAMES[1 + i % 4], dirfd, form, form)
                raced(r, RENAMES[1], dirfd, form, "%s/")
                raced(r, RENAMES[1], dirfd, "%s/", form)
        r.do("still")
        r.do("end")


# --- what is done with them ---

@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    """The gate is there, or not, as a test says; no rule counts."""
    stet.rules_off()
    stet.ready()


@pytest.fixture(name="place")
def fixture_place(request, home, stet):
    """In the home, where the state is; on another filesystem, whose layers PID 1 looks after."""
    top = home
    if getattr(request, "param", "home") == "mount":
        if not ROOT and not os.environ.get("STET_TEST_FS_DIR"):
            pytest.skip("impossible here: only root can prepare mounts")
        top = tempfile.mkdtemp(dir=request.getfixturevalue("filesystem")("ext4"))
    place = Place(top, f"{stet.state}/canary")
    yield place
    place.clear()
    if top != home:
        shutil.rmtree(top)


LOOSE, GATE = ["--no-policy"], []
TABLES = [magic, every_call, forms, planted, dirfds]
# Whatever is different between these, it is which descriptors there are.
RUNS = [(t, "home", LOOSE) for t in TABLES] + [(every_call, "home", GATE), (every_call, "mount", LOOSE)]
if LONG:
    RUNS = [(t, p, g) for t in TABLES for p in ("home", "mount") for g in (LOOSE, GATE)]


def answers(r):
    assert r.err == "", r.err[:1000]
    found = dict(line.split("\t", 1) for line in r.ok().out.splitlines() if "\t" in line)
    assert "setup" not in found, r.out[:1000]
    return found


def moved(changes, names):
    """{number: where from, where to} of the victims with these names."""
    found = {}
    for path, kind in changes.items():
        parent, name = os.path.split(os.fsdecode(path))
        if name[0:1] in names and name[1:].isdigit() and kind in "AD":
            found.setdefault(name[1:], set()).add((kind, names.index(name[0]), parent))
    return found


def run(stet, probe, place, rows, opts, program=None):
    """What the probe says, and what has then changed inside; it is rolled back."""
    before = {d: digest(d) for d in place.all()}
    job = rows.write(f"{stet.home}/job")
    got = answers(stet("run", "-q", *opts, "--on-success", "keep", "--", program or probe,
                       f"paths={job}", cwd=place.work, timeout=400))
    check(place, before, rows)
    changes = stet.changes(cwd=place.work) if stet.transactions() else {}
    if changes:
        stet("rollback", "-q", cwd=place.work).ok()
        check(place, before, rows)
    return got, changes


def check(place, before, rows):
    """Nothing is different outside; what is bears the number of its row."""
    found = [(d, line) for d in place.all() for line in differences(before[d], digest(d))]
    guilty = {n: rows.rows[n] for _, line in found
              for n in re.findall(r"^(?:added|gone): b'.(\d+)'", line) if n in rows.rows}
    assert not found, f"outside has changed: {found[:5]}\n{shown(list(guilty.items()))}"


def judge(rows, got, changes):
    """The rows in which the two differ."""
    dirs, files = moved(changes, "vm"), moved(changes, "fg")
    bad = []
    for n, row in rows.rows.items():
        d, f = got.get(n + "d"), got.get(n + "f")
        if not (d == f or d in row[-1]) or d is None:
            bad.append((n, row, f"directory {d}, file {f}"))
        elif d == f and dirs.get(n) != files.get(n):
            bad.append((n, row, f"{d}: directory {dirs.get(n)}, file {files.get(n)}"))
        elif d != "ok" and dirs.get(n):
            bad.append((n, row, f"{d}, but {dirs.get(n)}"))
    return bad


def shown(bad):
    lines = [str(b).replace(UP, "{UP}")[:300] for b in bad]
    return "\n".join([f"{len(bad)} rows", *lines[:20]])


@pytest.mark.parametrize("table,place,gate", RUNS, indirect=["place"],
                         ids=lambda v: v.__name__ if callable(v) else "".join(v) or "gate")
def test_renames(stet, probe, place, table, gate):
    rows = Rows(place)
    table(rows)
    bad = judge(rows, *run(stet, probe, place, rows, gate))
    assert not bad, shown(bad)


@pytest.mark.parametrize("caller", CALLERS)
def test_callers(stet, probe, place, caller):
    rows = Rows(place)
    callers(rows, CALLERS[caller])
    bad = judge(rows, *run(stet, probe, place, rows, LOOSE))
    assert not bad, shown(bad)


def differing(rows, mine, natural):
    return [(n, row, f"{mine.get(n)}, by itself {natural.get(n)}") for n, row in rows.items()
            if mine.get(n) is None or mine[n] not in (natural.get(n), *row[-1])]


def test_execs(stet, probe, place):
    rows = Rows(place)
    execs(rows)
    natural, _ = run(stet, probe, place, rows, ["--no-policy"])
    judged, _ = run(stet, probe, place, rows, [])
    bad = differing(rows.rows, judged, natural)
    assert not bad, shown(bad)


def test_links_by_git(stet, probe, place, home):
    """It may hear EXDEV where it could link, and what everybody hears anywhere else."""
    rows = Rows(place)
    links(rows)
    shutil.copy(probe, home / "git")
    natural, _ = run(stet, probe, place, rows, ["--no-policy"])
    told, _ = run(stet, probe, place, rows, ["--no-policy"], home / "git")
    bad = [b for b in differing(rows.rows, told, natural)
           if (told.get(b[0]), natural.get(b[0])) != ("EXDEV", "ok")]
    assert not bad, shown(bad)


@pytest.mark.parametrize("place,gate", [("home", LOOSE), ("mount", GATE)], indirect=["place"],
                         ids=["home", "mount"])
def test_races(stet, probe, place, gate):
    rows = Rows(place)
    races(rows)
    got, _ = run(stet, probe, place, rows, gate)
    assert set(got) == set(rows.rows)


def ends(place):
    """A directory for each row, and the calls made there."""
    rows, lines = {}, []
    for how in RENAMES:
        for old, new in ENDS:
            n = str(len(rows))
            rows[n] = (*how, old, new, ("EXDEV", "EINVAL") if how[1] == WHITEOUT else ())
            for d in ("v/sub/deep", "full/x", "empty"):
                os.makedirs(f"{place}/{n}/{d}")
            os.close(os.open(f"{place}/{n}/f", os.O_CREAT))
            for target, name in (("loop", "loop"), ("v", "lv"), ("m", "lm"), ("no", "dangling")):
                os.symlink(target, f"{place}/{n}/{name}")
            lines.append(f"chdir\t{place}/{n}")
            lines.append(f"call\t{n}\t{how[0]}\t{how[1]}\tcwd\t{old}\tcwd\t{new}")
    return rows, "\n".join(lines) + "\n"


def test_ends(stet, probe, work, home):
    """All that rename(2) says of last names in a plain directory, it says inside."""
    results = []
    for place, opts in ((work, ["run", "-q", "--no-policy", "--"]), (home / "plain", None)):
        place.mkdir(exist_ok=True)
        rows, job = ends(place)
        (home / "job").write_text(job)
        argv = ["sh", "-c", "$0 paths=$1; cd $2; find . | LC_ALL=C sort", probe, home / "job", place]
        r = stet(*opts, *argv, cwd=work) if opts else subprocess.run(
            argv, stdout=subprocess.PIPE, check=True, encoding="utf-8")
        lines = (r.out if opts else r.stdout).splitlines()
        tree = {}
        for line in lines:
            if line.startswith("./"):
                tree.setdefault(line.split("/")[1], []).append(line)
        results.append(({k: v for k, _, v in (x.partition("\t") for x in lines)}, tree))
    (mine, inside), (natural, plain) = results
    bad = differing(rows, mine, natural) + [
        (n, rows[n], inside[n], plain[n]) for n in rows
        if inside[n] != plain[n] and mine[n] == natural[n]]
    assert not bad, shown(bad)
