# SPDX-License-Identifier: Apache-2.0
"""What a reader may rely on in every file."""
import os
import re
import subprocess

import pytest
from source import ROOT, c_files, files, read, scripts

MAX_FILE = 800
MAX_FUNCTION = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"


def functions(text):
    """(name, first line, number of lines) of each function: braces in the first column."""
    lines = text.splitlines()
    begin = None
    for i, line in enumerate(lines):
        if line.startswith("{"):
            begin = i
        elif line.startswith("}") and begin is not None:
            head = " ".join(lines[max(0, begin - 4):begin])
            names = re.findall(r"(\w+)\s*\(", head)
            yield (names[-1] if names else "?"), begin + 1, i - begin + 1
            begin = None


def test_files_are_short():
    long = [(f, n) for f in files("src", "tests", "bench", suffixes=(".c", ".h", ".py"))
            if (n := read(f).count("\n")) > MAX_FILE]
    assert not long


def test_functions_are_short():
    long = [(f, name, line, n) for f in c_files() for name, line, n in functions(read(f))
            if n > MAX_FUNCTION]
    assert not long


def test_functions_are_found():
    """The test above must be able to fail."""
    text = "int f(void)\n{\n" + "\tg();\n" * 120 + "}\n"
    assert list(functions(text)) == [("f", 2, 122)]


@pytest.mark.parametrize("what,pattern", [
    ("a shell called from C", r"\b(system|popen)\s*\("),
    ("an unbounded copy", r"\b(strcpy|strcat|sprintf|vsprintf|gets)\s*\("),
    ("a temporary name", r"\b(tmpnam|tempnam|mktemp)\s*\("),
])
def test_no_such_call_in_sources(what, pattern):
    found = [f"{f}:{i}: {line.strip()}" for f in files("src", suffixes=(".c", ".h"))
             for i, line in enumerate(read(f).splitlines(), 1)
             if re.search(pattern, line) and not line.lstrip().startswith(("*", "/*"))]
    assert not found, what


def test_only_front_ends_print_and_main_exits():
    found = []
    for f in files("src", suffixes=(".c",)):
        # The front end, and programs of their own that make sources.
        if f.startswith(("src/cli/", "src/print/")) or re.search(r"^int main\(", read(f), re.M):
            continue
        for i, line in enumerate(read(f).splitlines(), 1):
            if re.search(r"\b(printf|puts|putchar|perror)\s*\(|\bfprintf\s*\(\s*std", line):
                found.append(f"{f}:{i}: {line.strip()}")
            if re.search(r"(?<![_\w.>])exit\s*\(", line):
                found.append(f"{f}:{i}: {line.strip()}")
    found = [f for f in found if ": *" not in f and ": /*" not in f]
    assert not found


def marked():
    """Every text file that carries a licence line."""
    return (c_files() + files("tests", "bench", suffixes=(".py",)) + scripts()
            + [f for f in ("Makefile", "tests/run", "bench/run")
               if os.path.exists(os.path.join(ROOT, f))])


def test_every_file_names_its_licence():
    missing = [f for f in marked() if SPDX not in "\n".join(read(f).splitlines()[:3])]
    assert not missing


def test_nothing_is_left_for_later():
    words = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3,
                                          "HA" + "CK")) + r")\b")
    found = [f"{f}:{i}" for f in marked() for i, line in enumerate(read(f).splitlines(), 1)
             if words.search(line)]
    assert not found


def test_formatting():
    r = subprocess.run(["clang-format-14", "--dry-run", "-Werror", "--style=file", *c_files()],
                       cwd=ROOT, check=False, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    wrong = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", r.stdout, re.M)))
    assert not wrong, "make fmt puts these right"
    assert r.returncode == 0, r.stdout


def too_long(text):
    """Numbers of lines over 100 columns, a tab being eight; in a table that clang-format is told to
    leave alone over 120: a row is read best as one line."""
    most = 100
    for i, line in enumerate(text.splitlines(), 1):
        if "clang-format off" in line:
            most = 120
        if "clang-format on" in line:
            most = 100
        if len(line.expandtabs(8)) > most:
            yield i


def test_lines_fit():
    """90 columns. Code is cut by clang-format; this finds the rest."""
    wrong = [f"{f}:{i}" for f in c_files() for i in too_long(read(f))]
    assert not wrong


def test_long_lines_are_found():
    """The test above must be able to fail, and tables end."""
    line = "x" * 110
    off, on = "/* clang-format off */", "/* clang-format on */"
    assert list(too_long("\n".join([line, off, line, line * 2, on, line]))) == [1, 4, 6]


def test_tables_are_marked_in_pairs():
    """What is switched off is switched on again."""
    marks = {f: re.findall(r"clang-format (off|on) \*/", read(f)) for f in c_files()}
    assert not [f for f, m in marks.items() if m != ["off", "on"] * (len(m) // 2)]


def test_scripts_pass_shellcheck():
    found = scripts()
    assert found
    r = subprocess.run(["shellcheck", *found], cwd=ROOT, check=False, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 0, r.stdout
