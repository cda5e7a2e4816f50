# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by the cli, live and agents suites; tests/run sets the environment."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

from stetlib import Hung, Stet, digest, make_tree  # noqa: E402


def binary():
    path = os.environ.get("STET_BIN")
    if not path:
        pytest.fail("STET_BIN is not set: run the tests with `make test` or tests/run")
    return path


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Tells the runner (xml_hung) which failures are programs that did not end."""
    report = (yield).get_result()
    if call.excinfo and call.excinfo.errisinstance((Hung, subprocess.TimeoutExpired)):
        item.user_properties.append(("hung", "yes"))
        report.user_properties = list(item.user_properties)


@pytest.fixture(name="home")
def fixture_home(tmp_path):
    """A home directory of our own, with nothing in it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    return home


@pytest.fixture(name="stet")
def fixture_stet(home):
    """The program under test: stet("status", "--json", cwd=...) -> Result."""
    stet = Stet(binary(), str(home))
    yield stet
    stet.end_all()


@pytest.fixture(name="work")
def fixture_work(home):
    """An empty workspace, in the home directory as people have it."""
    work = home / "work"
    work.mkdir()
    return work


@pytest.fixture(name="tree")
def fixture_tree():
    """tree(directory, spec): see make_tree()."""
    return make_tree


@pytest.fixture(name="digest")
def fixture_digest():
    """digest(path): see digest()."""
    return digest


@pytest.fixture(name="probe")
def fixture_probe():
    """The static program that tries what must not be possible."""
    path = os.environ.get("STET_PROBE", "")
    if not os.path.exists(path):
        pytest.fail("the probe is not built: run tests/run")
    return path


@pytest.fixture(name="filesystem")
def fixture_filesystem():
    """filesystem("xfs") -> the place of what the test file's NEEDS asked for."""
    def get(name):
        for entry in os.environ.get("STET_TEST_FS_DIR", "").split(":"):
            key, _, path = entry.partition("=")
            if key == name:
                return path
        if os.geteuid() == 0:
            pytest.fail(f"{name}: not prepared; name it in NEEDS, start by tests/run")
        return pytest.skip("impossible here: only root can prepare mounts")
    return get
