# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the agent's tests."""
import os
import subprocess

import pytest
from modelserver import ModelServer
from qwenlib import PROJECT, SCRIPT

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(name="qwen", scope="session")
def fixture_qwen():
    """The agent's program; tests/run has installed it, in a cache, before."""
    installer = os.path.join(os.environ.get("STET_SOURCE", f"{HERE}/../.."),
                             "build-aux", "agents")
    r = subprocess.run([installer, "qwen"], stdout=subprocess.PIPE, text=True, check=False)
    assert r.returncode == 0, "the agent cannot be installed"
    return r.stdout.strip()


@pytest.fixture(name="server")
def fixture_server():
    with ModelServer(SCRIPT) as server:
        yield server


@pytest.fixture(name="project")
def fixture_project(work, tree):
    tree(work, PROJECT)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True,
                   env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    return work
