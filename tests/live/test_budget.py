# SPDX-License-Identifier: Apache-2.0
"""History is kept within its budget by itself, before it fills the disk."""
import os

import pytest
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
    cramped.end_all()


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
