# SPDX-License-Identifier: Apache-2.0
"""A small part of tests/matrix (`make matrix`), another on each file system."""
import os
import sys

import pytest
from conftest import binary

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "matrix"))

from matrixlib import every_cell, run_batch, sample  # noqa: E402
from randomly import run_random  # noqa: E402
from rows import COMMANDS, EDITS, NONE, SEQUENCES  # noqa: E402

NEEDS = "ext4 xfs btrfs"
SANITIZED_APART = True
# With the sanitizers a call takes five times as long.
CELLS, RANDOM = (12, 2) if os.environ.get("STET_BUILD") == "asan" else (40, 6)


def told(found):
    return "\n".join(f"{f.kind}: --cell '{' | '.join(f.cell)}'\n    {f.text}" for f in found)


@pytest.mark.parametrize("nth,kind", enumerate(NEEDS.split()), ids=lambda v: v)
def test_sample(filesystem, tmp_path, nth, kind):
    seed = 100 * (1 + (os.geteuid() != 0)) + nth
    done, found = run_batch(binary(), f"{filesystem(kind)}/{tmp_path.name}", kind,
                            sample(CELLS, seed))
    assert done > CELLS // 2 and not found, f"seed {seed}\n{told(found)}"


@pytest.mark.parametrize("nth,kind", enumerate(NEEDS.split()), ids=lambda v: v)
def test_random(filesystem, tmp_path, nth, kind):
    for seed in range(nth * 10, nth * 10 + RANDOM):
        _, found = run_random(binary(), f"{filesystem(kind)}/{tmp_path.name}-{seed}", kind, seed)
        assert not found, told(found)


def test_the_sample_is_of_the_whole():
    """Every row of each kind is among the cells, and a sample is the same again."""
    cells = list(every_cell())
    assert len(cells) == len(COMMANDS) * len(EDITS) * len(SEQUENCES) == len(set(cells))
    assert sample(50, 3) == sample(50, 3) != sample(50, 4)
    assert NONE in EDITS and any(c.edit == NONE for c in sample(50, 3))
