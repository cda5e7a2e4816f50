# SPDX-License-Identifier: Apache-2.0
"""The test runner itself: what it counts, what it tries again, and what a skip is."""
import os
import pwd
import sys

import pytest
from source import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import harness  # noqa: E402
from identity import Identity  # noqa: E402

WHO = Identity(pwd.getpwuid(os.geteuid()).pw_name, "me")


class Places:
    """Directories for jobs, below one that pytest removes."""

    def __init__(self, top):
        self.top, self.n = top, 0

    def new(self, _who):
        self.n += 1
        (self.top / f"j{self.n}").mkdir()
        return str(self.top / f"j{self.n}")


def counted(report, suite="s"):
    c = report.suites.get(suite) or harness.Count(suite)
    return c.passed, c.failed, c.impossible


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def run_file(tmp_path, text, again=True):
    """The report on a file of tests, with what was tried again."""
    places, report = Places(tmp_path), harness.Report()
    file = tmp_path / "test_it.py"
    file.write_text(text)
    env = dict(os.environ, ASAN_OPTIONS="", MARK=str(tmp_path / "mark"))
    harness.pytest_job(report, "s", str(file), env, WHO, places.new(WHO), [])
    if again:
        harness.try_again(report, places)
    return report


@pytest.mark.parametrize("text,status,want", [
    ("1..2\nok 1 - a\nok 2 - b\n", 0, (2, 0)),
    ("1..2\nok 1 - a\nnot ok 2 - b\n", 1, (1, 1)),
    ("1..2\nok 1 - a\nok 2 # SKIP\n", 0, (1, 1)),  # a unit test has no reason to be skipped
    ("1..3\nok 1 - a\n", 139, (1, 2)),  # the others were not reached
    ("1..1\nok 1 - a\n", 1, (1, 1)),  # the sanitizers found something at the end
    ("", 0, (0, 1)),
])
def test_unit_programs_are_counted(text, status, want):
    assert harness.tap(text, status) == want


@pytest.mark.parametrize("case,want", [
    ("<testcase name='a'/>", (1, 0, 0, "")),
    ("<testcase name='a'><failure/></testcase>", (0, 1, 0, "")),
    ("<testcase name='a'><error/></testcase>", (0, 1, 0, "")),
    ("<testcase name='a'><skipped message='no time'/></testcase>",
     (0, 1, 0, "skipped a: no time")),
    ("<testcase name='a'><skipped message='impossible here: no btrfs'/></testcase>",
     (0, 0, 1, "")),
    ("<testcase name='a'><skipped message='Skipped: impossible here: x'/></testcase>",
     (0, 0, 1, "")),
    ("<testcase name='a'><skipped message='quite impossible'/></testcase>",
     (0, 1, 0, "skipped a: quite impossible")),
])
def test_results_are_counted(tmp_path, case, want):
    xml = tmp_path / "result.xml"
    xml.write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    assert harness.xml_count(xml) == want


def test_a_skip_is_a_failure(tmp_path, capsys):
    report = run_file(tmp_path, "import pytest\n"
                      "def test_a(): pytest.skip('no time')\n"
                      "def test_b(): pytest.skip('impossible here: no time')\n")
    assert counted(report) == (0, 1, 1)
    assert not report.again
    assert "skipped test_a: no time" in capsys.readouterr().out


def test_what_failed_is_tried_once_more(tmp_path):
    """By itself, and what passed is not counted twice."""
    report = run_file(tmp_path, "import os\n"
                      "def test_good(): pass\n"
                      "def test_once():\n"
                      "    first = not os.path.exists(os.environ['MARK'])\n"
                      "    open(os.environ['MARK'], 'a').close()\n"
                      "    assert not first\n"
                      "def test_bad(): assert 0\n")
    assert counted(report) == (2, 1, 0)
    assert report.total() == (2, 1)


def test_what_hung_is_not_tried_again(tmp_path):
    report = run_file(tmp_path, "def test_a(record_property):\n"
                      "    record_property('hung', 'stet')\n"
                      "    assert 0\n", again=False)
    assert counted(report) == (0, 1, 0)
    assert not report.again


def test_many_failures_are_no_accident(tmp_path):
    text = "".join(f"def test_{i}(): open({str(tmp_path / 'tries')!r}, 'a').write('x'); assert 0\n"
                   for i in range(harness.ACCIDENTS + 1))
    report = run_file(tmp_path, text)
    assert counted(report) == (0, harness.ACCIDENTS + 1, 0)
    assert (tmp_path / "tries").read_text() == "x" * (harness.ACCIDENTS + 1)


def test_a_file_that_breaks_has_failed(tmp_path):
    report = run_file(tmp_path, "import os\nos._exit(0)\n")
    assert counted(report) == (0, 1, 0)


def test_a_unit_program_is_tried_once_more(tmp_path):
    exe = script(tmp_path / "test_x", f"echo 1..1\n[ -e {tmp_path}/mark ] && echo 'ok 1 - a' && exit\n"
                 f"touch {tmp_path}/mark\necho 'not ok 1 - a'\nexit 1\n")
    report = harness.Report()
    harness.unit_job(report, "s", exe, {}, WHO, tmp_path)
    assert counted(report) == (1, 0, 0)


@pytest.mark.parametrize("text,want", [
    ("echo 3 passed, 1 failed; exit 1", (3, 1, 0)),
    ("echo 3 passed, 0 failed", (3, 0, 0)),
    ("echo 3 passed, 0 failed; exit 1", (3, 1, 0)),
    ("echo all is well", (0, 1, 0)),
])
def test_programs_that_count_for_themselves(tmp_path, text, want):
    report = harness.Report()
    harness.program_job(report, "s", [script(tmp_path / "p", text)], dict(os.environ))
    assert counted(report) == want


@pytest.mark.parametrize("args", [["quick", "live"], ["live", "quick"], ["nothing"], ["-x"]])
def test_unknown_suites_are_refused(args, capsys):
    assert harness.main(args) == 2
    assert "usage:" in capsys.readouterr().err


def test_what_quick_runs():
    assert [s for s in ("meta", "unit", "cli", "live", "torture")
            if harness.is_wanted(harness.QUICK, (s, "release", "root"))] == \
        ["meta", "unit", "torture"]
