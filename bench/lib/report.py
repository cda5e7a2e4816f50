# SPDX-License-Identifier: Apache-2.0
"""Results as text: machine facts, tables, bars."""
import os
import platform
import re
import subprocess

from measure import quartiles, ratios
from rows import FASTER, net

VERSIONS = [("bwrap", ["bwrap", "--version"]), ("firejail", ["firejail", "--version"]),
            ("fuse-overlayfs", ["fuse-overlayfs", "--version"]),
            ("rsync", ["rsync", "--version"]), ("btrfs", ["btrfs", "--version"]),
            ("git", ["git", "--version"]), ("gcc", ["gcc", "--version"]),
            ("sqlite3", ["sqlite3", "--version"])]


def first_line(argv):
    try:
        r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
    except OSError:
        return "not installed"
    lines = [x for x in r.stdout.splitlines() if any(c.isdigit() for c in x)]
    named = [x for x in lines if argv[0] in x]
    words = next(iter(named + lines), "?").replace(")", " ").split()
    return next((w for w in words if w[0].isdigit() or w[0] == "v" and w[1:2].isdigit()),
                " ".join(words))


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def lacks_journal(path):
    """Is it an ext4 without one? fsync costs less there, and new files more after many deletions."""
    dev = os.stat(path).st_dev
    disk = os.path.realpath(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")
    try:
        with open(f"/proc/fs/ext4/{os.path.basename(disk)}/options", encoding="utf-8") as f:
            return "\ndata=" not in f.read()
    except OSError:
        return False


def filesystem(path):
    r = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", path],
                       stdout=subprocess.PIPE, text=True, check=False)
    text = " ".join(r.stdout.split()) or "unknown"
    return text + " (without a journal)" if lacks_journal(path) else text


def facts(where, uid, load):
    versions = ", ".join(f"{n} {first_line(a)}" for n, a in VERSIONS)
    return {"kernel": platform.release(), "processor": f"{os.cpu_count()} × {processor()}",
            "memory": f"{memory_gib():.0f} GiB", "filesystem": filesystem(where),
            "user": "ordinary user" if uid else "root",
            "load before and after": f"{load:.2f}, {os.getloadavg()[0]:.2f}",
            "programs": versions}


def ms(ns):
    v = ns / 1e6
    return f"{v:,.2f}" if v < 10 else f"{v:,.1f}" if v < 100 else f"{v:,.0f}"


def cell(s, name):
    m = s.median(name)
    return "–" if m is None else f"{ms(m)} ±{s.spread(name) * 100:.0f} %"


def table(head, lines):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(out)


def judge(bar, s):
    """(figure, spread, verdict)."""
    a, b = s.ns.get(bar.a), s.ns.get(bar.b) if bar.b else None
    if not a or bar.b and not b:
        return "–", "–", "not measured"
    if bar.b:
        low, mid, high = ratios(a, b)
        unit = " ×"
    else:
        low, mid, high = (x / 1e6 for x in quartiles(a))
        unit = f" {bar.unit}"
    good = mid >= bar.limit if bar.sense == FASTER else mid <= bar.limit
    edge = high >= bar.limit if bar.sense == FASTER else low <= bar.limit
    return (f"{mid:.2f}{unit}", f"{low:.2f} – {high:.2f}",
            "met" if good else "missed, within the spread" if edge else "**missed**")


def against(s, a, b):
    if a not in s.ns or b not in s.ns:
        return "–"
    low, mid, high = ratios(s.ns[a], s.ns[b])
    return f"{mid:.2f} ({low:.2f} – {high:.2f})"


def workload_tables(done, titles):
    names = list(titles)
    rows = [(r, s) for r, s in done if any(n in s.ns for n in names) and "native" in s.ns]
    if not rows:
        return []
    times = [[r.title] + [cell(s, n) for n in names] for r, s in rows]
    factors = []
    for r, s in rows:
        line = [r.title]
        for n in names:
            q = ratios(s.ns[n], s.ns["native"]) if n in s.ns else None
            line.append(f"{q[1]:.2f}" if q else "–")
        factors.append(line + [against(s, "stet", "overlay"),
                               against(s, net("stet"), net("overlay"))])
    return ["## Times (ms)", table(["", *titles.values()], times), "## Ratios to native",
            table(["", *titles.values(), "stet / bare overlay", "work only"], factors)]


def other_tables(done):
    out = []
    for r, s in done:
        if "native" in s.ns:
            continue
        out.append(table([r.title, getattr(r, "unit", "ms")], [[n, cell(s, n)] for n in [*s.ns, *s.missing]]))
    return ["## Other rows"] + out if out else []


HOW = """### How it is measured

Every round measures every variant once, in a shuffled order. A time is the median over the rounds \
from the spawn of the command to its end, everything included, ± half the distance between the \
quartiles. A ratio is the median of the rounds' own ratios, with the quartiles in brackets: read \
ratios rather than times. Bare overlay is one volatile kernel overlay over the same tree and nothing \
else: the limit of the design; "work only" leaves out the start-up of both, measured in the same \
rounds. bwrap and firejail write to the real tree; fuse-overlayfs is mounted beforehand, outside the \
time."""

# Written by hand: a new run keeps them.
FURTHER = "## Further measurements"
FINDINGS = "### Findings"


def section(text, heading):
    """The part of a page from its heading to the next one of that level or above; "" if there is
    none."""
    level = len(heading.split()[0])
    lines = text.splitlines()
    if heading not in lines:
        return ""
    begin = lines.index(heading)
    end = next((i for i in range(begin + 1, len(lines))
                if re.match(rf"#{{1,{level}}} ", lines[i])), len(lines))
    return "\n".join(lines[begin:end]).strip()


def render(done, titles, machine, quick, before=""):
    """The page: tables first. @before: the page as it was, whose findings are kept."""
    bars = []
    for r, s in done:
        for bar in r.goals():
            figure, spread, verdict = judge(bar, s)
            limit = f"{bar.sense} {bar.limit:g} {'×' if bar.b else bar.unit}"
            bars.append([r.title, bar.what, limit, figure, spread, verdict])
    notes = [f"- {r.title}, {n}: {why}" for r, s in done for n, why in s.missing.items()]
    parts = ["# Benchmark results",
             "Made by `make bench`. What the rows do is in `bench/lib/rows.py`; how they are "
             "measured, and what the figures say, is under *Discussion* at the end."]
    if quick:
        parts.append("**A quick run: small trees, few rounds. The figures mean little.**")
    parts += ["## Machine", table(["", ""], [[k, v] for k, v in machine.items()]),
              "## Bars", table(["row", "bar", "limit", "measured", "quartiles", ""], bars)]
    parts += workload_tables(done, titles) + other_tables(done)
    if notes:
        parts += ["## Not measured", "\n".join(notes)]
    parts += [section(before, FURTHER), "## Discussion", HOW, section(before, FINDINGS)]
    return "\n\n".join(p for p in parts if p) + "\n"
