# SPDX-License-Identifier: Apache-2.0
"""History is kept within its budget by itself, before it fills the disk."""
import os

import pytest
from commitlib import shell
from conftest import binary
from stetlib import Stet

NEEDS = "small"
KIB = 1024


@pytest.fixture(name="cramped")
def fixture_cramped(filesystem, tmp_path):
    """stet with its home, and the work in it, on a disk of a few megabytes."""
    home = f"{filesystem('small')}/{tmp_path.name}"
    os.makedirs(f"{home}/work")
    cramped = Stet(binary(), home)
    yield cramped
    cramped.settle()
    cramped.end_all()
    shell(f"chmod -R u+rwX {home}; rm -rf {home}", "/")


def test_history_does_not_fill_the_disk(cramped):
    """Twice as much as the disk has room for, one after the other, within a minute."""
    work = f"{cramped.home}/work"
    vfs = os.statvfs(work)
    each = 256 * KIB
    rounds = 2 * vfs.f_blocks * vfs.f_frsize // each
    kept = []
    for i in range(rounds):
        end = "rollback" if i % 3 == 1 and i < rounds - 1 else "commit"
        cramped.sh(f"head -c {each} /dev/zero | tr '\\0' '{i % 10}' > f", cwd=work,
                   opts=("--on-success", end)).ok()
        if end == "commit":
            kept.append(str(i % 10))
        with open(f"{work}/f", encoding="ascii") as f:
            assert f.read(1) == kept[-1]
    # The newest can still be taken back.
    cramped("undo", cwd=work).ok()
    with open(f"{work}/f", encoding="ascii") as f:
        assert f.read(1) == kept[-2]


def look_over(cramped):
    """What happens in the background after a run, when it is due again."""
    work = f"{cramped.home}/work"
    cramped.settle()
    os.utime(f"{cramped.state}/trimmed", (0, 0))
    cramped.sh("echo pending > i", cwd=work).ok()
    cramped.settle()
    assert os.stat(f"{cramped.state}/trimmed").st_mtime
    # A rollback that comes later pushes nothing out.
    cramped("rollback", cwd=work).ok()


@pytest.mark.parametrize("inside", ["rm f", "tr 0 1 < f > g; cp g f; rm g", "mv f g"])
def test_the_newest_commit_stays(cramped, inside):
    """It has said how it is taken back: that holds if it is larger than its share, too."""
    work = f"{cramped.home}/work"
    vfs = os.statvfs(work)
    text = "0" * (vfs.f_blocks * vfs.f_frsize // 7)
    with open(f"{work}/f", "w", encoding="ascii") as f:
        f.write(text)
    cramped.sh("echo older > h", cwd=work, opts=("--on-success", "commit")).ok()
    cramped.sh(inside, cwd=work).ok()
    assert "take it back" in cramped("commit", cwd=work).ok().out
    look_over(cramped)
    for _ in range(2):
        cramped("undo", "t2", cwd=work).ok()
        with open(f"{work}/f", encoding="ascii") as f:
            assert f.read() == text
        cramped("redo", "t2", cwd=work).ok()
        look_over(cramped)
    # With a newer one it goes; and if somebody says so.
    cramped.sh("echo newer > h", cwd=work, opts=("--on-success", "commit")).ok()
    look_over(cramped)
    assert cramped("undo", "t2", cwd=work).rc != 0
    cramped("forget", "--max-size", "1").ok()
    assert cramped("undo", cwd=work).rc != 0
