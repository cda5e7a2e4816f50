# SPDX-License-Identifier: Apache-2.0
"""A filesystem without room stops nobody who does not need it; hidden mounts are hidden."""
import os
import re
import subprocess

import pytest
from conftest import binary
from stetlib import Stet

NEEDS = "small tmpfs"


def fill(path):
    """To the last block and inode that this user gets."""
    with open(f"{path}/fill", "wb", buffering=0) as f:
        for size in (1 << 20, 4096, 512):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass
    try:
        for i in range(1 << 20):
            os.symlink("x" * 200, f"{path}/fill.d{i}")
    except OSError:
        pass


@pytest.fixture(name="full")
def fixture_full(stet, work, filesystem):
    """A filesystem that has our store already, and no room."""
    small = filesystem("small")
    with open(f"{small}/key", "w", encoding="ascii") as f:
        f.write("KEY\n")
    stet.sh(f"echo x > {small}/x", cwd=work).ok()
    # Who tidies up would make room again.
    stet.settle()
    fill(small)
    yield small
    subprocess.run(["rm", "-rf"] + [f"{small}/{n}" for n in os.listdir(small)], check=True)


SEEN = {"--read-only": "KEY\nrefused\n", "--hide": "refused\n"}


@pytest.mark.parametrize("option", SEEN)
@pytest.mark.parametrize("above", [False, True])
def test_what_is_covered_needs_no_layer(stet, work, full, option, above):
    """Without a layer it is protected all the same, and so are the stores on it."""
    covering = os.path.dirname(full) if above else full
    r = stet.sh(f'cat {full}/key 2>/dev/null; ls -A {full}/.stet-* 2>/dev/null; '
                f'( : > {full}/new ) 2>/dev/null || echo refused; echo w > w', cwd=work,
                opts=[option, covering]).ok()
    assert r.out == SEEN[option]
    assert not os.path.exists(f"{full}/new")
    assert list(stet.changes(cwd=work)) == [os.fsencode(work / "w")]
    # It can be gone into again, and taken over.
    r = stet("explore", "--", "cat", "w", cwd=work).ok()
    assert r.out == "w\n"
    stet("commit", cwd=work).ok()
    assert (work / "w").read_text() == "w\n"


def test_the_error_says_what_to_type(stet, work, full):
    r = stet.sh("true", cwd=work).ok(125)
    assert "No space left on device" in r.err
    hint = re.search(r"--read-only '([^']*)', or --hide '([^']*)'", r.err)
    assert hint and set(hint.groups()) == {full}, r.err
    assert "prune" not in r.err


@pytest.mark.parametrize("above", [False, True])
def test_a_mount_can_be_hidden(stet, work, filesystem, above):
    """By its own name, or with a directory around it."""
    place = filesystem("tmpfs")
    with open(f"{place}/key", "w", encoding="ascii") as f:
        f.write("KEY\n")
    r = stet.sh(f"cat {place}/key; mkdir -p {place}; echo x > {place}/x; "
                f"cat {place}/key; true", cwd=work,
                opts=["--hide", os.path.dirname(place) if above else place]).ok()
    assert r.out == ""
    assert not os.path.exists(f"{place}/x")


def test_a_state_directory_that_is_a_mount(home, work, filesystem):
    state = filesystem("tmpfs")
    os.chmod(state, 0o700)
    stet = Stet(binary(), str(home))
    stet.env["STET_STATE_DIR"] = state
    r = stet.sh(f"ls -A {state}; echo x > {state}/journal.db; echo x > x", cwd=work).ok()
    assert r.out == ""
    stet("commit", cwd=work).ok()
    assert (work / "x").read_text() == "x\n"


def test_room_can_be_made_inside(stet, filesystem):
    """A checkpoint that does not fit does not stop the command that makes room."""
    work = f"{filesystem('small')}/work"
    os.mkdir(work)
    r = stet("run", "--", "sh", "-c",
             "dd if=/dev/zero of=fill bs=64k status=none; rm fill; echo $?", cwd=work).ok()
    assert r.out == "0\n"
    assert r.err.count("no checkpoint before what was risky") == 1
    assert "No space left on device" in r.err.split("no checkpoint")[1]
    assert "no-checkpoint" in stet("audit", "--json", cwd=work).ok().out
