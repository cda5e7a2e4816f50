# SPDX-License-Identifier: Apache-2.0
"""usage: scene.py make|change|visit TREE N

The tree that the power cuts meet, and what the command inside the transaction does to it:
something of every kind, in proportion to N.
"""
import os
import shutil
import sys


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def make(n):
    for i in range(n):
        d = f"d{i % 10}"
        os.makedirs(d, exist_ok=True)
        put(f"{d}/f{i}", f"old {i}\n" * (1 + i % 40))
    for d in ("gone", "deep/er"):
        os.makedirs(d)
        for i in range(max(3, n // 40)):
            put(f"{d}/g{i}", f"{d} {i}\n")
    put("big", "0123456789abcdef" * 20000)
    os.symlink("big", "link")
    os.link("big", "twin")
    os.mkfifo("pipe")
    os.setxattr("d0/f0", "user.old", b"1")


def change(n):
    for i in range(n):
        path = f"d{i % 10}/f{i}"
        kind = i // 10 % 8
        if kind == 0:
            with open(path, "a", encoding="ascii") as f:
                f.write(f"more {i}\n" * (1 + i % 700))
        elif kind == 1:
            put(path + "~", f"new {i}\n" * 5)
            os.rename(path + "~", path)
        elif kind == 2:
            os.unlink(path)
        elif kind == 3:
            os.rename(path, f"d{(i + 1) % 10}/r{i}")
        elif kind == 4:
            os.chmod(path, 0o600 + i % 64)
        elif kind == 5:
            put(f"d{i % 10}/n{i}", f"made {i}\n")
        elif kind == 6:
            os.setxattr(path, "user.new", str(i).encode())
    for i in range(max(2, n // 80)):
        os.makedirs(f"new{i}/a/b")
        for k in range(3):
            put(f"new{i}/a/b/{k}", f"new {i} {k}\n")
        os.symlink("a/b/0", f"new{i}/first")
    shutil.rmtree("gone")
    shutil.rmtree("deep/er")
    put("deep/er", "a file now\n")
    os.unlink("link")
    os.mkdir("link")
    os.chmod("d3", 0o750)
    os.unlink("pipe")
    os.utime("d4", ns=(10**18, 10**18 + 7))
    os.removexattr("d0/f0", "user.old")


def visit(n):
    """Later, in the transaction: new files, more in old ones."""
    for i in range(n):
        put(f"d{i % 10}/v{i}", f"visited {i}\n" * (1 + i % 300))
    with open("big", "a", encoding="ascii") as f:
        f.write("fedcba9876543210" * 20000)
    put("deep/er", "a file still\n")


def main(argv):
    os.chdir(argv[1])
    {"make": make, "change": change, "visit": visit}[argv[0]](int(argv[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
