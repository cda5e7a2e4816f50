# SPDX-License-Identifier: Apache-2.0
"""If a part of the sandbox cannot be built, nothing runs."""
import os
import subprocess

import pytest
from stetlib import Result

ROOT = os.geteuid() == 0


def wrapped(stet, wrapper, work, *opts):
    """stet run under a wrapper that takes something away."""
    argv = [*wrapper, stet.path, "run", *opts, "--", "bash", "-c", "echo RAN; touch ran"]
    p = subprocess.run(argv, cwd=work, env=stet.environ(), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    return Result(argv, p.returncode, p.stdout, p.stderr)


def refused(stet, work, r):
    assert r.rc == 125, repr(r)
    assert "RAN" not in r.out
    assert not os.path.exists(work / "ran")
    lines = r.err.strip().splitlines()
    assert lines and lines[0].startswith("stet: "), repr(r)
    assert len(lines) <= 2, "one line that says what failed, one that says what to do"
    # Nothing half-made is left either.
    assert [t for t in stet.transactions() if t["state"] not in ("pruned", "rolled back")] == []


def test_no_user_namespaces(stet, work):
    """The limit is set in a namespace of its own: the machine does not notice."""
    if ROOT:
        wrapper = ["unshare", "--user", "--map-root-user"]
    else:
        wrapper = ["unshare", "--user", "--map-current-user", "--keep-caps"]
    wrapper += ["bash", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && "
                "exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"", "bash"]
    refused(stet, work, wrapped(stet, wrapper, work))


def test_no_mount_namespaces(stet, work):
    wrapper = (["unshare", "--user", "--map-root-user"] if ROOT else
               ["unshare", "--user", "--map-current-user", "--keep-caps"])
    wrapper += ["bash", "-c", "echo 0 > /proc/sys/user/max_mnt_namespaces && "
                "exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"", "bash"]
    refused(stet, work, wrapped(stet, wrapper, work))


@pytest.mark.skipif(not ROOT, reason="impossible here: an ordinary user has no capabilities")
@pytest.mark.parametrize("cap", ["sys_admin", "setfcap,-setuid"])
def test_root_without_the_power(stet, work, cap):
    wrapper = ["setpriv", f"--bounding-set=-{cap}", f"--inh-caps=-{cap}"]
    r = wrapped(stet, wrapper, work)
    if r.rc == 0 and cap != "sys_admin":
        assert "RAN" in r.out and not os.path.exists(work / "ran")
    else:
        refused(stet, work, r)


@pytest.mark.skipif(ROOT, reason="impossible here: root has no limit of processes")
def test_no_more_processes(stet, work):
    # A limit of one is always reached: the process that asks counts itself.
    refused(stet, work, wrapped(stet, ["prlimit", "--nproc=1:1"], work))


@pytest.mark.parametrize("limit", ["--nofile=8:8", "--nofile=12:12", "--nofile=16:16"])
def test_few_descriptors(stet, work, limit):
    """Whole or not at all."""
    r = wrapped(stet, ["prlimit", limit], work, "--on-success", "rollback")
    if r.rc == 0:
        assert r.out == "RAN\n"
        assert not os.path.exists(work / "ran")
    else:
        assert r.rc == 125, repr(r)
        assert "RAN" not in r.out


def test_enough_descriptors(stet, work):
    assert wrapped(stet, ["prlimit", "--nofile=64:64"], work, "--on-success",
                   "rollback").ok().out == "RAN\n"


def test_a_limit_of_file_sizes(stet, work):
    """It makes writes fail; it does not end us without a word."""
    r = wrapped(stet, ["prlimit", "--fsize=0:0"], work)
    refused(stet, work, r)
    assert r.err.endswith("; a limit of file sizes is set; lift it: ulimit -f unlimited\n")


@pytest.mark.parametrize("opts", [
    ["--hide", "/no-such-path-here"], ["--read-only", "/no-such-path-here"],
    ["--write-through", "/no-such-path-here"], ["--read-only", "/proc"],
    ["--write-through", "/proc/sys"], ["--hide", "/proc/sys"], ["--hide", "/dev/null"],
    ["--write-through", "/dev/null"], ["--read-only", ".", "--write-through", "."],
])
def test_a_wish_that_cannot_be_met(stet, work, opts):
    refused(stet, work, wrapped(stet, [], work, *opts))


def test_workspace_in_proc(stet, work):
    refused(stet, work, wrapped(stet, [], work, "--workspace", "/proc/self"))
