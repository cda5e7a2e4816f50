# SPDX-License-Identifier: Apache-2.0
"""The mounts of the view stay, and nobody is led astray by what is planted where one was."""
import os
import re
import subprocess

import pytest
from stetlib import digest

NEEDS = "ext4 shared"
ROOT = os.geteuid() == 0

# These lie in a directory of the sandbox's own, and nothing of the host's, or of ours, goes by them.
OWN = r"/dev/\w+"


@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    stet.rules_off()
    stet.ready()
    stet.no_policy = True


@pytest.fixture(name="mount")
def fixture_mount(work, filesystem):
    """In the workspace, on a directory that is empty; the mount namespace is the test's alone."""
    if not ROOT:
        yield None
        return
    where = work / "a" / "mount"
    where.mkdir(parents=True)
    (work / "canary").mkdir()
    subprocess.run(["mount", "--bind", filesystem("ext4"), where], check=True)
    yield where
    subprocess.run(["umount", "-l", where], check=True)


TRY_ALL = """
list() { cut -d' ' -f5 /proc/self/mountinfo | sort -u; }
list > before
for m in $(list); do [ $m = / ] || $1 nested-remove=$m; done > said
list > after
comm -23 before after
"""


@pytest.mark.parametrize("where", ["home", "shared"])
@pytest.mark.parametrize("opts", [[], ["--read-only", "ro", "--write-through", "through"]],
                         ids=["plain", "paths"])
def test_mounts_cannot_be_removed(stet, home, mount, tree, filesystem, probe, opts, where):
    """By nobody who has left them behind, whose directory beneath is empty or not."""
    work = filesystem("shared") if where == "shared" else str(home / "work")
    tree(work, {"ro": {"f": "1"}, "through": {"f": "1"}})
    gone = stet.sh(TRY_ALL, probe, cwd=work, opts=opts).ok().out.split()
    assert [m for m in gone if not re.fullmatch(OWN, m)] == []


PLANT = """
cd "$2"; mkdir -p "$3"; echo one > "$3/f"; echo ready; read x
echo two > "$3/f"
$1 nested-remove="$3" >&2
ln -s "/proc/self/fd/$4$5" "$3" >&2
echo ready; read x
"""


@pytest.mark.parametrize("fd", range(9, 26))
def test_a_rollback_follows_no_link(stet, work, home, tree, mount, probe, fd):
    """Where a layer was mounted there is a link through the descriptors of who puts its files back."""
    layer = mount or work
    canary = tree(home / "outside", {"f": "precious"})
    before = digest(canary)
    p = stet.popen("run", "-q", "--", "sh", "-c", PLANT, "sh", probe, work, layer, str(fd),
                   "/.." * 30 + str(canary), cwd=work, stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    stet("checkpoint", cwd=work).ok()
    p.stdin.write(b"\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"ready\n"
    stet("rollback", "-q", "--to", "1", cwd=work)
    p.communicate()
    assert digest(canary) == before
