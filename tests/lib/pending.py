# SPDX-License-Identifier: Apache-2.0
"""A transaction with one of each kind of change, and what is asked about it."""
import os
import time

import pytest

COARSE = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with


def tick(path):
    """Waits until what happens now has a later time than what was done to @path."""
    while time.clock_gettime_ns(COARSE) <= os.lstat(path).st_ctime_ns:
        pass


def write(path, text):
    path.write_text(text)
    tick(path)


def state(stet, tx="t1"):
    return next(t["state"] for t in stet.transactions() if t["id"] == tx)


def names(top):
    return sorted(os.path.relpath(os.path.join(d, f), top)
                  for d, _, files in os.walk(top) for f in files)


@pytest.fixture(name="pending")
def fixture_pending(stet, work):
    """t1: one of each kind of change."""
    write(work / "a", "a\n")
    (work / "src").mkdir()
    for i in range(3):
        write(work / "src" / f"{i}.c", "c\n")
    stet.sh("echo more >> a; rm -r src; mkdir -p d/e; echo x > d/e/f; echo n > new", cwd=work).ok()
    return work
