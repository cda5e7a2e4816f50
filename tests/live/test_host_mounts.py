# SPDX-License-Identifier: Apache-2.0
"""Mounts of the host below a tree that is the host's own: written through, or worked on in place."""
import pathlib

import pytest

NEEDS = "mounted"

@pytest.fixture(name="place", params=["written through", "in place"])
def fixture_place(request, filesystem):
    """A written-through tree holds mounts of the kernel alone: other mounts have a store of stet's."""
    ws = pathlib.Path(filesystem("mounted")) / "ws"
    opts = ["--write-through", ws / "c"] if request.param == "written through" else ["--backend", "btrfs"]
    yield ws, ["--no-policy", *opts]
    for made in ("made", "c/made"):
        (ws / made).unlink(missing_ok=True)
    if (ws / "c/new").exists():
        (ws / "c/new").rmdir()


def test_the_kernel_is_not_written_to(stet, place):
    """The host's procfs and sysfs are no part of what was asked for, wherever they are mounted."""
    ws, opts = place
    own = "c/deep/proc/sys/kernel/core_pattern"
    script = (f"ls -A c/deep/proc; ls -A p; cat {own}; cat {own} > {own}; mkdir c/deep/proc/x; "
              "python3 -c 'import os; print(os.statvfs(\"c/sys\").f_flag & os.ST_RDONLY)'")
    r = stet("run", "-q", *opts, "--", "bash", "-c", script, cwd=ws)
    assert r.out == "1\n", repr(r)
