# SPDX-License-Identifier: Apache-2.0
"""Every call that stet answers for the inside is in the table of test_wall_paths.py."""
import ast
import re

from source import read


# Named by numbers alone.
WITHOUT_PATHS = {"prlimit64"}


def calls_in_table():
    """The first words of its RENAMES, LINKS and EXECS."""
    tree = ast.parse(read("tests/live/test_wall_paths.py"))
    tables = {t.id: n.value for n in tree.body if isinstance(n, ast.Assign)
              for t in n.targets if isinstance(t, ast.Name)}
    return {row.elts[0].value for name in ("RENAMES", "LINKS", "EXECS") for row in tables[name].elts}


def held_calls():
    """Those that the filter hands to PID 1."""
    filters = read("src/emulate/genfilter.c")
    held = set(re.findall(r"SCMP_ACT_NOTIFY, SCMP_SYS\((\w+)\)", filters))
    held |= set(re.findall(r"SCMP_SYS\((\w+)\)", re.search(r"execs\[\] = \{(.*?)\}", filters)[1]))
    assert len(held) >= 6
    return held


def test_every_call_that_is_held_has_rows():
    assert held_calls() - WITHOUT_PATHS == calls_in_table()


def test_every_call_that_is_held_has_a_handler():
    table = re.search(r"handlers\[\] = \{(.*?)\n\};", read("src/emulate/notify.c"), re.S)[1]
    assert set(re.findall(r"SYS_(\w+)", table)) == held_calls()
