# SPDX-License-Identifier: Apache-2.0
"""What can be looked at of prose (CONTRIBUTING, Prose): how comments and commits begin."""
import os
import re
import subprocess

import pytest
from source import ROOT, files, read

# Words that stand for something which a reader has not met yet.
DARK = re.compile(r"/\*\s*\*?\s*(It|That|This|One|Those|The same|Who|Whoever|What|Whatever|Where|Else"
                  r"|Then)\b")
# There are this many left. The number may only become smaller.
LEFT = 125
SUBJECT_MAX = 72
LATEST = 50


def dark(text):
    """The lines at which a comment begins with such a word; a question may."""
    for m in re.finditer(r"/\*.*?\*/", text, re.S):
        if DARK.match(m.group(0)) and not m.group(0).rstrip("*/ \n\t").endswith("?"):
            yield text.count("\n", 0, m.start()) + 1


def test_comments_begin_with_their_subject():
    found = [f"{f}:{n}" for f in files("src", suffixes=(".c", ".h")) for n in dark(read(f))]
    assert len(found) <= LEFT, found
    assert len(found) == LEFT, f"fewer than LEFT: make it {len(found)}"


def test_such_comments_are_found():
    text = "/* It is so. */\n/* Is it so? */\n/*\n * Who knows.\n */\n/* The lock is free. */\n"
    assert list(dark(text)) == [1, 3]


def test_subjects_of_commits_are_short():
    if not os.path.exists(os.path.join(ROOT, ".git")):
        pytest.skip("impossible here: no history beside these sources")
    r = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "log", f"-{LATEST}",
                        "--format=%s"], check=True, stdout=subprocess.PIPE, text=True)
    assert [s for s in r.stdout.splitlines() if len(s) > SUBJECT_MAX] == []
