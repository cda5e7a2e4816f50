# SPDX-License-Identifier: Apache-2.0
"""In a tree of the host's own no directory above a read-only path is moved away with that path."""
import os
import pathlib
import subprocess

import pytest

# It takes long.
SANITIZED_APART = True

NEEDS = "btrfs"

TREE = {"a": {"b": {"ro": {"r": "keep\n"}, "file": "keep\n", "o": "o\n"}, "o": "o\n"}, "o": "o\n"}
# Each tries to bring something else to the path of what is read-only.
TRICKS = {
    "parent": "mv -T a/b a/aside; mkdir a/b",
    "above": "mv -T a aside; mkdir -p a/b",
    "exchange": "mkdir -p new/b; python3 -c '{exchange}' a new",
    "exchange of parents": "mkdir new; python3 -c '{exchange}' a/b new",
    "replaced": "mkdir new; mv -T new a; mv -T new a/b",
    "removed": "rm -rf a; mkdir -p a/b",
    "shell's own": "cd a/b && mv ../../a ../../aside; cd ../..; mkdir -p a/b",
}
EXCHANGE = ("import ctypes, sys; "
            "ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)")


@pytest.fixture(name="place", params=["written through", "in a deeper one", "in place"])
def fixture_place(request, work, tree, filesystem):
    """The tree, the workspace, and the options by which the tree is the host's own."""
    if request.param == "in place":
        top = pathlib.Path(filesystem("btrfs"))
        sub = top / f"pinned-{os.getpid()}-{len(os.listdir(top))}"
        subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
        return tree(sub, TREE), sub, ["--backend", "btrfs"]
    tree(work, {"wt": TREE})
    own = work / "wt"
    opts = ["--write-through", own]
    if request.param == "in a deeper one":
        opts += ["--write-through", own / "a/b"]
    return own, work, opts


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("path", ["a/b/ro", "a/b/file"])
def test_it_stays_where_it_is(stet, place, trick, path):
    own, work, opts = place
    own = pathlib.Path(own)
    script = TRICKS[trick].format(exchange=EXCHANGE)
    evil = "mkdir -p a/b/ro; echo EVIL > a/b/ro/r; echo EVIL > a/b/file; echo y > a/b/y"
    keep = own / (path + "/r" if path == "a/b/ro" else path)
    stet.run("bash", "-c", f'cd "$1"; {script}; {evil}', "-", own, cwd=work,
             opts=["--no-policy", *opts, "--read-only", own / path])
    assert keep.read_text() == "keep\n"


def test_what_else_can_be_done_there(stet, work, tree):
    """Beside those directories everything is as before; out of them the kernel moves nothing."""
    tree(work, {"wt": TREE})
    own = work / "wt"
    script = ("cd wt && mkdir a/n && echo n > a/n/f && mv a/n a/m && mv a/b/o a/b/p && "
              "ln a/o a/l && mv a/b/p a/moved && rm o && ! ln a/o l")
    stet.run("bash", "-c", script, cwd=work,
             opts=["--no-policy", "--write-through", own, "--read-only", own / "a/b/ro"]).ok()
    found = sorted(str(p.relative_to(own)) for p in own.rglob("*"))
    assert found == ["a", "a/b", "a/b/file", "a/b/ro", "a/b/ro/r", "a/l", "a/m", "a/m/f",
                     "a/moved", "a/o"]
