# SPDX-License-Identifier: Apache-2.0
"""One command, one transaction: all of it, or nothing."""
import json
import os
import signal
import stat
import subprocess

import pytest
from stetlib import SLOW, differences, digest, make_tree, processes_with, wait_until

TREE = {"a": "one\n", "dir": {"b": "two\n"}, "gone": "three\n"}
WORK = "echo changed > a; mkdir new; echo n > new/n; rm gone; echo more >> dir/b"


@pytest.fixture(name="project")
def fixture_project(work):
    make_tree(work, TREE)
    return work


def exec_json(stet, *args, rc=0, **kw):
    return stet("exec", "--json", *args, **kw).ok(rc).json()


def pending(stet):
    return [t for t in stet.transactions() if t["state"] not in ("committed", "rolled back")]


@pytest.mark.parametrize("opts, command, rc, said", [
    ([], "echo x > a", 0, ""),
    ([], "echo x > a; exit 3", 3, ""),
    ([], "echo x > ~/kept", 125, "1 change deserves a look first"),
    (["--check", "false"], "echo x > a", 1, "check false: exit status 1"),
    (["--timeout", "300ms"], "sleep 9", 124, "time limit reached"),
    (["--pids", "2"], "sleep 9 & sleep 9 & wait", 137, "number of processes limit of 2 passed"),
], ids=["committed", "exit", "look", "check", "timeout", "limit"])
def test_quiet_says_what_an_exit_status_does_not(stet, project, opts, command, rc, said):
    make_tree(stet.home, {"kept": "mine\n"})
    r = stet("exec", "-q", *opts, "--", "bash", "-c", command, cwd=project).ok(rc)
    assert said in r.err if said else r.err == ""


def test_success_is_committed(stet, project):
    r = exec_json(stet, "--", "sh", "-c", WORK + "; echo out; echo err >&2", cwd=project)
    assert (r["ok"], r["reason"], r["fate"], r["exit"]) == (True, "done", "committed", 0)
    assert (r["stdout"], r["stderr"]) == ("out\n", "err\n")
    assert {(c["kind"], os.path.relpath(c["path"], project)) for c in r["changes"]} == {
        ("M", "a"), ("A", "new"), ("A", "new/n"), ("D", "gone"), ("M", "dir/b")}
    assert r["total_ms"] >= r["overhead_ms"] > 0
    assert (project / "a").read_text() == "changed\n"
    assert (project / "new/n").exists() and not (project / "gone").exists()
    stet("undo", cwd=project).ok()
    assert (project / "a").read_text() == "one\n" and (project / "gone").exists()


# Long enough for what comes before the sleep.
BRIEF = f"{300 * SLOW:.0f}ms"
FAILURES = {
    "exit": ([], "exit 3", 3, "exit"),
    "signal": ([], "kill -KILL $$", 137, "signal"),
    "check": (["--check", "true", "--check", "exit 4"], "true", 4, "check"),
    "check sees": (["--check", "grep one a"], "true", 1, "check"),
    "timeout": (["--timeout", BRIEF], "sleep 600", 124, "timeout"),
    "stubborn": (["--timeout", BRIEF], "trap '' TERM; while :; do sleep 1; done", 124,
                 "timeout"),
    "check timeout": (["--timeout", f"{2 * SLOW:.0f}s", "--check", "sleep 600"], "true", 124,
                      "timeout"),
    "setuid": ([], "cp /bin/true suid; chmod u+s suid", 125, "policy"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_anything_else_is_rolled_back(stet, project, name):
    opts, script, rc, reason = FAILURES[name]
    stet.ready()
    before = digest(project)
    r = exec_json(stet, *opts, "--", "sh", "-c", WORK + "; " + script, cwd=project, rc=rc)
    assert (r["ok"], r["reason"], r["fate"]) == (False, reason, "rolled back"), r
    assert r["status"] == rc
    assert not differences(before, digest(project))
    assert not pending(stet)


def test_a_command_that_is_not_there(stet, project):
    r = exec_json(stet, "--", "no-such-command", cwd=project, rc=127)
    assert (r["reason"], r["fate"]) == ("not executed", "dropped")
    (project / "plain").write_text("x")
    assert exec_json(stet, "--", "./plain", cwd=project, rc=126)["reason"] == "not executed"


def test_conflict_with_the_host(stet, project):
    """What changed on the host while the command ran stays, and so does everything else."""
    fifo = project.parent / "fifo"
    os.mkfifo(fifo)
    p = stet.popen("exec", "--json", "--", "sh", "-c", "echo mine > a; echo x > b; echo; read x",
                   cwd=project, stdin=subprocess.PIPE)
    state = os.path.join(stet.state, "tx")
    wait_until(lambda: any("a" in names for _, _, names in os.walk(state)))
    (project / "a").write_text("theirs\n")
    out, err = p.communicate(b"\n", 60)
    assert p.returncode == 125, err
    r = json.loads(out)
    assert (r["reason"], r["fate"]) == ("conflict", "rolled back")
    assert [os.path.basename(c["path"]) for c in r["error"]["conflicts"]] == ["a"]
    assert r["error"]["hint"].startswith("stet undo t1 makes it pending again")
    assert (project / "a").read_text() == "theirs\n" and not (project / "b").exists()
    assert not pending(stet)


def test_checks_work_on_what_the_command_left(stet, project):
    r = exec_json(stet, "--check", "grep -q changed a && echo seen && echo c > from-check",
                  "--check", "test -f from-check", "--", "sh", "-c", WORK, cwd=project)
    assert [c["ok"] for c in r["checks"]] == [True, True]
    assert r["checks"][0]["stdout"] == "seen\n"
    assert (project / "from-check").read_text() == "c\n"


def test_checks_do_not_eat_the_input(stet, project):
    """What the command left of standard input is not given to a check."""
    r = exec_json(stet, "--check", "test -z \"$(cat)\"", "--", "head", "-c", "3", cwd=project,
                  input="abcdef")
    assert r["stdout"] == "abc"


@pytest.mark.parametrize("away", ["rm -r ../dir", "mv ../dir ../moved", "rm -r ../dir; > ../dir"])
def test_a_working_directory_that_goes_away(stet, project, away):
    """Its end is a change like others; checks have no place then, and none is made up."""
    where = {"cwd": project / "dir"}
    before = digest(project)
    opts = ["--workspace", str(project), "--check", "true"]
    r = exec_json(stet, *opts, "--", "sh", "-c", away, rc=126 if ">" in away else 127, **where)
    assert (r["reason"], r["fate"], r["checks"][0]["ok"]) == ("check", "rolled back", False)
    assert r["checks"][0]["no_directory"] and "not_executed" not in r
    r = stet("exec", *opts, "--", "sh", "-c", away, **where)
    assert "check true: the working directory cannot be entered" in r.err
    assert not differences(before, digest(project)) and not pending(stet)
    stet("run", "--workspace", str(project), "--name", "look", "--", "sh", "-c", away, **where).ok()
    assert stet("explore", "-q", "look", "--", "pwd", **where).ok().out == f"{project}\n"
    stet("rollback", "look", **where).ok()
    assert exec_json(stet, *opts[:2], "--", "sh", "-c", away, **where)["fate"] == "committed"
    assert not os.path.isdir(project / "dir")


def test_processes_of_the_command_do_not_meet_the_checks(stet, project):
    mark = f"9{os.getpid()}7"
    exec_json(stet, "--check", f"! grep -aq '[{mark[0]}]{mark[1:]}' /proc/[2-9]*/cmdline", "--", "sh", "-c",
              f"sleep {mark} & true", cwd=project)
    # Our own words hold the mark, too, and so does who tidies up, until it is executed.
    assert not processes_with(f"sleep\0{mark}")


def test_keep_on_failure(stet, project):
    before = digest(project)
    r = exec_json(stet, "--keep-on-failure", "--", "sh", "-c", WORK + "; exit 1", cwd=project, rc=1)
    assert r["fate"] == "pending"
    assert not differences(before, digest(project))
    assert [t["id"] for t in pending(stet)] == [r["txn"]["id"]]
    stet("commit", r["txn"]["id"], cwd=project).ok()
    assert (project / "a").read_text() == "changed\n"


def test_output_is_bounded(stet, project):
    r = exec_json(stet, "--output", "1K", "--check", "seq 1000", "--", "sh", "-c",
                  "seq 2000; printf 'caf\\303\\251' >&2", cwd=project)
    whole = "".join(f"{i}\n" for i in range(1, 2001))
    assert r["stdout"] == whole[:1024] and r["stdout_bytes"] == len(whole)
    with open(r["stdout_file"], encoding="utf-8") as f:
        assert f.read() == whole
    assert stat.S_IMODE(os.stat(r["stdout_file"]).st_mode) == 0o600
    assert r["stderr"] == "café" and "stderr_file" not in r
    with open(r["checks"][0]["stdout_file"], encoding="utf-8") as f:
        assert len(f.read()) == r["checks"][0]["stdout_bytes"]


def test_bytes_that_are_no_text(stet, project):
    r = exec_json(stet, "--", "printf", r"a\377b", cwd=project)
    assert r["stdout"] == "a\ufffdb" and r["stdout_b64"] == "Yf9i"


def test_streams_pass_through_without_json(stet, project):
    r = stet("exec", "--check", "echo from the check", "--", "sh", "-c",
             "cat; echo err >&2; echo x > x", cwd=project, input="in\n").ok()
    assert r.out == "in\n"
    assert "err\n" in r.err and "from the check\n" in r.err and "committed: 1 added" in r.err
    assert stet("exec", "-q", "--", "true", cwd=project).ok().err == ""
    r = stet("exec", "--check", "exit 5", "--", "true", cwd=project).ok(5)
    assert "check exit 5: exit status 5" in r.err


def test_environment(stet, project):
    r = exec_json(stet, "--clean-env", "-e", "A=1", "--", "sh", "-c",
                  'echo "$A $SECRET $STET_TXN"', cwd=project, env={"SECRET": "s"})
    assert r["stdout"] == f"1  {r['txn']['id']}\n"


def kill_in(stet, project, script, ready, *opts):
    """Runs until `ready` is true, then kills stet, and waits for all of it to be gone."""
    p = stet.popen("exec", *opts, "--", "sh", "-c", script, cwd=project)
    wait_until(ready)
    p.send_signal(signal.SIGKILL)
    p.wait()


@pytest.mark.parametrize("where", ["command", "check"])
def test_our_own_death_rolls_back(stet, project, where):
    mark = f"8{os.getpid()}1"
    before = digest(project)
    opts, script = [], WORK + f"; sleep {mark}"
    if where == "check":
        opts, script = ["--check", f"sleep {mark}"], WORK
    kill_in(stet, project, script, lambda: processes_with(f"sleep\0{mark}"), *opts)
    wait_until(lambda: not processes_with(f"sleep\0{mark}"))
    # Whatever verb comes next: it finds nothing pending.
    assert [t["state"] for t in stet.transactions()] == ["rolled back"]
    assert not differences(before, digest(project))
    # What an undo brings back is an ordinary transaction, and stays.
    stet("undo", cwd=project).ok()
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    stet("commit", cwd=project).ok()
    assert (project / "a").read_text() == "changed\n"


def test_another_verb_leaves_a_running_one_alone(stet, project):
    mark = f"7{os.getpid()}3"
    p = stet.popen("exec", "--", "sh", "-c", WORK + f"; exec sleep {mark}", cwd=project)
    wait_until(lambda: processes_with(f"sleep\0{mark}"))
    assert [t["state"] for t in stet.transactions()] == ["running"]
    stet("recover").ok()
    assert [t["state"] for t in stet.transactions()] == ["running"]
    p.send_signal(signal.SIGTERM)
    assert p.wait(60) == 143
    assert [t["state"] for t in stet.transactions()] == ["rolled back"]


def test_with_keep_on_failure_a_death_leaves_it_interrupted(stet, project):
    mark = f"6{os.getpid()}5"
    kill_in(stet, project, WORK + f"; sleep {mark}", lambda: processes_with(f"sleep\0{mark}"),
            "--keep-on-failure")
    wait_until(lambda: not processes_with(f"sleep\0{mark}"))
    assert [t["state"] for t in stet.transactions()] == ["interrupted"]
