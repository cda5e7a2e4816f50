# SPDX-License-Identifier: Apache-2.0
"""Btrfs subvolumes inside a sandbox: no command makes, removes or flags one, wherever it lies."""
import fcntl
import os
import pathlib
import subprocess

import pytest

NEEDS = "btrfs"

# struct btrfs_ioctl_vol_args (a descriptor and a name), its second version, and flags.
CALLS = r"""
import ctypes, errno, os, struct, sys
FD = os.open(".", os.O_RDONLY)
def v1(name): return struct.pack("q4088s", FD, name)
def v2(name): return struct.pack("qQQ4x28x4040s", FD, 0, 0, name)
CALLS = {
    "create": (0x5000940E, v1(b"made")), "create v2": (0x50009418, v2(b"made")),
    "snapshot": (0x50009401, v1(b"made")), "snapshot v2": (0x50009417, v2(b"made")),
    "destroy": (0x5000940F, v1(b"nested")), "destroy v2": (0x5000943F, v2(b"nested")),
    "read-only": (0x4008941A, struct.pack("Q", 2)),
}
libc = ctypes.CDLL(None, use_errno=True)
for name, (number, args) in CALLS.items():
    for high in (0, 1 << 32):  # the kernel looks at 32 bits of the number
        buf = ctypes.create_string_buffer(args, 4096)
        r = libc.syscall(ctypes.c_long(16), ctypes.c_long(FD), ctypes.c_ulong(number | high), buf)
        if r == 0 or ctypes.get_errno() != errno.EPERM:
            print(name, r, os.strerror(ctypes.get_errno()))
"""


def subvolume(path):
    subprocess.run(["btrfs", "-q", "subvolume", "create", path], check=True)
    return path


def is_read_only(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return bool(fcntl.ioctl(fd, 0x80089419, bytes(8))[0] & 2)
    finally:
        os.close(fd)


@pytest.fixture(name="sub")
def fixture_sub(filesystem):
    top = pathlib.Path(filesystem("btrfs"))
    return subvolume(top / f"subvolumes-{os.getpid()}-{len(os.listdir(top))}")


@pytest.mark.parametrize("opts", [["--backend", "btrfs"], ["--write-through", "."]])
def test_none_is_made_removed_or_flagged(stet, sub, opts):
    if "--write-through" in opts:
        subvolume(sub / "nested")
    before = sorted(os.listdir(sub))
    r = stet("run", "-q", "--no-policy", *opts, "--", "python3", "-c", CALLS, cwd=sub).ok()
    assert r.out == "" and sorted(os.listdir(sub)) == before and not is_read_only(sub)


def test_nothing_of_a_private_tmp_stays(stet, sub, work):
    """A subvolume that is read-only cannot be removed with the transaction."""
    script = ("btrfs -q subvolume create /tmp/s; btrfs property set /tmp/s ro true; "
              "btrfs -q subvolume snapshot -r /tmp /tmp/t; ls -A /tmp")
    state = sub / "state"
    stet.env["STET_STATE_DIR"] = str(state)
    r = stet("run", "-q", "--no-policy", "--", "sh", "-c", script, cwd=work).ok()
    assert r.out == "" and "not permitted" in r.err, repr(r)
    stet("prune", cwd=work).ok()
    assert stet("check", cwd=work).ok()
    assert [d for d in os.listdir(state / "tx") if d.endswith(".gone")] == []
