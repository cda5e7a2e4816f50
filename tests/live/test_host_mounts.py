# SPDX-License-Identifier: Apache-2.0
"""Mounts of the host below a tree that is the host's own: written through, or worked on in place.

A directory that is renamed takes the mounts below it along, on the host, too.
"""
import os
import pathlib

import pytest

# It takes long.
SANITIZED_APART = True

NEEDS = "mounted"

MOUNTS = ["x/deep/m", "c/deep/proc", "c/sys", "p"]
EXCHANGE = ("import ctypes, sys; "
            "ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)")
TRICKS = {
    "parent": "mv -T x/deep x/aside; mv -T c/deep c/aside",
    "above": "mv -T x y; mv -T c d",
    "mount point": "mv -T x/deep/m y; mv -T c/deep/proc c/y; mv -T c/sys c/z; mv -T p y",
    "exchange": f"mkdir new c/new; python3 -c '{EXCHANGE}' x new; python3 -c '{EXCHANGE}' c/deep c/new",
    "removed": "rm -rf x; rmdir p c/deep/proc c/deep c/sys c",
    "own mounts": "unshare -rm sh -c 'umount -l x/deep/m c/deep/proc c/sys p; umount -l c/deep c x/deep x; "
                  "mv -T x y; mv -T c/deep c/d; mv -T c d; mv -T p q; rmdir c/sys p'",
}


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


@pytest.mark.parametrize("trick", TRICKS)
def test_they_stay_where_they_are(stet, place, trick):
    ws, opts = place
    (ws / "x/deep/m/kept").write_text("kept\n")
    r = stet("run", "-q", *opts, "--", "bash", "-c", f"touch made c/made; {TRICKS[trick]}", cwd=ws)
    assert r.rc != 125, repr(r)
    assert all(os.path.ismount(ws / m) for m in MOUNTS), sorted(map(str, ws.rglob("*")))[:20]
    assert (ws / "x/deep/m/kept").read_text() == "kept\n"
    stet("rollback", cwd=ws).ok()


def test_the_kernel_is_not_written_to(stet, place):
    """The host's procfs and sysfs are no part of what was asked for, wherever they are mounted."""
    ws, opts = place
    own = "c/deep/proc/sys/kernel/core_pattern"
    script = (f"ls -A c/deep/proc; ls -A p; cat {own}; cat {own} > {own}; mkdir c/deep/proc/x; "
              "python3 -c 'import os; print(os.statvfs(\"c/sys\").f_flag & os.ST_RDONLY)'")
    r = stet("run", "-q", *opts, "--", "bash", "-c", script, cwd=ws)
    assert r.out == "1\n", repr(r)
