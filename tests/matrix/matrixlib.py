# SPDX-License-Identifier: Apache-2.0
"""Cells of the matrix: made, carried out, judged.

A verb takes the host from a base to a goal: a commit from what the command began with to what
the command left, an undo back. With a host that is somewhere else by then (`theirs`) there are
two right ends: refused with a path named that the host has changed, and not a byte or time
other than before; or done, so that what the host had changed is as the host left it, and all
else as in the goal. Without a change of the host there is one: done.
"""
import ctypes
import fnmatch
import itertools
import os
import random
import re
import stat
import subprocess
from collections import namedtuple

from rows import COMMANDS, EDITS, NONE, RIGHTFUL, SEQUENCES, TREE
from stetlib import Stet, make_tree

OLD = 1_600_000_000_000_000_000
CONFLICT = 3
# What every command changes besides its own paths, and verbs of a part.
REST = ["b/c"]
UNDO_PART = ("undo-some", "undo-rest")
EXCHANGE = 2
LIBC = ctypes.CDLL(None, use_errno=True)

Thing = namedtuple("Thing", "what mode xattrs mtime ino")
Cell = namedtuple("Cell", "command edit sequence")
Finding = namedtuple("Finding", "place cell kind text")


class NoCell(Exception):
    """The edit cannot be made in this tree."""


class Wrong(Exception):
    """A verdict: the kind of it, and what was seen."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


# --- trees ---

def thing(path):
    st = os.lstat(path)
    xattrs = tuple((n, os.getxattr(path, n, follow_symlinks=False))
                   for n in sorted(os.listxattr(path, follow_symlinks=False)))
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            what = f.read()
    elif stat.S_ISLNK(st.st_mode):
        what = ("link", os.readlink(path))
    else:
        what = stat.S_IFMT(st.st_mode)
    return Thing(what, stat.S_IMODE(st.st_mode), xattrs, st.st_mtime_ns, st.st_ino)


def snap(top):
    """{relative path: Thing}."""
    seen = {"": thing(top)}
    for base, dirs, files in os.walk(top):
        for name in dirs + files:
            full = os.path.join(base, name)
            seen[os.path.relpath(full, top)] = thing(full)
    return seen


def plant(where):
    """A tree of old files: mtimes of long ago, ctimes older than any run."""
    make_tree(where, TREE)
    for path in snap(where):
        os.utime(os.path.join(where, path), ns=(OLD, OLD), follow_symlinks=False)


def is_dir(t):
    return t is not None and t.what == stat.S_IFDIR


def related(p, q):
    return not p or not q or p == q or p.startswith(q + "/") or q.startswith(p + "/")


def touched(base, other, times=False):
    """Paths that differ. Of what is the top of the tree only the attributes count."""
    def look(t):
        if t is None:
            return None
        return t[:3] + ((t.mtime,) if times and not is_dir(t) else ())
    return {p for p in base.keys() | other.keys() if look(base.get(p)) != look(other.get(p))}


def links(tree):
    """Which names are one file: {path: other names of it}."""
    by = {}
    for p, t in tree.items():
        if not is_dir(t):
            by.setdefault(t.ino, set()).add(p)
    return {p: frozenset(names) for names in by.values() for p in names}


def show(t):
    if t is None:
        return "nothing"
    what = t.what if isinstance(t.what, (bytes, tuple)) else "directory"
    return f"{what} {t.mode:o} {dict(t.xattrs) or ''}".rstrip()


# --- verdicts ---

def same(before, after, times=True):
    """Is it the very same? The paths that are not, with the attributes in question."""
    found = []
    for p in sorted(before.keys() | after.keys()):
        a, b = before.get(p), after.get(p)
        if a is None or b is None:
            found.append(f"{p} is {'new' if a is None else 'gone'}")
            continue
        names = [n for n in Thing._fields if getattr(a, n) != getattr(b, n)
                 and (times or n != "mtime" or not is_dir(a))]
        if names:
            found.append(f"{p or '.'}: " + ", ".join(
                f"{n} {getattr(a, n)} -> {getattr(b, n)}" for n in names))
    return found


def attributes(t):
    """The parts of a thing that can be changed one by one."""
    if t is None:
        return {"what": None}
    return {"what": t.what, "mode": t.mode, **{f"xattr {n}": v for n, v in t.xattrs}}


def judge_done(base, theirs, goal, ours, after):
    """The verb says that it is done. @ours: the paths that the transaction has to do with."""
    names, now_names = links(theirs), links(after)
    for p in sorted(base.keys() | theirs.keys() | goal.keys() | after.keys()):
        others = [attributes(goal.get(q)) for q in names.get(p, ())]
        b, t, g, a = (attributes(tree.get(p)) for tree in (base, theirs, goal, after))
        for name in sorted(b.keys() | t.keys() | g.keys() | a.keys()):
            was, host, want, now = (x.get(name) for x in (b, t, g, a))
            if name == "mode" and now is None:
                continue  # that it is not there is said by "what"
            if name != "what" and any(now == other.get(name) != was for other in others):
                continue  # attributes are those of all names of a file
            if p not in theirs and p in ours and any(
                    q in base and after[q].ino == base[q].ino == theirs.get(q, base[q]).ino
                    for q in now_names.get(p, ()) if q in ours):
                continue  # a new name of a file that has stayed has what the host has written to it
            text = f"{name} of {p or '.'}: {was!r}, host {host!r}, wanted {want!r}, is {now!r}"
            if host != was:
                if now != host and (t["what"] is not None or name == "what"):
                    raise Wrong("the host's change is lost", text)
            elif now != want and not (name != "what" and t["what"] != b["what"]):
                raise Wrong("not what was wanted", text)
    touch = touched(base, theirs, True) | touched(base, goal, True) | ours
    for p, t in theirs.items():
        if p in after and not any(related(p, q) for q in touch if q) and \
                (after[p].ino != t.ino or after[p].mtime != t.mtime and not is_dir(t)):
            raise Wrong("another inode or time", p)


def judge_links(base, theirs, to, after):
    """Names that are one file are one in the end, if the host has nothing to do with them."""
    is_now = links(after)
    host = touched(base, theirs, True)
    for p, names in links(to).items():
        if not names & host and p in is_now and is_now[p] - host != names:
            raise Wrong("hard links", f"{sorted(names)} are {sorted(is_now[p])}")


NOTHING_THERE = re.compile(r"changed nothing at|no commit of .* changed these paths")
NAMED = re.compile(r"^  (\S.*?)  +\S", re.M)


def relinked(base, other):
    """Names of files that have got or lost another name."""
    was, to = links(base), links(other)
    return {p for p in was if was[p] != to.get(p, was[p])}


def concerns_of(script, first, full):
    """Paths that a transaction has to do with, whatever it made of them."""
    return touched(first, full) | relinked(first, full) | \
        set(re.findall(r"\b[ab]/[\w/]+", script))


def judge_refused(base, theirs, ours, after, text):
    """@ours: the paths that the transaction has to do with."""
    moved = same(theirs, after)
    if moved:
        raise Wrong("refused, and changed all the same", "; ".join(moved))
    host = touched(base, theirs, True) | relinked(base, theirs)
    if not any(related(p, q) for p in host if p for q in ours if q) and \
            not any(p == "" for p in host & ours):
        raise Wrong("refused without a reason", text)
    named = [os.path.normpath(n) for n in NAMED.findall(text)]
    if not any(related(n, p) for n in named for p in host if p):
        raise Wrong("refused, and the path is not named", text)


def judge(base, theirs, goal, ours, after, result):
    """True: done, False: refused. Raises Wrong."""
    text = (result.out + result.err).strip()
    # A path that was named for a part, and is now as the command left it, or leads elsewhere.
    if result.rc == 1 and NOTHING_THERE.search(text) and not same(theirs, after):
        return False
    if result.rc == CONFLICT:
        judge_refused(base, theirs, ours, after, text)
        return False
    if result.rc != 0:
        raise Wrong("failed", f"status {result.rc}: {text}")
    judge_done(base, theirs, goal, ours, after)
    return True


# --- what is done ---

def exchange(top, a, b):
    a, b = (os.fsencode(os.path.join(top, p)) for p in (a, b))
    if LIBC.renameat2(-100, a, -100, b, EXCHANGE) != 0:
        raise NoCell


def host_does(stet, top, script):
    """An edit. NoCell if it cannot be made."""
    kind, _, rest = script.partition(": ")
    if kind in ("stet", "stet, undone"):
        other_does(stet, top, rest, kind != "stet")
        return
    # `test` and the like may come before an exchange.
    shell, _, pair = script.rpartition("exchange ")
    shell = shell if pair and "exchange " in script else script
    if shell:
        r = subprocess.run(["sh", "-ec", shell], cwd=top, check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        if r.returncode:
            raise NoCell
    if shell != script:
        exchange(top, *pair.split())


def other_does(stet, top, script, undone):
    name = f"o{next(stet.numbers)}"
    r = stet("run", "--no-policy", "--quiet", "--name", name, "--", "sh", "-ec", script, cwd=top)
    if r.rc:
        stet("rollback", name, "--quiet", cwd=top)
        raise NoCell
    for verb in ("commit", "undo") if undone else ("commit",):
        r = stet(verb, name, *(["--accept-risky"] if verb == "commit" else []), "--quiet", cwd=top)
        if "changed nothing at" in r.err:
            raise NoCell  # there was no transaction of that name to be kept
        if r.rc:
            raise Wrong("failed", f"the other's {verb}: {r.err}")


def script_of(cell):
    return COMMANDS[cell.command][0] + "; echo made > b/c"


def start(stet, top, cell, name):
    """A run that has done its work, and goes on if the host is to edit meanwhile."""
    wait = "; read line || :" if cell.sequence.startswith("during") else ""
    p = stet.popen("run", "--no-policy", "--quiet", "--name", name, "--", "sh", "-ec",
                   f"{script_of(cell)}; echo READY{wait}", cwd=top, stdin=subprocess.PIPE)
    if p.stdout.readline() != b"READY\n":
        raise Wrong("failed", p.communicate()[1].decode())
    return p


def finish(p):
    err = p.communicate(b"\n", timeout=60)[1]
    if p.returncode:
        raise Wrong("failed", f"the run: {err.decode()}")


def do(stet, top, cell, name, step):
    """One verb of a sequence."""
    some = [f"./{p}" for p in COMMANDS[cell.command][1].split()]
    words = {"some": ["commit", name, "--accept-risky", "--", *some],
             "commit": ["commit", name, "--accept-risky"],
             "undo-some": ["undo", name, "--", *some],
             "rest": ["commit", name, "--accept-risky", "--", *REST],
             "undo-rest": ["undo", name, "--", *REST]}.get(step, [step, name])
    r = stet(*words, cwd=top)
    if "was committed as a whole" in r.err:
        raise NoCell  # what was chosen in a new directory can be committed alone, not undone
    return r


def prelude(stet, top, cell, name, edit):
    """The run and what comes before the edit. Gives the steps that are left."""
    steps = cell.sequence.split()
    p = start(stet, top, cell, name)
    if steps[0] == "during":
        try:
            edit()
        except BaseException:
            finish(p)
            raise
        finish(p)
        return steps[1:]
    finish(p)
    while steps[0] != "*":
        r = do(stet, top, cell, name, steps.pop(0))
        if r.rc:
            raise Wrong("failed", f"status {r.rc} before the edit: {r.err}")
    edit()
    return steps[1:]


def plain_goal(stet, cell):
    """What the command makes of the tree without stet: looked up, or made once."""
    if cell.command not in stet.goals:
        top = f"{stet.home}/plain{next(stet.numbers)}"
        plant(top)
        subprocess.run(["sh", "-ec", script_of(cell)], cwd=top, check=True)
        stet.goals[cell.command] = snap(top)
        subprocess.run(["rm", "-rf", top], check=True)
    return stet.goals[cell.command]


def parts_of(step, now, full, first, some):
    """What a verb makes of the host if nobody else is there: chosen paths, or all."""
    back = step.startswith("undo")
    to = first if back else full
    if step in ("rollback",):
        return now
    if step in ("commit", "redo", "undo"):
        return to
    goal = dict(now)
    for p in now.keys() | to.keys():
        if any(p == s or p.startswith(s + "/") for s in some):
            goal.pop(p, None)
            if p in to:
                goal[p] = to[p]
        elif not back and p not in now and any(s.startswith(p + "/") for s in some):
            goal[p] = to[p]  # a directory that is made for what was chosen in it
    return goal


class States:
    """Where the host is after each verb without an edit: a stack of what was done."""

    def __init__(self, first, full, some):
        self.first, self.full, self.some = first, full, some
        self.now, self.done, self.undone, self.gone = first, [], [], False

    def paths(self, verb):
        return REST if verb.endswith("rest") else self.some

    def step(self, verb):
        """(base, goal) of the verb."""
        base = self.now
        if verb == "rollback":
            self.gone = True
        elif verb == "undo" and self.gone:
            self.gone = False
        elif verb == "undo":
            self.undone.append(base)
            self.now = self.done.pop()
        elif verb == "redo":
            self.done.append(base)
            self.now = self.undone.pop()
        elif verb in UNDO_PART:
            self.undone.append(base)
            self.now = parts_of(verb, base, self.full, self.first, self.paths(verb))
            # What an undo of the rest goes to stays the same.
        else:
            self.done.append(base)
            self.undone.clear()
            self.now = parts_of(verb, base, self.full, self.first, self.paths(verb))
        return base, self.now


def run_cell(stet, cell):
    """Raises Wrong or NoCell."""
    name = f"m{next(stet.numbers)}"
    top = f"{stet.home}/w/{name}"
    plant(top)
    full, first = plain_goal(stet, cell), snap(top)
    states = States(first, full, COMMANDS[cell.command][1].split())
    for step in itertools.takewhile(lambda s: s not in ("*", "during"), cell.sequence.split()):
        states.step(step)
    base = {}

    def edit():
        base.update(snap(top))
        host_does(stet, top, EDITS[cell.edit])

    left = prelude(stet, top, cell, name, edit)
    if wrong := touched(states.now, base):
        raise Wrong("not what was wanted", f"before the edit: {sorted(wrong)}")
    for step in left:
        before = snap(top)
        was, to = states.step(step)
        goal = {p: base[p] if p in base and p not in touched(was, to) else t
                for p, t in to.items()}
        r = do(stet, top, cell, name, step)
        after = snap(top)
        if not judge(base, before, goal, concerns_of(script_of(cell), first, full), after, r):
            return
        if to is first or to is full:
            judge_links(base, before, to, after)
        # After the redo of a part, an undo is of the whole.
        back = was is not to and "nothing to commit" not in r.out + r.err and \
            not (step == "redo" and any(u in cell.sequence for u in UNDO_PART))
        if back and not there_and_back(stet, top, name, step, before, after,
                                       cell.edit == NONE):
            return
        base = {p: after[p] if p in after and not touched({p: t}, {p: after[p]}) else t
                for p, t in goal.items()}


BACK = {"commit": "undo", "some": "undo", "rest": "undo", "redo": "undo", "undo": "redo", "undo-some": "redo",
        "undo-rest": "redo"}


def there_and_back(stet, top, name, step, before, after, times):
    """The opposite, at once, leads to the very same tree; and again. @times: of directories, too."""
    for verb, goal in ((BACK[step], before), ("redo" if BACK[step] == "undo" else "undo", after)):
        r = stet(verb, name, cwd=top)
        if r.rc:
            raise Wrong(f"{verb} at once is refused", (r.out + r.err).strip())
        moved = same(goal, snap(top), times)
        if moved:
            raise Wrong(f"{verb} at once is not exact", "; ".join(moved))
        if step in UNDO_PART:
            return False
    return True


# --- many ---

def every_cell():
    for command, edit, sequence in itertools.product(COMMANDS, EDITS, SEQUENCES):
        yield Cell(command, edit, sequence)


def sample(n, seed):
    """So many of all, the same for the same seed; those without an edit always first."""
    cells = list(every_cell())
    bare = [c for c in cells if c.edit == NONE]
    rest = [c for c in cells if c.edit != NONE]
    if n >= len(cells):
        return cells
    r = random.Random(seed)
    few = r.sample(bare, min(len(bare), n // 5))
    return few + r.sample(rest, n - len(few))


def is_rightful(cell, kind):
    return any(fnmatch.fnmatch(cell.command, c) and fnmatch.fnmatch(cell.edit, e)
               and fnmatch.fnmatch(cell.sequence, s) and fnmatch.fnmatch(kind, k)
               for c, e, s, k in RIGHTFUL)


def new_stet(path, home):
    os.makedirs(f"{home}/w")
    stet = Stet(path, home)
    stet.goals, stet.numbers = {}, itertools.count(1)
    return stet


def finding(place, cell, e):
    """Of what was raised; what is no verdict is one, too."""
    return Finding(place, cell, getattr(e, "kind", type(e).__name__), getattr(e, "text", str(e)))


def check(stet, place, of):
    """What `stet check` has to say. @of: cells by the names of their transactions."""
    r = stet("check")
    if r.rc == 0:
        return []
    names = {t["id"]: t.get("name") for t in stet("list", "--all", "--json").json()["transactions"]}
    found = [(of.get(names.get(n)), line) for line in r.out.splitlines()
             for n in re.findall(r"^(t\d+):", line)]
    return [Finding(place, cell or Cell("*", "*", "*"), "stet check", line)
            for cell, line in found or [(None, r.out)]]


def remove(stet):
    """All that a journal of its own has come to; a layer's work directory keeps its owner out."""
    stet.settle()
    subprocess.run(["chmod", "-R", "u+rwX", stet.home], check=True)
    subprocess.run(["rm", "-rf", stet.home], check=True)


def run_batch(path, home, place, cells):
    """(how many there were, findings) of some cells with a journal of their own."""
    stet, done, found, of = new_stet(path, home), 0, [], {}
    for cell in cells:
        first = next(stet.numbers)
        try:
            run_cell(stet, cell)
            done += 1
        except NoCell:
            pass
        except (Wrong, OSError, AssertionError, subprocess.SubprocessError) as e:
            done += 1
            if not is_rightful(cell, getattr(e, "kind", "")):
                found.append(finding(place, cell, e))
        of.update((f"{k}{n}", cell) for n in range(first, next(stet.numbers)) for k in "mo")
        stet.end_all()
        stet.started.clear()
    found += check(stet, place, of)
    remove(stet)
    return done, found
