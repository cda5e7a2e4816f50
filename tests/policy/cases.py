# SPDX-License-Identifier: Apache-2.0
"""Labelled commands: ours, those of others, and what we think of their labels."""
import collections
import glob
import hashlib
import json
import math
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NEWLINE = "\u2424"

# source: "stet" or the name of a file; kind: the class; want: the verdict, if it is ours.
# number: the place in the order of loading, as a case may stand there twice.
Case = collections.namedtuple("Case", "source label kind want text number")
Verdict = collections.namedtuple("Verdict", "kind rule ns")

STOPS = ("ask", "deny", "kill")
CATCHES = ("checkpoint",) + STOPS


def ours():
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.tests"))):
        head = None
        with open(path, encoding="utf-8") as f:
            for line in f:
                line = line.rstrip("\n")
                if line.startswith("= "):
                    head = line.split()[1:]
                elif line.startswith("\t") and head:
                    out.append(Case("stet", head[0], head[1], head[2],
                                    line[1:].replace(NEWLINE, "\n"), len(out)))
    return out


def foreign(folder, first=0):
    """The command files of a folder: JSON lines with cmd, label and perhaps rule."""
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        name = os.path.basename(path)[:-len(".jsonl")]
        with open(path, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                kind = re.split("[:,]", row.get("rule") or "-")[0] or "-"
                out.append(Case(name, row["label"], kind, None, row["cmd"],
                                first + len(out)))
    return out


def mark(text):
    """By which triage.tsv knows a command without holding it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def triage():
    """Our opinion of single commands of others whose label we do not share."""
    out = {}
    with open(os.path.join(HERE, "triage.tsv"), encoding="ascii") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                key, opinion = line.split()
                out[key] = opinion
    return out


def preflight(judge, cases):
    """The verdicts on the texts, in their order."""
    text = "".join(json.dumps({"cmd": c.text}) + "\n" for c in cases)
    p = subprocess.run([judge], input=text, stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split("\t") for line in p.stdout.splitlines()]
    if len(rows) != len(cases):
        raise SystemExit(f"{judge}: {len(rows)} verdicts on {len(cases)} commands")
    return [Verdict(kind, rule, int(ns)) for kind, rule, ns in rows]


def wilson(hits, n, z=1.959964):
    """95 % interval of a rate."""
    if n == 0:
        return 0.0, 1.0
    p = hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(hits, n):
    if n == 0:
        return "–"
    low, high = wilson(hits, n)
    return f"{hits} of {n}, {100 * hits / n:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
