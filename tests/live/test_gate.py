# SPDX-License-Identifier: Apache-2.0
"""Every exec is judged, however it is done, and what runs is what was judged."""
import errno
import json
import os
import re
import signal
import shutil
import subprocess
import time

import pexpect
import pytest
from stetlib import processes_with, wait_until

POLICY = """
version: 1
off: [run.memory]
rules:
  - {id: test.deny, verdict: deny, program: ["*"], operands: [DENYME, "no"], why: it is a test,
     hint: echo fine}
  - {id: test.no, verdict: deny, program: ["no"], why: it is a test}
  - {id: test.copy, verdict: deny, program: [tac], why: a test of copies}
  - {id: test.kill, verdict: kill, program: ["*"], operands: [KILLME], why: it is a test}
  - {id: test.ask, verdict: ask, program: ["*"], operands: [ASKME], why: it is a test}
"""
MESSAGE = "stet: denied by test.deny: it is a test; rather: echo fine\n"


@pytest.fixture(name="judged")
def fixture_judged(stet, home):
    """stet run under the policy of this file."""
    (home / "policy.yaml").write_text(POLICY)

    def run(*argv, opts=(), **kw):
        return stet.run(*argv, opts=["--policy", home / "policy.yaml", *opts], **kw)
    return run


def script(work, text, name="script"):
    """A shell script as a file: in `sh -c` the policy would read it beforehand."""
    (work / name).write_text("#!/bin/bash\n" + text)
    (work / name).chmod(0o755)
    return f"./{name}"


WAYS = ["fork", "vfork", "spawn", "thread", "threads", "clone-vm", "at", "descriptor", "memfd",
        "memfd-name", "copy", "deleted", "symlink", "proc-root", "loader", "many-args",
        "after-failure", "traced", "full-pipe"]


def test_every_way_is_open(judged, work, probe):
    """Or the next test would prove nothing."""
    (work / "there").mkdir()
    r = judged(probe, *[f"exec-{w}=there/{w},fine" for w in WAYS], "exec-long-arg=x,fine",
               cwd=work, opts=["--on-success", "commit", "--accept-risky"]).ok()
    assert r.out == "".join(f"exec-{w}: ok\n" for w in WAYS + ["long-arg"])
    assert sorted(os.listdir(work / "there")) == sorted(WAYS)


def test_threads_that_execute_at_once(judged, work, probe):
    """Each wants to be the only one left: no order of theirs may stop the gate."""
    times = 200
    (work / "there").mkdir()
    r = judged(probe, *[f"exec-threads=there/{i},fine" for i in range(times)], cwd=work,
               opts=["--on-success", "commit"], timeout=240).ok()
    assert r.out == "exec-threads: ok\n" * times
    assert len(os.listdir(work / "there")) == times


def test_every_way_is_closed(judged, work, probe):
    (work / "there").mkdir()
    r = judged(probe, *[f"exec-{w}=there/{w},DENYME" for w in WAYS], "exec-long-arg=x,DENYME",
               cwd=work, opts=["--on-success", "commit", "--accept-risky"]).ok()
    assert r.out == "".join(f"exec-{w}: denied(EPERM)\n" for w in WAYS + ["long-arg"])
    assert os.listdir(work / "there") == []
    # One line for each refusal that could be written; of the threads any number tries.
    assert set(r.err.splitlines(True)) == {MESSAGE}
    assert r.err.count("\n") >= len(WAYS) - 1


def test_what_nobody_can_execute_is_not_judged(stet, work):
    """A file that merely has the name of a program is refused by the kernel, as outside."""
    shutil.copy("/usr/bin/touch", work / "passwd")
    (work / "passwd").chmod(0o644)
    for name in ("/etc/passwd", "./passwd"):
        for r in (stet.run(name, cwd=work), stet("exec", "--", name, cwd=work)):
            assert r.rc == 126 and "denied by" not in r.err, repr(r)
        (work / "try.py").write_text(f"import os\nos.execv({name!r}, ['x'])\n")
        r = stet.run("/usr/bin/python3", "try.py", cwd=work)
        assert "PermissionError: [Errno 13]" in r.err and "denied by" not in r.err
    (work / "passwd").chmod(0o755)
    for name in ("passwd", "./passwd"):
        assert "denied by users.password" in stet.run(name, "root", cwd=work).err


def test_other_abis_are_killed(judged, work, probe):
    r = judged(probe, "exec-int80=x,fine", "exec-x32=x,fine", cwd=work).ok()
    assert re.fullmatch(r"exec-int80: (killed\(31\)|denied\(ENOSYS\))\n"
                        r"exec-x32: (killed\(31\)|denied\(ENOSYS\))\n", r.out), repr(r)


def test_errors_are_the_kernels(judged, work, probe):
    r = judged(probe, "exec-errors=", "exec-bad-pointers", "exec-stop-after-failure",
               cwd=work).ok()
    assert r.out == "exec-errors: ok\nexec-bad-pointers: ok\nexec-stop-after-failure: ok\n"


def test_arguments_changed_meanwhile(judged, work, probe):
    """Another thread changes words, and the name: the forbidden one never runs."""
    for name in ("yes", "no"):
        shutil.copy(probe, work / name)
    r = judged(probe, f"exec-race-argv=500,{work}", f"exec-race-path=500,{work}", cwd=work,
               timeout=200).ok()
    for line in r.out.splitlines():
        n = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)}
        assert n["forbidden"] == 0, repr(r)
        # Both were tried, and both were seen.
        assert n["ran"] > 0 and n["refused"] + n["killed"] > 0, repr(r)
    assert len(r.out.splitlines()) == 2


def test_interpreter_of_a_script(judged, work):
    """The script's own name is harmless; what the kernel starts for it is not."""
    (work / "s").write_text("#!/usr/bin/touch DENYME\n")
    (work / "s").chmod(0o755)
    r = judged("./s", cwd=work, opts=["--on-success", "commit", "--on-failure", "commit"])
    assert r.rc == 128 + signal.SIGKILL, repr(r)
    assert MESSAGE in r.err
    assert not (work / "DENYME").exists()


@pytest.mark.parametrize("line", [
    "env touch DENYME", "env -S 'touch DENYME'", "exec -a ls touch DENYME",
    "nice touch DENYME", "timeout 5 touch DENYME", "busybox touch DENYME",
    "find . -maxdepth 0 -exec touch DENYME ';'", "echo DENYME | xargs touch",
    "python3 -c 'import os; os.system(\"touch DEN\" + \"YME\")'",
    "W=DENY; touch ${W}ME", "$(echo touch) DENYME", "perl -e 'exec \"touch\", \"DENYME\"'",
])
def test_wrappers(judged, work, line):
    r = judged(script(work, line), cwd=work,
               opts=["--on-success", "commit", "--on-failure", "commit"])
    assert not (work / "DENYME").exists(), repr(r)
    assert MESSAGE in r.err, repr(r)


def test_copies_are_recognised(judged, work):
    text = "echo one > f; cp /usr/bin/tac ./innocent; ./innocent f; ln -s /usr/bin/tac l; ./l f"
    r = judged(script(work, text), cwd=work)
    assert "one" not in r.out
    assert r.err.count("stet: denied by test.copy: a test of copies\n") == 2, repr(r)


def test_a_name_that_leads_elsewhere(judged, work):
    """What a path led to is remembered, which must neither open nor close anything."""
    text = """
echo one > f; n=$PWD/name
leads_to() { ln -sfn /usr/bin/$1 $n; }
leads_to cat; $n f; $n f
leads_to tac; $n f; echo $?; $n f; echo $?
leads_to cat; $n f
"""
    r = judged(script(work, text), cwd=work)
    # Killed as what it has become; refused as what it is known to be; and free again at once.
    assert r.out == f"one\none\n{128 + signal.SIGKILL}\n126\none\n", repr(r)
    assert r.err.count("stet: denied by test.copy: a test of copies\n") == 2, repr(r)


TRACED = """
import ctypes, os
name = os.getcwd() + "/name"
libc = ctypes.CDLL(None)
def leads_to(what):
    if os.path.lexists(name):
        os.unlink(name)
    os.symlink(what, name)
def run(traced):
    pid = os.fork()
    if pid == 0:
        if traced:
            libc.ptrace(0, 0, 0, 0)
        try:
            os.execv(name, ["name", "f"])
        except OSError as e:
            os._exit(e.errno)
    while not os.WIFEXITED(status := os.waitpid(pid, 0)[1]):
        libc.ptrace(7, pid, 0, 0)
    return os.WEXITSTATUS(status)
leads_to("/usr/bin/cat")
print(run(False), run(False), run(True))
leads_to("/usr/bin/tac")
print(run(True), flush=True)
"""


def test_no_second_look_at_what_is_remembered(judged, work):
    """Whoever has a debugger is looked at once: that has to be a look."""
    (work / "f").write_text("one\n")
    (work / "x.py").write_text(TRACED)
    r = judged("/usr/bin/python3", "x.py", cwd=work)
    assert r.out == f"one\none\none\n0 0 0\n{errno.EPERM}\n", repr(r)


def test_the_command_itself(judged, work):
    r = judged("touch", "DENYME", cwd=work)
    assert r.rc == 126
    assert r.err.startswith(MESSAGE)


def test_kill_ends_and_rolls_back(judged, stet, work):
    text = "touch before; /bin/true KILLME; touch after; echo still here"
    r = judged(script(work, text), cwd=work, opts=["--json", "--on-failure", "commit"])
    assert r.rc == 128 + signal.SIGKILL, repr(r)
    assert "still here" not in r.out
    result = json.loads(r.err.splitlines()[-1])
    assert (result["reason"], result["rule"]) == ("policy", "test.kill")
    assert result["fate"] == "rolled back"
    assert sorted(os.listdir(work)) == ["script"]
    assert stet.transactions()[0]["state"] == "rolled back"


def test_nobody_to_ask(judged, work):
    r = judged(script(work, "touch ASKME; echo $?"), cwd=work)
    assert r.out == "126\n"
    assert "stet: denied by test.ask: it is a test (it needs a person's consent: see stet help consent)\n" in r.err


def test_off(stet, judged, work):
    r = judged("true", cwd=work, opts=["--json", "--on-success", "keep"]).ok()
    assert re.fullmatch(r"[0-9a-f]{64}", json.loads(r.err)["txn"]["policy"])
    r = stet.run("touch", "DENYME", opts=["--no-policy", "--json"], cwd=work).ok()
    assert "policy" not in json.loads(r.err)["txn"]
    stet("run", "--policy", "x", "--no-policy", "--", "true", cwd=work).ok(125)


@pytest.mark.parametrize("text", [None, "version: 1\nrules: {", "version: 1\nunknown: 1\n"])
def test_a_policy_that_does_not_load(stet, work, text):
    """Nothing runs under half a policy."""
    if text is not None:
        (work / "p.yaml").write_text(text)
    r = stet("run", "--policy", "p.yaml", "--", "touch", "ran", cwd=work).ok(125)
    assert "p.yaml" in r.err
    assert not (work / "ran").exists()


def test_users_own_policy(stet, home, work):
    where = home / ".config" / "stet"
    where.mkdir(parents=True)
    (where / "policy.yaml").write_text(POLICY)
    assert stet.run("touch", "DENYME", cwd=work).rc == 126


def test_explore_is_judged(stet, home, work):
    where = home / ".config" / "stet"
    where.mkdir(parents=True)
    stet.run("touch", "f", cwd=work).ok()
    (where / "policy.yaml").write_text(POLICY)
    r = stet("explore", "--quiet", "--", "touch", "DENYME", cwd=work)
    assert r.rc == 126 and MESSAGE in r.err


def test_message_goes_where_errors_go(judged, work):
    text = """touch DENYME 2> file; touch DENYME 2>> file; touch DENYME 2>&-
    touch DENYME 2> /dev/full; touch DENYME 2< /dev/null; echo done"""
    r = judged(script(work, text), cwd=work, opts=["--on-success", "commit", "--accept-risky"]).ok()
    assert r.out == "done\n"
    lines = (work / "file").read_text().splitlines(True)
    assert lines.count(MESSAGE) == 2, lines


def test_renames_and_execs_together(judged, work):
    """One listener serves both; neither waits for the other."""
    for i in range(20):
        (work / f"d{i}" / "sub").mkdir(parents=True)
        (work / f"d{i}" / "sub" / "f").write_text("x")
    text = """for i in {0..19}; do mv d$i e$i & /bin/true; /bin/echo $i & done; wait
    ls -d e*/sub | wc -l"""
    r = judged(script(work, text), cwd=work, timeout=120).ok()
    assert r.out.splitlines()[-1] == "20", repr(r)
    assert sorted(int(x) for x in r.out.splitlines()[:-1]) == list(range(20))


def test_many_at_once(judged, work):
    r = judged("sh", "-c", "seq 400 | xargs -P 16 -n 1 /bin/echo", cwd=work, timeout=120).ok()
    assert sorted(int(x) for x in r.out.split()) == list(range(1, 401))


def pid_1_of(stet_pid):
    out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(stet_pid)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return int(out.split()[0])


@pytest.mark.parametrize("whom", ["supervisor", "caller"])
def test_without_the_supervisor_nothing_goes_on(stet, home, work, whom):
    (home / "policy.yaml").write_text(POLICY)
    mark = f"gate-{whom}-{os.getpid()}-{time.monotonic_ns()}"
    text = f"touch ready; while :; do /bin/sleep 0.01 # {mark}\ndone"
    p = stet.popen("run", "--quiet", "--policy", home / "policy.yaml", "--", "bash", "-c", text,
                   cwd=work)
    wait_until(lambda: len(processes_with(mark)) > 1)
    os.kill(pid_1_of(p.pid) if whom == "supervisor" else p.pid, signal.SIGKILL)
    p.wait(30)
    assert p.returncode != 0
    wait_until(lambda: not processes_with(mark))


def on_terminal(stet, home, work, text):
    (home / "policy.yaml").write_text(POLICY)
    c = pexpect.spawn(stet.path, ["run", "--quiet", "--on-success", "rollback", "--policy",
                                  str(home / "policy.yaml"), "--", script(work, text)],
                      cwd=str(work), env=stet.environ({"PAGER": "cat"}), encoding="utf-8",
                      timeout=40, dimensions=(24, 120))
    c.delaybeforesend = None
    return c


QUESTION = r"may this run\?  /bin/echo first ASKME\r\n  rule test.ask: it is a test\r\n.*\? "


def test_a_person_decides(stet, home, work):
    text = "echo begin; /bin/echo first ASKME; echo =$?; /bin/echo second ASKME; echo =$?"
    c = on_terminal(stet, home, work, text)
    c.expect("begin\r\n")
    c.expect(QUESTION)
    for answer in ("", "yo", "also", "nope", "x" * 300 + "y", "dy"):
        c.send(answer + "\r")
        c.expect_exact("type y, n, a or d, or the word\r\n")
        c.expect(r"\[d\]iff \? ")
    c.send("yes\r")
    c.expect("first ASKME\r\n=0\r\n")
    c.expect(r"second ASKME\r\n.*\? ")
    c.send("N\r")
    c.expect("stet: denied by test.ask")
    c.expect("=126\r\n")
    c.expect(pexpect.EOF)


def test_a_person_looks_and_agrees_for_good(stet, home, work):
    text = "echo new > made; /bin/echo first ASKME; /bin/echo second ASKME; stty -a | grep icanon"
    c = on_terminal(stet, home, work, text)
    c.expect(QUESTION)
    c.send("d\r")
    c.expect(r"\+new")
    c.expect(r"\[d\]iff \? ")
    c.send("al\r")
    c.expect("first ASKME\r\nsecond ASKME\r\n")
    c.expect(" icanon")
    c.expect(pexpect.EOF)


@pytest.mark.parametrize("keys", ["\x03", "y\x03", "\x04"])
def test_interrupting_the_question_is_a_no(stet, home, work, keys):
    c = on_terminal(stet, home, work, "/bin/echo first ASKME; echo =$?")
    c.expect(QUESTION)
    c.send(keys)
    c.expect("=126\r\n")
    c.expect(pexpect.EOF)


def test_strict_profile(stet, work, probe):
    """A debugger inside: unverified by default, denied in the strict profile."""
    strict = os.path.join(os.environ["STET_SOURCE"], "policy", "strict.yaml")
    env = {"SECRET_OF_MINE": "x"}
    r = stet.run(probe, "exec-traced=traced,fine", cwd=work, opts=["--policy", strict], env=env)
    assert "exec-traced: ok" not in r.out and not (work / "traced").exists()
    r = stet.run("sh", "-c", "env", cwd=work, opts=["--policy", strict], env=env).ok()
    assert "SECRET_OF_MINE" not in r.out and "HOME=" in r.out
    r = stet.run("env", cwd=work, opts=["--policy", strict, "-e", "SECRET_OF_MINE"], env=env).ok()
    assert "SECRET_OF_MINE=x" in r.out


def test_waiting_project_policy_is_said(stet, work):
    (work / ".stet.yaml").write_text("version: 1\n")
    assert ".stet.yaml is not allowed yet" in stet("run", "--", "true", cwd=work).ok().err
    assert ".stet.yaml" not in stet("run", "-q", "--", "true", cwd=work).ok().err
    r = stet("exec", "--json", "--", "true", cwd=work).ok().json()
    assert r["project_policy"] == "waiting"
    stet("allow", cwd=work).ok()
    assert ".stet.yaml" not in stet("run", "--", "true", cwd=work).ok().err
    (work / ".stet.yaml").write_text("version: 1\ndefault: allow\n")
    assert ".stet.yaml has changed" in stet("run", "--", "true", cwd=work).ok().err
