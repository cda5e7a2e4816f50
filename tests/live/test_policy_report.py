# SPDX-License-Identifier: Apache-2.0
"""A few destructive commands of the corpus, run for real with canaries outside."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_nothing_gets_out(stet):
    if os.geteuid() == 0:
        pytest.skip("impossible here: it is for an ordinary user, who runs it as well")
    p = subprocess.run([sys.executable, f"{ROOT}/tests/policy/report", "--sample", "300",
                        "--no-text", "--stet", stet.path],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    assert p.returncode == 0, p.stdout
    assert p.stdout.splitlines()[-1].endswith(" passed, 0 failed")
