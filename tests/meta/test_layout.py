# SPDX-License-Identifier: Apache-2.0
"""The rooms: who may include whom, and that every file is part of the build."""
import os
import re
import shutil
import subprocess

import pytest
from source import ROOT, files, read

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def layers():
    """{room: the rooms it may include}"""
    allowed, below = {}, set()
    for line in read("src/LAYERS").splitlines():
        rooms = line.split("#")[0].split()
        for room in rooms:
            allowed[room] = below | {room}
        below = below | set(rooms)
    return allowed


def room_of(rel):
    return rel.split("/")[1]


def rooms():
    src = os.path.join(ROOT, "src")
    return sorted(d for d in os.listdir(src) if os.path.isdir(os.path.join(src, d)))


def test_every_room_has_its_line():
    assert set(rooms()) == set(layers())


def test_rooms_include_only_rooms_below():
    allowed = layers()
    wrong = []
    for rel in files("src", suffixes=(".c", ".h")):
        for path in INCLUDE.findall(read(rel)):
            room = path.split("/")[0] if "/" in path else room_of(rel)
            if room not in allowed[room_of(rel)]:
                wrong.append(f"{rel}: {path}")
    assert not wrong


def test_the_front_end_knows_results_only():
    """What it prints and asks is in the results of verbs: it calls no transaction, takes no lock."""
    # The files: values that results are made of, and the name of a socket.
    known = {"base", "sys", "model", "call", "session", "doctor", "review", "verbs", "print", "cli",
             "audit/read.h", "commit/commit.h", "diff/change.h", "diff/list.h",
             "ctl/inside_socket.h"}
    wrong = [f"{rel}: {path}" for rel in files("src/cli", "src/print", suffixes=(".c", ".h"))
             for path in INCLUDE.findall(read(rel))
             if not {path, path.split("/")[0]} & known]
    assert not wrong


def test_includes_name_existing_files_by_room():
    """Always "room/file.h", so that a reader sees where a name comes from."""
    made = {name for rel in files("src", suffixes=("meson.build",))
            for name in re.findall(r"output: '([^']+)'", read(rel))}
    wrong = []
    for rel in files("src", suffixes=(".c", ".h")):
        for path in INCLUDE.findall(read(rel)):
            if path not in made and not os.path.exists(os.path.join(ROOT, "src", path)):
                wrong.append(f"{rel}: {path}")
    assert not wrong


def test_all_sources_are_listed_in_their_room():
    wrong = []
    for room in rooms():
        # A condition around a file is no reason to leave it out of the list.
        # The grammar is not ours: it comes from its package.
        listed = set(re.findall(r"(?<!grammar / )'([^'/]+\.c)'", read(f"src/{room}/meson.build")))
        present = {os.path.basename(f) for f in files(f"src/{room}", suffixes=(".c",))}
        if room == "cli":
            present -= {"main.c"}  # belongs to the program, not to the library
        wrong += [f"{room}/{f}" for f in sorted(listed ^ present)]
    assert not wrong


def test_all_unit_tests_are_built():
    text = read("tests/unit/meson.build")
    present = [os.path.basename(f)[:-2] for f in files("tests/unit", suffixes=(".c",))
               if os.path.basename(f).startswith("test_")]
    assert present
    part = len("test_")
    assert [f for f in present if f"'{f}'" not in text and f"'{f[part:]}'" not in text] == []


def compile_flags():
    r = subprocess.run(["pkg-config", "--cflags", "sqlite3", "jansson", "libseccomp", "libcap",
                        "libgit2"], check=True, stdout=subprocess.PIPE, text=True)
    return r.stdout.split()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_header_compiles_alone(compiler, tmp_path):
    assert shutil.which(compiler)
    one = tmp_path / "one.c"
    wrong = []
    for rel in files("src", suffixes=(".h",)):
        # Twice: the guard must work too.
        name = rel[len("src/"):]
        one.write_text(f'#include "{name}"\n#include "{name}"\n')
        r = subprocess.run([compiler, "-fsyntax-only", "-std=gnu17", "-Wall", "-Wextra",
                            "-Werror", "-D_GNU_SOURCE", '-DSTET_VERSION="0"',
                            f"-I{ROOT}/src", *compile_flags(), str(one)], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if r.returncode != 0:
            wrong.append(f"{rel}:\n{r.stdout}")
    assert not wrong, "\n".join(wrong)
