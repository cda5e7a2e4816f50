# SPDX-License-Identifier: Apache-2.0
"""The numbers of build-aux/house get no worse, and each of its checks can fail."""
import contextlib
import io
import os
import re
import shutil
import subprocess
import types

import pytest
from source import ROOT, files, read

MARKS = re.compile(r"<!-- the walks -->\n(.*?)<!-- the end of the walks -->", re.S)
NUMBER = re.compile(r"[a-z][a-z0-9 ]{17} .*")


def load():
    """The script as a module: a process for each of its uses below would take too long."""
    module = types.ModuleType("house")
    module.__file__ = os.path.join(ROOT, "build-aux/house")
    exec(compile(read("build-aux/house"), "build-aux/house", "exec"), module.__dict__)
    return module


SCRIPT = load()


def house(*options, root):
    """(exit status, output)"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            status = SCRIPT.main(["--root", str(root), *options])
        except SystemExit as e:
            return 1, f"{e}\n{out.getvalue()}"
    return status, out.getvalue()


@pytest.fixture(scope="module")
def real():
    tree = SCRIPT.House(ROOT)
    return tree, SCRIPT.read_walks(tree)


def test_no_number_is_worse(real, capsys):
    SCRIPT.report(*real)
    numbers_of_all = capsys.readouterr().out.split("\n\n")[1]
    told = [line for line in numbers_of_all.splitlines() if NUMBER.match(line)]
    with capsys.disabled():
        print("".join(f"\nsaid: {line}" for line in told))
    numbers, _ = SCRIPT.measure(*real)
    assert numbers["functions"] > 1000 and numbers["code"] > 10000
    wrong = SCRIPT.check(*real)
    assert not wrong, "\n".join(wrong)


def test_script_stands_alone():
    """As a program, with the system's python and nothing else."""
    r = subprocess.run(["/usr/bin/python3", "-I", os.path.join(ROOT, "build-aux/house"), "--walk",
                        "commit"], check=True, stdout=subprocess.PIPE, text=True)
    assert "txn_commit" in r.stdout


# ---- The picture and the walks of docs/ARCHITECTURE.md ----

def storeys():
    """The rooms of each line of the picture, from the top."""
    text = re.search(r"<!-- the house -->\n```\n(.*?)```", read("docs/ARCHITECTURE.md"), re.S)[1]
    return [line[1:].rpartition("│")[0].replace("│", " ").split()
            for line in text.splitlines() if line.startswith("│")]


def test_picture_has_every_room_once():
    drawn = [room for line in storeys() for room in line]
    assert len(drawn) == len(set(drawn)) <= 32
    assert set(drawn) == {f.split("/")[1] for f in files("src", suffixes=(".c",))}


def test_picture_is_the_order_of_layers():
    lines = [line.split("#")[0].split() for line in read("src/LAYERS").splitlines()]
    assert storeys() == [line for line in reversed(lines) if line]


def test_picture_agrees_with_the_includes():
    height = {room: -i for i, line in enumerate(storeys()) for room in line}
    wrong = []
    for rel in files("src", suffixes=(".c", ".h")):
        for path in re.findall(r'^\s*#\s*include\s+"(\w+)/', read(rel), re.M):
            room = rel.split("/")[1]
            if path != room and height.get(path, 1) >= height.get(room, 0):
                wrong.append(f"{rel} includes {path}/, which is not drawn below {room}/")
    assert not wrong


def test_walks_name_functions_of_their_paths(real):
    text = MARKS.search(read("docs/ARCHITECTURE.md"))[1]
    walks = re.findall(r"^- \*\*(\w+)\*\*(.*?)(?=^- |\Z)", text, re.M | re.S)
    assert {name for name, _ in walks} == {"run", "exec", "commit", "rollback"}
    for name, words in walks:
        told = set(re.findall(r"`(\w+)\(\)`", words))
        listed = {s.function.name for s in real[1][name].steps}
        assert told and told <= listed, (name, told - listed)


# ---- Each check can fail ----

SMALL = {
    "src/LAYERS": "low # ground\nmid side\nhigh\n",
    "src/low/low.h": "int low_get(int a);\n",
    "src/low/low.c": '#include "low/low.h"\nint low_get(int a)\n{\n\treturn a;\n}\n',
    "src/low/each.h": "int low_each(int (*each)(void));\n",
    "src/low/each.c": '#include "low/each.h"\nint low_each(int (*each)(void))\n{\n'
                      "\treturn each();\n}\n",
    "src/side/side.h": "int side_get(void);\n",
    "src/side/side.c": '#include "side/side.h"\nint side_get(void)\n{\n\treturn 0;\n}\n',
    "src/mid/parts.h": "enum { MID_SIZE = 3 };\n",
    "src/mid/mid.h": "int mid_get(int a, int b);\n",
    "src/mid/mid.c": '#include "mid/mid.h"\n#include "low/low.h"\n#include "mid/parts.h"\n'
                     "int mid_get(int a, int b)\n{\n\treturn low_get(a) + b;\n}\n",
    "src/high/high.h": "int high_go(void);\n",
    "src/high/high.c": '#include "high/high.h"\n#include "low/each.h"\n#include "low/low.h"\n'
                       '#include "mid/mid.h"\nstatic int note(void)\n{\n\treturn 1;\n}\n'
                       "int high_go(void)\n{\n\treturn mid_get(1, 2) + low_get(0) + "
                       "low_each(note);\n}\n",
    "build-aux/house.paths": "go:\n  high_go\n    mid_get\n      low_get\n",
    "docs/ARCHITECTURE.md": "<!-- the house -->\n```\n```\n",
}


def write(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def small(tmp_path):
    """A tree with nothing wrong in it, and its limits."""
    write(tmp_path, SMALL)
    for option in ("--picture", "--limits", "--check"):
        status, out = house(option, root=tmp_path)
        assert not status, out
    return tmp_path


def long_function(name, lines):
    return f"static int {name}(void)\n{{\n" + "\tmore();\n" * (lines - 2) + "}\n"


LOW, MID, HIGH = "src/low/low.c", "src/mid/mid.c", "src/high/high.c"
PATHS = "build-aux/house.paths"

# (what is wrong, file, text, replacement or None: to be appended, what is complained of)
BREAKS = [
    ("one more line", LOW, None, "int low_more;\n", "code", "1, but the limit"),
    ("a longer function", LOW, "\treturn a;\n", "\ta++;\n" * 9 + "\treturn a;\n", "length max",
     "src/low/low.c:3 low_get: 12"),
    ("all functions longer", HIGH, None, long_function("a", 9) + long_function("b", 9) * 6,
     "length median", "split"),
    ("many functions longer", HIGH, None, long_function("a", 9) * 2, "length p95", "split"),
    ("over 100 lines", LOW, None, long_function("a", 101), "long functions", "src/low/low.c:7 a: 101"),
    ("over 800 lines", LOW, None, "// words\n" * 800, "long files", "src/low/low.c: 80"),
    ("over 4,000 lines", "src/low/new.c", None, "// words\n" * 4000, "large rooms", "low: 40"),
    ("seven parameters", MID, None,
     "static int f(int a, int b, int (*c)(int, int), int d, int e, int g, int h)\n{\n}\n",
     "parameters", "mid.c:9 f: 7"),
    ("a prototype elsewhere", "src/low/low.h", "int low_get(int a);\n", "", "prototypes",
     "src/low/low.c:3 low_get"),
    ("a cycle", LOW, "\treturn a;\n", "\treturn a + low_each(0);\n", "cycle", None),
    ("a call upwards", LOW, "int low_get(int a)\n{\n",
     "int high_go(void);\nint low_get(int a)\n{\n\thigh_go();\n", "upward",
     "src/low/low.c: high_go (src/high/high.c)"),
    ("a function named upwards", LOW, None,
     "int high_go(void);\nint (*const low_call)(void) = high_go;\n", "upward", "high_go"),
    ("a call beside", MID, "return low_get(a)", "return side_get()", "upward", "side_get"),
    ("another room's parts.h", HIGH, '#include "mid/mid.h"\n',
     '#include "mid/mid.h"\n#include "mid/parts.h"\n', "private", "high.c: mid/parts.h"),
    ("a private header", "src/low/each.h", "int low_each",
     "/*\n * Private to the\n * room.\n */\nint low_each", "private", "high.c: low/each.h"),
    ("a call that is gone", HIGH, "mid_get(1, 2) + ", "", "walks", "high_go does not call mid_get"),
    ("a function that is gone", PATHS, "mid_get", "mid_take", "walks", "no such function"),
    ("a gap in the walk", PATHS, "    mid_get\n      low_get", "    low_get\n      mid_get",
     "walks", "low_get does not call mid_get"),
    ("a callback that is unknown", PATHS, "      low_get", "      ^ side_get", "walks",
     "nothing on the way there names side_get"),
    ("a longer walk", PATHS, "      low_get\n", "      low_get\n    low_get\n", "walk go", "4, but the limit is 2"),
    ("a call back up", PATHS, "    mid_get\n      low_get\n",
     "    low_each\n      ^ note\n", "walk go up", "1, but the limit is 0"),
    ("an old picture", "src/LAYERS", "mid side\n", "side\nmid\n", "picture", "--picture"),
    ("no limit", "build-aux/house.limits", "parameters", "# parameters", "parameters",
     "there is no limit yet"),
]


@pytest.mark.parametrize("what,file,old,new,name,words", BREAKS, ids=[b[0] for b in BREAKS])
def test_check_can_fail(small, what, file, old, new, name, words):
    path = small / file
    text = path.read_text() if path.exists() else ""
    assert old is None or old in text
    path.write_text(text + new if old is None else text.replace(old, new))
    if what == "a cycle":
        (small / "src/low/each.c").write_text(SMALL["src/low/each.c"].replace(
            "return each()", "return each() + low_get(1)"))
        words = "low: each low"
    status, out = house("--check", root=small)
    assert status == 1, out
    told = re.search(rf"^{name}(?: \(|:).*(?:\n\t.*)*", out, re.M)
    assert told and words in told[0], out


def test_event_is_no_call_upwards(small):
    (small / PATHS).write_text("go:\n  high_go\n    low_each\n      ! note\n")
    status, out = house("--check", root=small)
    assert status == 0, out


def test_limits_say_what_got_worse(small):
    with open(small / LOW, "a", encoding="utf-8") as f:
        f.write("int low_more;\n")
    status, out = house("--limits", root=small)
    assert out.startswith("code: worse than before: ")
    assert house("--check", root=small)[0] == 0


@pytest.mark.parametrize("source", ["text", "objects"])
def test_symbols_are_found(small, source):
    """A declaration by hand hides an upward call from the includes, from neither way to look."""
    (small / LOW).write_text("int high_go(void);\n" + SMALL[LOW].replace(
        "return a", "return high_go() + a"))
    options = ["--check"]
    if source == "objects":
        assert shutil.which("gcc") and shutil.which("nm")
        for rel in SMALL:
            if rel.endswith(".c"):
                out = small / "build" / os.path.dirname(rel) / "lib.a.p"
                out.mkdir(parents=True, exist_ok=True)
                subprocess.run(["gcc", "-c", f"-I{small}/src", str(small / rel), "-o",
                                str(out / (os.path.basename(rel) + ".o"))], check=True)
        options += ["--build", str(small / "build")]
    status, out = house(*options, root=small)
    assert status == 1 and "src/low/low.c: high_go (src/high/high.c)" in out, out


def test_old_objects_are_refused(small):
    status, out = house("--build", str(small), root=small)
    assert status == 1 and "build it first" in out
