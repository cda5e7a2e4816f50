# SPDX-License-Identifier: Apache-2.0
"""The source tree as the meta tests see it."""
import os

ROOT = os.environ.get("STET_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(rel):
    with open(os.path.join(ROOT, rel), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def files(*tops, suffixes=None):
    """Paths relative to the root, sorted; suffixes: a tuple, or None for all."""
    found = []
    for top in tops:
        for where, dirs, names in os.walk(os.path.join(ROOT, top)):
            dirs[:] = [d for d in dirs if d not in ("__pycache__", "build", ".git")]
            for name in names:
                if suffixes is None or name.endswith(suffixes):
                    found.append(os.path.relpath(os.path.join(where, name), ROOT))
    return sorted(found)


def c_files():
    return files("src", "tests", "bench", suffixes=(".c", ".h"))


def scripts():
    """Shell scripts, by their first line."""
    found = []
    for rel in files("build-aux", "tests", "bench", ".ci", "completions"):
        with open(os.path.join(ROOT, rel), "rb") as f:
            first = f.readline()
        if first.startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash")):
            found.append(rel)
    return found
