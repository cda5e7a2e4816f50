# SPDX-License-Identifier: Apache-2.0
"""The command line: what it refuses, what it prints, and to whom."""
import base64
import json
import os
import re
import subprocess

import pexpect
import pytest

VERBS = ["run", "exec", "status", "diff", "commit", "rollback", "undo", "redo",
         "checkpoint", "show", "restore", "fork", "log", "audit", "list", "explore",
         "forget", "prune", "check", "recover", "doctor",
         "policy check", "policy show", "policy test", "policy explain", "allow", "consent",
         "version", "help", "completion"]

# (words, exit status, the whole message)
BAD = [
    (["stauts"], 1, r"unknown command 'stauts'; did you mean: stet status"),
    (["policy"], 1, r"policy: a second word is missing; stet policy check, stet policy show, .*"),
    (["policy", "--help"], 1, r"policy: a second word is missing; stet policy check, .*"),
    (["help", "policy"], 1, r"policy: a second word is missing; stet policy check, .*"),
    (["frobnicate"], 1, r"unknown command 'frobnicate'; see: stet help"),
    (["--frobnicate"], 1, r"unknown option '--frobnicate' before the verb; see: stet help"),
    ([""], 1, r"unknown command ''; see: stet help"),
    (["help", "stauts"], 1, r"unknown command 'stauts'; did you mean: stet status"),
    (["status", "--nope"], 1, r"status: unknown option '--nope'; see: stet help status"),
    (["status", "-x"], 1, r"status: unknown option '-x'; see: stet help status"),
    (["status", "a", "b"], 1, r"status: unexpected operand 'b'; see: stet help status"),
    (["list", "t1"], 1, r"list: unexpected operand 't1'; see: stet help list"),
    (["list", "--json=1"], 1, r"list: --json takes no argument; see: stet help list"),
    (["diff", "--color=pink"], 1,
     r"diff: --color: 'pink' is not auto, always or never; see: stet help diff"),
    (["completion"], 1, r"completion: SHELL is missing; see: stet help completion"),
    (["completion", "tcsh"], 1,
     r"completion: SHELL: 'tcsh' is not bash, zsh or fish; see: stet help completion"),
    (["run"], 125, r"run: COMMAND is missing; see: stet help run"),
    (["run", "--"], 125, r"run: COMMAND is missing; see: stet help run"),
    (["run", "--nope", "--", "true"], 125,
     r"run: unknown option '--nope'; see: stet help run"),
    (["run", "--timeout", "soon", "true"], 125,
     r"run: --timeout: 'soon' is not a time such as 90s, 5m or 2h; see: stet help run"),
    (["run", "--timeout"], 125, r"run: --timeout needs an argument: TIME; see: stet help run"),
    (["run", "--tmp", "public", "true"], 125,
     r"run: --tmp: 'public' is not private or host; see: stet help run"),
    (["run", "--on-success", "push", "true"], 125,
     r"run: --on-success: 'push' is not commit, keep or rollback; see: stet help run"),
    (["forget", "--keep-last", "0"], 1,
     r"forget: --keep-last: '0' is not a number from 1 on; see: stet help forget"),
    (["forget", "--keep-last", "3x"], 1,
     r"forget: --keep-last: '3x' is not a number from 1 on; see: stet help forget"),
    (["forget", "--keep-last", "3", "t1"], 1,
     r"forget: either transactions or limits, not both; see: stet help forget"),
    (["forget", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["commit"], 1, r"no transaction in .*; .*stet run -- COMMAND.*"),
    (["commit", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["undo"], 4, r"nothing to undo in .*; see: stet log --ops"),
    (["redo"], 4, r"nothing to redo in .*; see: stet log --ops"),
    (["undo", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["redo", "nowhere"], 1, r"there is no transaction named nowhere; see: stet list"),
    (["log", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["run", "--env", "=x", "true"], 125,
     r"--env '=x': no name; write --env NAME=VALUE, or --env NAME"),
    (["run", "--name", "a/b", "true"], 125, r"--name: not a name for a transaction; use .*"),
    (["run", "--name", "", "true"], 125, r"--name: not a name for a transaction; use .*"),
    (["run", "--name", "t7", "true"], 125, r"--name 't7' would be taken for a number; .*"),
    (["run", "--name", "7", "true"], 125, r"--name '7' would be taken for a number; .*"),
    (["run", "--workspace", "no-such", "true"], 125,
     r"workspace: no-such: No such file or directory.*"),
    (["run", "--workspace", "/etc/passwd", "true"], 125,
     r"workspace /etc/passwd: not a directory; .*"),
    (["run", "--workspace", "", "true"], 125, r"workspace: empty path.*"),
    (["run", "--hide", "no-such", "true"], 125,
     r"--hide: no-such: No such file or directory.*"),
    (["run", "--read-only", "", "true"], 125, r"--read-only: empty path.*"),
    (["status"], 1, r"no transaction in .*; .*stet run -- COMMAND.*"),
    (["status", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["diff", "no-such-name"], 1, r"there is no transaction named no-such-name; see: stet list"),
    (["rollback", "--dry-run", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["status", ""], 1, r"there is no transaction named ''; see: stet list"),
    (["run", "-q", "--", ""], 127, r"'': command not found"),
    (["prune", "t99"], 1, r"there is no transaction 99; see: stet list"),
    (["explore", "t99"], 125, r"there is no transaction 99; see: stet list"),
    (["explore", "t1", "cmd"], 125,
     r"explore: unexpected operand 'cmd'; see: stet help explore"),
]


@pytest.mark.parametrize("words,status,message", BAD, ids=lambda v: " ".join(v)
                         if isinstance(v, list) else None)
def test_bad_lines(stet, work, words, status, message):
    r = stet(*words, cwd=work)
    assert r.rc == status, repr(r)
    assert r.out == ""
    assert re.fullmatch(f"stet: {message}\n", r.err), repr(r)


@pytest.mark.parametrize("words,status,kind", [
    (["status", "--json", "--nope"], 1, "usage"), (["status", "--nope", "--json"], 1, "usage"),
    (["status", "--json"], 1, "usage"), (["help", "--json", "nope"], 1, "usage"),
])
def test_errors_as_json(stet, work, words, status, kind):
    r = stet(*words, cwd=work).ok(status)
    assert r.err == ""
    o = r.json()
    assert o["schema"] == 1 and set(o) == {"schema", "error"}
    assert set(o["error"]) == {"kind", "message", "hint", "errno"}
    assert o["error"]["kind"] == kind and o["error"]["message"] and o["error"]["errno"] is None


def test_state_that_cannot_be_made(stet, work, home):
    """What is said is the cause, not what follows from it."""
    if os.geteuid() == 0:
        mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && cd "$1/work" && ' \
            'shift && exec "$@"'
        argv = ["unshare", "--mount", "sh", "-c", mount, "sh", str(home), stet.path, "list"]
        cause = "Read-only file system"
    else:
        argv, cause = [stet.path, "list"], "Permission denied"
        home.chmod(0o555)
    r = subprocess.run(argv, cwd=work, env=stet.environ(), stderr=subprocess.PIPE, check=False,
                       text=True)
    home.chmod(0o755)
    assert r.returncode == 6
    assert r.stderr == f"stet: cannot make the state directory {stet.state}: {cause}; " \
        "set STET_STATE_DIR to a writable directory\n"


def test_state_must_be_named_from_the_root_on(stet, work):
    env = {"STET_STATE_DIR": "state"}
    r = stet("list", cwd=work, env=env).ok(1)
    assert r.err == "stet: STET_STATE_DIR is no absolute path: state; write it from / on\n"
    r = stet("run", "--", "touch", "f", cwd=work, env=env).ok(125)
    assert os.listdir(work) == [] and not os.path.exists(stet.state)
    assert "is no absolute path" in stet("doctor", cwd=work, env=env).out
    stet("list", cwd=work, env={"STET_STATE_DIR": ""}).ok()
    assert os.path.exists(stet.state)


@pytest.mark.parametrize("words", [["--nope", "true"], ["--workspace", "no-such", "true"], []])
def test_errors_of_run_as_json(stet, work, words):
    """Standard output is the command's, even if there was none."""
    r = stet("run", "--json", *words, cwd=work).ok(125)
    assert r.out == ""
    assert json.loads(r.err)["error"]["kind"] == "usage"


def test_messages_cannot_talk_to_the_terminal(stet, work):
    evil = os.fsdecode(b"\x1b[2J\n\xff")
    for words in ([evil], ["status", evil], ["status", "--" + evil], ["diff", "x", evil]):
        r = stet(*words, cwd=work).ok(1)
        assert re.fullmatch(r"[\x20-\x7e]+\n", r.err), repr(r.err)


@pytest.mark.parametrize("verb", VERBS)
def test_help(stet, verb):
    first = stet("help", verb).ok()
    assert first.out.startswith(f"Usage: stet {verb} [OPTION...]")
    assert first.err == ""
    assert "--help" in first.out
    assert all(len(line) < 80 for line in first.out.splitlines())
    assert stet(verb, "--help").ok().out == first.out
    assert stet(verb, "-h").ok().out == first.out


def test_help_names_every_verb(stet):
    r = stet("help").ok()
    assert re.findall(r"^  (\w+(?: \w+)?)  ", r.out, re.M) == VERBS
    for words in (["--help"], ["-h"]):
        assert stet(*words).ok().out == r.out
    table = stet("help", "--json").ok().json()
    assert [v["name"] for v in table["verbs"]] == VERBS


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_manual_page(stet, verb):
    page = stet("help", "--man", *([verb] if verb else [])).ok().out
    name = f"stet-{verb}".replace(" ", "-") if verb else "stet"
    assert f'.TH {name.upper()} 1 ' in page
    assert name.replace("-", "\\-") + " \\- " in page
    r = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page.encode(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    assert r.stderr == b""


def test_version(stet):
    r = stet("version").ok()
    assert re.fullmatch(r"stet \d+\.\d+\.\d+\n", r.out)
    assert stet("--version").ok().out == stet("-V").ok().out == r.out
    assert stet("version", "--json").ok().json() == {"schema": 1, "version": r.out.split()[1]}


def test_bare(stet, work):
    r = stet(cwd=work).ok()
    assert len(r.out.splitlines()) == 3 and "stet run -- COMMAND" in r.out
    stet.sh("echo x > f", cwd=work).ok()
    bare, status = stet(cwd=work).ok().out, stet("status", cwd=work).ok().out
    assert bare.startswith("t1 pending\n")
    assert [line for line in bare.splitlines() if not re.match("  (began|holds) ", line)] == \
        [line for line in status.splitlines() if not re.match("  (began|holds) ", line)]


def complete(script, *words):
    """What bash offers for the last word."""
    code = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stet; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
    r = subprocess.run(["bash", "-c", code, "bash", script, "stet", *words], check=True,
                       stdout=subprocess.PIPE, text=True)
    return r.stdout.split()


def test_completion_of_bash(stet, tmp_path):
    script = tmp_path / "stet.bash"
    script.write_text(stet("completion", "bash").ok().out)
    assert complete(script, "r") == ["run", "rollback", "redo", "restore", "recover"]
    assert complete(script, "run", "--on") == ["--on-success", "--on-failure"]
    assert complete(script, "run", "--tmp", "") == ["private", "host"]
    assert complete(script, "run", "--tmp", "=", "h") == ["host"]
    assert complete(script, "help", "ver") == ["version"]
    assert complete(script, "completion", "") == ["bash", "zsh", "fish"]
    r = subprocess.run(["shellcheck", "-s", "bash", script], check=False,
                       stdout=subprocess.PIPE, text=True)
    assert r.returncode == 0, r.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_option(stet, shell):
    text = stet("completion", shell).ok().out
    for v in stet("help", "--json").ok().json()["verbs"]:
        for o in v["options"]:
            flag = f"-l {o['name']}" if shell == "fish" else f"--{o['name']}"
            assert flag in text, (v["name"], o["name"])


TXN = {"id", "name", "state", "workspace", "command", "begin", "end", "exit", "reason",
       "not_undoable", "policy"}
CHANGE = {"kind", "path", "what", "implied", "hidden", "read_only", "before", "after"}
TOTALS = {"added", "changed", "deleted", "bytes"}


def check_txn(t, state):
    assert set(t) == TXN
    assert re.fullmatch(r"t\d+", t["id"])
    assert t["state"] == state
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", t["begin"])


def run_json(r):
    """The last line of standard error."""
    return json.loads(r.err.splitlines()[-1])


def test_json_of_every_verb(stet, work):
    (work / "old").write_text("old\n")
    r = stet("run", "--json", "--name", "mine", "--", "bash", "-c",
             "echo new > f; echo more >> old; mkdir d; echo out; echo err >&2; exit 3",
             cwd=work).ok(3)
    assert r.out == "out\n" and r.err.startswith("err\n")
    o = run_json(r)
    assert set(o) == {"schema", "txn", "fate", "exit", "reason", "changes", "setup_us",
                      "run_us"}
    check_txn(o["txn"], "pending")
    assert (o["schema"], o["fate"], o["exit"], o["reason"]) == (1, "pending", 3, "exit")
    assert o["changes"] == {"added": 2, "changed": 1, "deleted": 0, "bytes": 13}
    tx = o["txn"]["id"]

    o = stet("status", tx, "--json").ok().json()
    assert set(o) == {"schema", "txn", "totals", "changes", "on_disk", "history_bytes"}
    assert set(o["totals"]) == TOTALS
    check_txn(o["txn"], "pending")
    assert o["txn"]["name"] == "mine" and o["txn"]["workspace"] == str(work)
    assert o["txn"]["command"][:2] == ["bash", "-c"] and o["txn"]["exit"] == 3
    assert {c["path"]: c["kind"] for c in o["changes"]} == {
        str(work / "d"): "A", str(work / "f"): "A", str(work / "old"): "M"}
    assert all(set(c) == CHANGE for c in o["changes"])
    assert [c["what"] for c in o["changes"] if c["kind"] == "M"] == [["content", "times"]]

    o = stet("diff", "mine", "--json").ok().json()
    assert set(o) == {"schema", "txn", "changes"}
    patches = {os.path.basename(c["path"]): c for c in o["changes"]}
    assert "+more\n" in patches["old"]["patch"]
    assert (patches["old"]["lines_added"], patches["old"]["lines_removed"]) == (1, 0)

    o = stet("list", "--json").ok().json()
    assert set(o) == {"schema", "transactions"}
    check_txn(o["transactions"][0], "pending")

    o = run_json(stet("explore", tx, "--json", "--", "true", cwd=work).ok())
    assert set(o) == {"schema", "txn", "exit", "reason"}
    assert o["exit"] == 0 and o["txn"]["exit"] == 3

    o = stet("rollback", tx, "--dry-run", "--json").ok().json()
    assert o["dry_run"] is True and o["totals"]["added"] == 2
    check_txn(o["txn"], "pending")
    o = stet("rollback", tx, "--json").ok().json()
    assert set(o) == {"schema", "txn", "dry_run"}
    check_txn(o["txn"], "rolled back")

    o = stet("prune", "--dry-run", "--json").ok().json()
    assert set(o) == {"schema", "dry_run", "transactions", "orphans", "bytes"}
    assert (o["dry_run"], o["transactions"]) == (True, 1)
    o = stet("prune", "--json").ok().json()
    assert (o["dry_run"], o["transactions"]) == (False, 1)
    assert stet("list", "--json").ok().json()["transactions"] == []
    assert len(stet("list", "--all", "--json").ok().json()["transactions"]) == 1

    o = stet("doctor", "--json", cwd=work).json()
    assert set(o) == {"schema", "checks", "worst"}
    for c in o["checks"]:
        assert set(c) == {"id", "name", "status", "found", "lost", "repair"}
        assert c["status"] in ("ok", "warn", "fail", "info")


def test_summary(stet, work):
    for i in range(3):
        (work / f"keep{i}").write_text("x\n")
    (work / "src").mkdir()
    for i in range(4):
        (work / "src" / f"{i}.c").write_text("c\n")
    r = stet("run", "bash", "-c", "rm -rf src; echo hi > new; echo y > keep1; mkdir -p a/b; "
             "touch a/b/c a/d; echo out", cwd=work).ok()
    assert r.out == "out\n"
    lines = r.err.splitlines()
    assert re.fullmatch(r"stet: t1 pending: 5 added, 1 changed, 5 deleted \(5 B\) in \d+ ms",
                        lines[0]), r.err
    assert lines[1:5] == ["  A a/  (2 files)", "  M keep1", "  A new", "  D src/  (4 files)"]
    assert lines[5].startswith("  not undoable: ")
    assert lines[6] == \
        "  look: stet diff t1    keep: stet commit t1    throw away: stet rollback t1"
    status = stet("status", cwd=work).ok().out
    for line in lines[1:5]:
        assert line in status.splitlines()
    every = stet("status", "--all", cwd=work).ok().out.splitlines()
    assert "  D src/2.c" in every and "  A a/b/c" in every and "  D src/" in every


def test_letters_of_summary_and_status_agree(stet, work):
    for name in ("mode", "text", "gone", "kind"):
        (work / name).write_text(name)
    r = stet("run", "--", "sh", "-c", "chmod 700 mode; echo >> text; rm gone kind; mkdir kind; "
             "touch new", cwd=work).ok()
    want = ["X mode", "M text", "D gone", "T kind/", "A new"]
    for text in (r.err, stet("status", cwd=work).ok().out):
        assert sorted(re.findall(r"^  ([A-Z] [a-z]+/?)(?:  .*)?$", text, re.M)) == sorted(want), text


def test_long_summary(stet, work):
    r = stet("run", "bash", "-c", "touch f{01..33}", cwd=work).ok()
    assert "  A f10\n  … and 23 more: stet diff t1\n" in r.err


def test_nothing_changed(stet, work):
    r = stet("run", "true", cwd=work).ok()
    assert re.fullmatch(r"stet: nothing changed in \d+ ms\n", r.err)
    assert stet("run", "bash", "-c", "exit 9", cwd=work).ok(9).err.count("\n") == 1
    assert stet("list", "--json").ok().json()["transactions"] == []
    stet("run", "--on-success", "keep", "true", cwd=work).ok()
    assert [t["state"] for t in stet.transactions()] == ["pending"]


@pytest.mark.parametrize("option,code,state", [
    ("--on-success", 0, "rolled back"), ("--on-success", 1, "pending"),
    ("--on-failure", 0, "pending"), ("--on-failure", 1, "rolled back"),
])
def test_what_happens_afterwards(stet, work, option, code, state):
    stet.sh(f"echo x > f; exit {code}", cwd=work, opts=[option, "rollback"]).ok(code)
    assert [t["state"] for t in stet.transactions()] == [state]
    assert not (work / "f").exists()


def test_quiet(stet, work):
    r = stet("run", "-q", "bash", "-c", "echo x > f", cwd=work).ok()
    assert (r.out, r.err) == ("", "")
    r = stet("run", "-q", "--timeout", "100ms", "sleep", "9", cwd=work).ok(124)
    assert r.err == "stet: time limit reached\n"
    r = stet("run", "-q", "--pids", "2", "bash", "-c", "sleep 9 & sleep 9 & wait", cwd=work).ok(137)
    assert "number of processes limit of 2 passed\n" in r.err


def test_exit_statuses(stet, work):
    (work / "plain").write_text("not a program\n")
    for words, status in ((["bash", "-c", "exit 42"], 42), (["bash", "-c", "kill -9 $$"], 137),
                          (["./no-such-program"], 127), (["./plain"], 126),
                          (["--timeout", "100ms", "cat", "/dev/zero"], 124)):
        stet("run", "-q", *words, cwd=work, stdout=subprocess.DEVNULL).ok(status)


def test_environment(stet, work):
    show = ["/usr/bin/env", "-0"]

    def env(*opts):
        r = stet("run", "-q", *opts, *show, cwd=work, env={"SECRET": "s"}).ok()
        return dict(e.split("=", 1) for e in r.out.split("\0") if e)

    assert env()["SECRET"] == "s" and env()["STET_TXN"] == "t2"
    clean = env("--clean-env", "-e", "NEW=1=2")
    assert "SECRET" not in clean and clean["NEW"] == "1=2" and clean["HOME"] == stet.home
    assert env("--clean-env", "--env", "SECRET")["SECRET"] == "s"


def test_names_are_printed_safely(stet, work):
    evil = b"a\x1b[2J\nb\xff\""
    with open(os.path.join(os.fsencode(work), evil), "wb") as f:
        f.write(b"x\x1b]0;title\x07\n")
    r = stet("run", "bash", "-c", "rm -- a*", cwd=work).ok()
    assert '  D "a\\033[2J\\nb\\377\\""\n' in r.err
    for words in (["status"], ["list"], ["diff", "--stat"], ["diff", "--name-status"]):
        r = stet(*words, cwd=work).ok()
        assert not re.search(rb"[^\x20-\x7e\n\t]", r.raw), (words, r.raw)
    change = stet("status", "--json", cwd=work).ok().json()["changes"][0]
    assert change["path"].endswith("/a\x1b[2J\nb\ufffd\"")
    assert base64.b64decode(change["path_b64"]) == os.path.join(os.fsencode(work), evil)
    r = stet("diff", "-z", cwd=work).ok()
    assert r.raw == b"D\0" + evil + b"\0"
    # To a pipe the content is exact; to a terminal nothing gets through.
    assert b"-x\x1b]0;title\x07\n" in stet("diff", cwd=work).ok().raw
    shown = tty(stet, work, "diff", "--no-pager").read()
    assert b"-x\\033]0;title\\a" in shown
    assert b"\x1b]" not in shown and b"\x07" not in shown


# Each makes a name read otherwise, or tells a terminal something, though it is no ASCII control.
SLY = ["\x9b31m", "\xad", "\u061c", "\u180e", "\u200b", "\u200f", "\u2028", "\u202e", "\u2060", "\u2067",
       "\ufeff", "\ufffa", "\U000e0041"]


@pytest.mark.parametrize("sly", SLY, ids=ascii)
def test_names_read_as_they_are(stet, work, sly):
    name = f"a{sly}z"
    r = stet("run", "touch", name, cwd=work).ok()
    said = "".join(f"\\{b:03o}" for b in sly[:1].encode()) + sly[1:]
    for text in r.err, stet("status", cwd=work).ok().out, stet("diff", "--stat", cwd=work).ok().out:
        assert f"a{said}z" in text
    # JSON is exact; to a terminal it is told in ASCII alone.
    for verb in "status", "diff":
        assert name in stet(verb, "--json", cwd=work).ok().out
        shown = tty(stet, work, verb, "--json").read()
        assert shown.isascii() and json.loads(shown)["changes"][0]["path"] == f"{work}/{name}"
    shown = tty(stet, work, "list", "--json").read()
    assert shown.isascii() and json.loads(shown)["transactions"][0]["command"] == ["touch", name]


def test_letters_and_emoji_stay(stet, work):
    names = ["\u0645\u06cc\u200c\u062e", "\u00e9\u4e2d", "\U0001f469\u200d\U0001f4bb"]
    stet.run("touch", *names, cwd=work).ok()
    shown = stet("status", cwd=work).ok().out
    assert all(f"A {n}\n" in shown for n in names)


def tty(stet, work, *words, env=None):
    return pexpect.spawn(stet.path, list(words), cwd=str(work), timeout=30,
                         env=stet.environ(env), dimensions=(24, 80))


def test_colour(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    color = {"NO_COLOR": None}
    for words in (["status"], ["diff"]):
        assert "\x1b[" not in stet(*words, cwd=work, env=color).ok().out
        assert "\x1b[32m" in stet(*words, "--color=always", cwd=work).ok().out
        assert "\x1b[" in stet(*words, cwd=work, env={**color, "CLICOLOR_FORCE": "1"}).ok().out
        assert "\x1b[" not in stet(*words, cwd=work, env={"CLICOLOR_FORCE": "1"}).ok().out
    assert b"\x1b[32m" in tty(stet, work, "status", env=color).read()
    assert b"\x1b[" not in tty(stet, work, "status").read()
    assert b"\x1b[" not in tty(stet, work, "status", env={**color, "TERM": "dumb"}).read()


@pytest.mark.parametrize("name,value", [
    ("STET_PAGER", "sed s/^/paged:/"), ("GIT_PAGER", "sed 's/^/paged:/'"),
    ("PAGER", "cat | sed s/^/paged:/"),
])
def test_pager(stet, work, name, value):
    stet.sh("echo x > f", cwd=work).ok()
    assert b"paged:+x" in tty(stet, work, "diff", env={name: value}).read()
    assert "paged:" not in stet("diff", cwd=work, env={name: value}).ok().out
    assert b"paged:" not in tty(stet, work, "diff", "--no-pager", env={name: value}).read()


@pytest.mark.parametrize("value", ["", "cat", "no-such-pager"])
def test_no_pager(stet, work, value):
    stet.sh("echo x > f", cwd=work).ok()
    assert b"+x" in tty(stet, work, "diff", env={"STET_PAGER": value, "PAGER": "false"}).read()


def test_pager_that_leaves_early(stet, work):
    stet.sh("seq 300000 > f", cwd=work).ok()
    c = tty(stet, work, "diff", env={"STET_PAGER": "head -n 3"})
    assert c.read().count(b"\n") == 3
    c.close()
    assert (c.exitstatus, c.signalstatus) == (0, None)


def test_full_output_is_an_error(stet, work):
    stet.sh("seq 9000 > f", cwd=work).ok()
    for words in (["help"], ["status", "--json"], ["diff"]):
        with open("/dev/full", "wb") as full:
            r = stet(*words, cwd=work, stdout=full)
        assert r.rc == 6 and re.match("stet: standard output: (No space left|not all)", r.err)


def test_closed_descriptors(stet, work):
    """Nothing of ours may become the command's or our own output by accident."""
    code = 'exec <&- >&- 2>&-; "$0" run --quiet -- bash -c "echo x; echo y >&2; echo z > f"'
    subprocess.run(["bash", "-c", code, stet.path], cwd=work, env=stet.environ(), check=True)
    assert stet("diff", "--name-status", cwd=work).ok().out == "A\tf\n"
    code = 'exec <&- >&- 2>&-; "$0" version'
    subprocess.run(["bash", "-c", code, stet.path], env=stet.environ(), check=True)


def test_diff_operands(stet, work):
    (work / "sub").mkdir()
    stet.sh("echo a > a; echo b > sub/b; echo c > sub/c", cwd=work).ok()

    def names(*words, cwd=work):
        r = stet("diff", "--name-status", *words, cwd=cwd).ok()
        return [line.split("\t")[1] for line in r.out.splitlines()]

    assert names() == names("t1") == ["a", "sub/b", "sub/c"]
    assert names("a") == names("t1", "a") == names("--", "a") == names("./sub/../a") == ["a"]
    assert names("sub") == names("sub/") == names(work / "sub") == ["sub/b", "sub/c"]
    assert names("b", cwd=work / "sub") == names("--", "b", cwd=work / "sub") == ["sub/b"]
    assert names("..", cwd=work / "sub") == ["a", "sub/b", "sub/c"]
    (work.parent / "link").symlink_to(work)
    assert names(work.parent / "link" / "sub" / "b") == ["sub/b"]
    r = stet("diff", "nowhere", cwd=work).ok(1)
    assert "no transaction and no path named 'nowhere'" in r.err
    r = stet("diff", "t1", "nowhere", cwd=work).ok(1)
    assert re.search(r"no path named '.*/nowhere'", r.err)
    stet("diff", "--exit-code", "t1", "a", cwd=work).ok(1)
    (work / "untouched").write_text("")
    stet("diff", "--exit-code", "untouched", cwd=work).ok(0)


def test_stat(stet, work):
    (work / "f").write_text("1\n2\n3\n")
    stet.sh("printf '1\\n3\\n4\\n5\\n' > f; head -c 100 /dev/zero > bin", cwd=work).ok()
    lines = stet("diff", "--stat", cwd=work).ok().out.splitlines()
    assert lines == [" bin | Bin 0 -> 100 bytes", " f   |     3 ++-",
                     " 2 paths changed, 2 lines added, 1 removed"]


def test_rename(stet, work):
    (work / "old").write_text("the same content\n")
    stet("run", "-q", "mv", "old", "new", cwd=work).ok()
    assert "  R old -> new\n" in stet("status", cwd=work).ok().out
    assert stet("diff", "--name-status", cwd=work).ok().out == "R100\told\tnew\n"
    r = stet("diff", "--name-status", "--no-renames", cwd=work).ok()
    assert sorted(r.out.splitlines()) == ["A\tnew", "D\told"]


def test_list_table(stet, work):
    assert stet("list").ok().out == "No transactions.\n"
    stet.sh("echo x > f", cwd=work, opts=["--name", "mine"]).ok()
    head, row = stet("list").ok().out.splitlines()
    assert head.split() == ["ID", "STATE", "EXIT", "WHEN", "WORKSPACE", "COMMAND"]
    assert row.startswith("t1  pending  0 ") and "~/work" in row and "mine: bash -c" in row
    assert stet("list", "--ids").ok().out == "t1\nmine\n"


def test_rollback_and_prune_say_what_they_did(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    assert stet("rollback", "--dry-run", cwd=work).ok().out == \
        "t1 would be rolled back: 1 added (2 B)\n"
    r = stet("prune", "t1").ok(4)
    assert r.err == "stet: t1 is pending, only what was rolled back is pruned; " \
        "stet rollback t1\n"
    assert stet("rollback", cwd=work).ok().out == \
        "t1 rolled back; take it back: stet undo t1\n"
    stet("rollback", "t1").ok(4)
    stet("rollback", "--dry-run", "t1").ok(4)
    would = stet("prune", "--dry-run").ok().out
    assert re.fullmatch(r"would prune 1 transaction, [1-9].*\n", would)
    assert re.fullmatch(r"pruned 1 transaction, .*\n", stet("prune").ok().out)
    assert stet("prune").ok().out == "nothing to prune\n"


def test_explore_sees_the_same_view(stet, home, work):
    (home / "secret").write_text("s\n")
    (home / "through").mkdir()
    stet.sh("echo x > f; echo t > /tmp/only-inside", cwd=work, opts=[
        "--hide", home / "secret", "--write-through", home / "through"]).ok()
    r = stet("explore", "--", "bash", "-c",
             'cat f /tmp/only-inside; cat ~/secret 2>/dev/null; echo y > ~/through/g; '
             'echo more >> f; pwd; echo $STET_TXN; exit 5', cwd=work).ok(5)
    assert r.out == f"x\nt\n{work}\nt1\n"
    assert (home / "through" / "g").read_text() == "y\n"
    assert re.match(r"stet: left t1, still pending", r.err)
    assert "+more\n" in stet("diff", cwd=work).ok().out
    assert stet.transactions()[0]["exit"] == 0
    stet("rollback", cwd=work).ok()
    assert stet("explore", "t1", "--", "true", cwd=work).ok(125).err.startswith("stet: t1")


def test_explore_of_what_cannot_be_executed(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    ended = stet.transactions()[0]["end"]
    r = stet("explore", "-q", "--", "no-such-command", cwd=work).ok(127)
    assert r.err == "stet: no-such-command: command not found\n"
    r = stet("explore", "-q", cwd=work, env={"SHELL": "/no/shell"}).ok(127)
    assert r.err == "stet: /no/shell: No such file or directory\n"
    assert stet("explore", "--json", "--", "/etc/passwd", cwd=work).ok(126).err.endswith(
        '"not_executed":"Permission denied"}\n')
    # A visit is not the end of the command.
    assert stet.transactions()[0]["end"] == ended


QUESTION = r"\[c\]ommit  \[d\]iff  \[k\]eep  \[r\]oll back \? "


@pytest.mark.parametrize("answers,state", [
    (["k"], "pending"), (["r"], "rolled back"), (["c"], "committed"),
    (["d", "k"], "pending"), (["", "x", "k"], "pending"), (["\x04"], "pending"),
    (["\x03"], "pending"), (["cancel", "crash", "dqc", "K"], "pending"),
    (["no", "Roll Back"], "rolled back"), (["x" * 500 + "c", "keep"], "pending"),
    ([" com "], "committed"),
], ids=["keep", "roll back", "commit", "diff", "unclear", "end of file", "Ctrl-C", "words",
        "no", "long", "part"])
def test_question(stet, work, answers, state):
    c = tty(stet, work, "run", "bash", "-c", "echo x > f; exit 7", env={"PAGER": "cat"})
    for a in answers:
        c.expect(QUESTION)
        if a in ("\x03", "\x04"):
            c.send(a)
        else:
            c.sendline(a)
        if a in ("", "x", "cancel", "crash", "dqc", "no") or len(a) > 99:
            c.expect_exact("type c, d, k or r, or the word\r\n")
        if a in ("c", " com "):
            c.expect("t1 committed: 1 added; take it back: stet undo t1")
        if a == "d":
            c.expect(r"\+x")
    c.expect(pexpect.EOF)
    c.close()
    assert c.exitstatus == 7
    assert [t["state"] for t in stet.transactions()] == [state]


@pytest.mark.parametrize("opts", [["-q"], ["--json"], ["--on-success", "keep"]])
def test_no_question(stet, work, opts):
    c = tty(stet, work, "run", *opts, "bash", "-c", "echo x > f")
    assert b"[k]eep" not in c.read()


def test_typing_ahead_decides_nothing(stet, work):
    """What was typed while the command ran was meant for the command."""
    c = tty(stet, work, "run", "bash", "-c", "echo x > f; echo ready; read -r line; echo bye")
    c.expect("ready")
    c.send("line\rr\rr\r")
    c.expect(QUESTION)
    c.sendline("k")
    c.expect(pexpect.EOF)
    assert [t["state"] for t in stet.transactions()] == ["pending"]
