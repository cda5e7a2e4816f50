# SPDX-License-Identifier: Apache-2.0
"""Where a result goes as JSON: a line of its own, a descriptor, a file."""
import fcntl
import json
import os
import stat
import subprocess

import pytest


def last_line(text):
    """The result, which nothing else shares its line with."""
    return json.loads(text.decode().splitlines()[-1])


# What a command writes, and where standard output and error go: pipes, one pipe, a file.
@pytest.mark.parametrize("where", ["pipes", "one pipe", "files", "one file"])
@pytest.mark.parametrize("script,opts,empty", [
    ("printf foo >&2", [], False), ("printf foo", [], False), ("echo foo >&2", [], False),
    ("printf foo >&2; printf bar", [], False), ("echo foo; printf bar >&2", [], False),
    ("true", [], True),
    ("while printf %09999d 1 >&2; do :; done", ["--output-limit", "100k"], False),
    ("while printf %09999d 1; do :; done", ["--output-limit", "100k"], False),
])
@pytest.mark.parametrize("verb", ["run", "explore"])
def test_line_of_its_own(stet, work, tmp_path, verb, script, opts, empty, where):
    words = ["run", "--json", "-q", *opts]
    if verb == "explore":
        if opts:
            return
        stet.sh("echo x > f", cwd=work).ok()
        words = ["explore", "--json", "t1"]
    out, err = {"pipes": (subprocess.PIPE, subprocess.PIPE),
                "one pipe": (subprocess.PIPE, subprocess.STDOUT),
                "files": (tmp_path / "out", tmp_path / "err"),
                "one file": (tmp_path / "out", subprocess.STDOUT)}[where]
    if "file" in where:
        with open(out, "wb") as f, open(err if where == "files" else os.devnull, "wb") as g:
            stet(*words, "--", "sh", "-c", script, cwd=work, stdout=f,
                 stderr=g if where == "files" else err)
        text = (tmp_path / ("err" if where == "files" else "out")).read_bytes()
    else:
        with stet.popen(*words, "--", "sh", "-c", script, cwd=work, stdout=out,
                        stderr=err) as p:
            both = p.communicate(timeout=60)
        text = both[0] if where == "one pipe" else both[1]
    o = last_line(text)
    assert o["schema"] == 1 and o["reason"] == ("limit" if opts else "exit")
    if empty:
        assert text.count(b"\n") == 1
    else:
        assert b"\n\n" not in text


def test_terminal(stet, work):
    """On a terminal, with one of its own for the command."""
    line = f"{stet.path} run --json -q -- sh -c 'printf foo; printf bar >&2'"
    r = subprocess.run(["script", "-qec", line, "/dev/null"], cwd=work, env=stet.environ(),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60)
    text = r.stdout.replace(b"^@", b"")  # what script types at the end of its input
    assert last_line(text)["exit"] == 0 and text.startswith(b"foobar\r\n{")


# Words before and after the option, and the keys of the result that may differ a second time.
VERBS = [
    (["run"], ["--", "sh", "-c", "echo more > g; printf out; printf err >&2"]),
    (["exec"], ["--", "sh", "-c", "mktemp -p . > y; printf out"]), (["explore", "t1"], ["--", "true"]),
    (["fork", "t1"], ["--", "true"]), (["status", "t1"], []), (["diff", "t1"], []),
    (["list"], []), (["log", "t1"], []), (["log", "--ops"], []), (["audit"], []),
    (["audit", "verify"], []), (["checkpoint", "t1"], []), (["show", "t1@0"], []),
    (["commit", "t1", "--dry-run"], []), (["rollback", "t1", "--dry-run"], []),
    (["undo", "t1"], []), (["prune", "--dry-run"], []),
    (["forget", "--keep-last", "9", "--dry-run"], []), (["check"], []), (["recover"], []),
    (["doctor"], []), (["policy", "check"], ["--", "ls"]), (["policy", "show"], []),
    (["version"], []), (["help"], []), (["consent"], []), (["status", "t99"], []),
    (["status", "--nope"], []), (["run", "--timeout", "x"], ["--", "true"]),
]


@pytest.mark.parametrize("before,after", VERBS)
def test_elsewhere(stet, work, tmp_path, before, after):
    """The same object goes to a descriptor or a file, and nothing of it to the standard streams."""
    stet.sh("echo x > f", opts=["--checkpoint", "none"], cwd=work).ok()
    name = tmp_path / "result"

    def keys(text):
        objects = [json.loads(x) for x in text.splitlines()]
        return objects and (set(objects[0]), set(objects[0].get("error", ())))

    plain = stet(*before, "--json", *after, cwd=work)
    runs = before[0] in ("run", "explore", "fork")
    want = keys(plain.err.splitlines()[-1] if runs else plain.out)
    file = stet(*before, "--json-file", str(name), *after, cwd=work)
    assert keys(name.read_text()) == want
    assert stat.S_IMODE(name.stat().st_mode) == 0o644 and sorted(os.listdir(tmp_path)) == ["home", "result"]
    read, write = os.pipe()
    # The whole result has to fit: nothing reads before the program has ended.
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 1 << 20)
    fd = stet(*before, f"--json-fd={write}", *after, cwd=work, pass_fds=[write])
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as f:
        assert keys(f.read()) == want
    for r in (file, fd):
        assert r.rc == plain.rc and "schema" not in r.out + r.err, repr(r)


@pytest.mark.parametrize("opts,says", [
    (["--json-fd", "109"], "--json-fd: descriptor 109 is not open"),
    (["--json-fd", "0"], "--json-fd: '0' is not a descriptor from 1 on"),
    (["--json-fd", "x"], "--json-fd: 'x' is not a descriptor"),
    (["--json-fd", "99999999999"], "--json-fd: '99999999999' is not a descriptor"),
    (["--json-fd", "107"], "--json-fd: descriptor 107 is not open for writing"),
    (["--json-file", "no/such"], "--json-file: cannot write no/such: No such file or directory"),
    (["--json-file", "."], "--json-file: . is not a regular file"),
    (["--json-file", ""], "--json-file: cannot write : No such file or directory"),
    (["--json-file", "d/"], "--json-file: d/ is not a regular file"),
    (["--json-file", "/dev/null"], "--json-file: /dev/null is not a regular file"),
    (["--json-file", "/proc/x"], "--json-file: cannot write /proc/x: "),
    (["--json-file", "x", "--json-fd", "1"], "--json-fd and --json-file: one of them is enough"),
])
@pytest.mark.parametrize("words,rc", [
    (["run", "OPTS", "--", "touch", "ran"], 125), (["exec", "OPTS", "--", "touch", "ran"], 125),
    (["status", "OPTS"], None), (["rollback", "t1", "OPTS"], None), (["rollback", "OPTS", "--nope"], 1)])
def test_refused_before(stet, work, opts, says, words, rc):
    """What cannot take a result is said at once: nothing was done."""
    stet.sh("echo x > f", cwd=work).ok()
    (work / "d").mkdir()
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 107)
    words = [x for w in words for x in (opts if w == "OPTS" else [w])]
    try:
        r = stet(*words, cwd=work, pass_fds=[107])
    finally:
        os.close(null)
        os.close(107)
    assert r.rc in ([rc] if rc else [1, 6]), repr(r)
    if "--nope" not in words:
        assert r.err.startswith(f"stet: {says}") and r.err.count("\n") == 1, repr(r)
    assert r.out == "" and "--nope" not in words or "--nope" in r.err
    (t,) = stet.transactions()
    assert t["state"] == "pending" and sorted(os.listdir(work)) == ["d"]


def test_not_passed_on(stet, work):
    """The command has no descriptor but its own three; nobody in the background keeps it open."""
    read, write = os.pipe()
    r = stet("run", "--json-fd", str(write), "--", "sh", "-c",
             "ls /proc/self/fd | wc -l; echo x > f; sleep 60 & :", cwd=work, pass_fds=[write]).ok()
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as f:
        assert json.loads(f.read())["fate"] == "pending"
    assert r.out == "4\n" and r.err == ""


@pytest.mark.parametrize("script,rc", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_whole_or_not_at_all(stet, work, tmp_path, script, rc):
    """An older file is what it was until the new one is whole; a link to it stays one."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to("real")
    stet("run", "--json-file", str(link), "--", "sh", "-c", script, cwd=work).ok(rc)
    assert link.is_symlink() and json.loads(real.read_text())["exit"] == rc


@pytest.mark.parametrize("words,rc", [(["run", "--on-success", "rollback"], 125), (["list"], 6)])
def test_cannot_be_written(stet, work, words, rc):
    """It is no success, and says so."""
    command = ["--", "true"] if words[0] == "run" else []
    with open("/dev/full", "wb") as full:
        r = stet(*words, "--json-fd", str(full.fileno()), *command, cwd=work,
                 pass_fds=[full.fileno()]).ok(rc)
    assert r.err == "stet: cannot write the result to --json-fd: No space left on device\n"


def test_gone_meanwhile(stet, work, tmp_path):
    """The directory of the file is removed while the command runs."""
    there = tmp_path / "there"
    there.mkdir()
    read, write = os.pipe()
    with stet.popen("run", "--json-file", str(there / "r"), "--", "sh", "-c", "echo go; read x",
                    cwd=work, stdin=read) as p:
        assert p.stdout.readline() == b"go\n"
        there.rmdir()
        os.close(write)
        err = p.communicate(timeout=60)[1].decode()
    os.close(read)
    assert p.returncode == 125 and "--json-file: cannot write" in err


def test_follow(stet, work):
    r = stet("audit", "--follow", "--json-file", "x", cwd=work).ok(1)
    assert r.err == ""
    assert "--follow has no end" in json.loads((work / "x").read_text())["error"]["message"]


def test_inside(stet, work):
    """Asked from inside, descriptor and file are those of the inside; nothing outside is touched."""
    r = stet.sh(f'echo x > f; S={stet.path}; $S status --json-file s; '
                '$S status --json-fd 5 5> t; $S status --json-file /no/such/file; '
                '$S status --json-fd 7; $S status --json-file u --nope; ls; cat s; cat t; cat u',
                cwd=work)
    names, objects = r.out.splitlines()[:4], r.out.splitlines()[4:]
    assert names == ["f", "s", "t", "u"], repr(r)
    s, t, u = map(json.loads, objects)
    assert s["txn"]["id"] == t["txn"]["id"] == "t1" and u["error"]["kind"] == "usage"
    assert "/no/such/file" in r.err and "descriptor 7 is not open" in r.err
    assert os.listdir(work) == []
