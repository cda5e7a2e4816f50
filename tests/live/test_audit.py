# SPDX-License-Identifier: Apache-2.0
"""The books: complete, hash-chained, out of reach from inside."""
import json
import os
import shutil
import subprocess

import pytest
from stetlib import processes_with, wait_until


def books(stet):
    return os.path.join(stet.state, "audit.jsonl")


def records(stet, *args):
    return [json.loads(x) for x in stet("audit", "--json", *args).ok().out.splitlines()]


def events(stet, *args):
    """Operations on transactions, without what was executed in them."""
    return [(r["event"], r.get("txn")) for r in records(stet, *args)
            if r["event"] not in ("exec", "exit")]


def sound(stet):
    r = stet("audit", "verify", "--json").ok().json()
    assert r["wrong"] == []
    assert r["records"] == len([r for r in records(stet) if "event" in r])
    return r["records"]


def test_every_operation(stet, work):
    assert stet("audit").ok().out == "" and sound(stet) == 0
    stet("exec", "--", "sh", "-c", "echo 1 > a", cwd=work).ok()
    stet("exec", "--", "sh", "-c", "echo 2 > a; exit 3", cwd=work).ok(3)
    stet("exec", "--", "true", cwd=work).ok()
    stet.sh("echo 3 > a", cwd=work).ok()
    stet("commit", cwd=work).ok()
    stet("undo", cwd=work).ok()
    stet("redo", cwd=work).ok()
    assert events(stet) == [
        ("begin", "t1"), ("end", "t1"), ("commit", "t1"),
        ("begin", "t2"), ("end", "t2"), ("rollback", "t2"),
        ("begin", "t3"), ("drop", "t3"),
        ("begin", "t4"), ("end", "t4"), ("commit", "t4"), ("undo", "t4"), ("redo", "t4")]
    assert [e for e, _ in events(stet, "t2")] == ["begin", "end", "rollback"]
    r = [r for r in records(stet, "t2") if r["event"] not in ("exec", "exit")]
    assert r[0]["argv"] == ["sh", "-c", "echo 2 > a; exit 3"]
    assert r[0]["workspace"] == str(work) and r[1]["exit"] == 3
    assert sound(stet) > 13
    text = [x for x in stet("audit", "t2").ok().out.splitlines()
            if " exec " not in x and " exit  " not in x]
    assert len(text) == 3 and "sh -c 'echo 2 > a; exit 3'" in text[0] and "exit status 3" in text[1]


def test_secrets_are_not_written(stet, work):
    secret = "hunter2hunter2"
    stet("exec", "--", "true", "--password", secret, f"https://joe:{secret}@example.org/",
         f"TOKEN={secret}", f"curl -H 'Authorization: Bearer {secret}'", cwd=work).ok()
    with open(books(stet), encoding="utf-8") as f:
        assert secret not in f.read()
    assert records(stet)[0]["argv"] == [
        "true", "--password", "***", "https://joe:***@example.org/", "TOKEN=***",
        "curl -H 'Authorization: Bearer ***'"]


def test_every_exec(stet, work):
    (work / "sub").mkdir()
    stet("exec", "--", "sh", "-c", "cd sub; sh -c 'ls -a; :'; /no/such; env A=1 true", cwd=work)
    r = [r for r in records(stet, "t1") if r["event"] == "exec"]
    assert [x["argv"][0] for x in r if x["outcome"] == "ran"] == ["sh", "sh", "ls", "env", "true"]
    first, inner, ls = r[:3]
    assert all(x["verdict"] == "allow" and x["txn"] == "t1" for x in r)
    assert inner["ppid"] == first["pid"] and ls["ppid"] == inner["pid"]
    assert first["cwd"] == str(work) and ls["cwd"] == str(work / "sub")
    assert os.path.basename(ls["exe"]) == "ls" and ls["argv"] == ["ls", "-a"]
    sound(stet)


def test_where_it_was(stet, work):
    """A word that is no absolute path is judged and recorded where its process was."""
    (work / "go").write_text("#!/bin/sh\nmkdir d d/x; cd d; rm -rf x && echo gone\n"
                             "true; cd /; rm -rf etc || echo kept; ./bin/true\n")
    (work / "go").chmod(0o755)
    assert stet("exec", "--", "./go", cwd=work).ok().out == "gone\nkept\n"
    got = {(r["argv"][0], r["outcome"], r["cwd"]) for r in records(stet) if r["event"] == "exec"}
    assert got == {("/bin/sh", "ran", str(work)),
                   ("mkdir", "ran", str(work)), ("rm", "ran", f"{work}/d"), ("rm", "denied", "/"),
                   ("./bin/true", "ran", "/")}


def test_tree_of_processes(stet, work):
    """Indented by who started whom; a check begins anew, with the same numbers."""
    deep = "sh -c 'sh -c \"true; :\"; ls; :'; env true; (ls; :)"
    stet("exec", "--check", "true; ls", "--", "sh", "-c", deep, cwd=work).ok()

    def shown(*args):
        lines = stet("audit", "t1", *args).ok().out.splitlines()
        return [x.split(" exec    ", 1)[1][1:] for x in lines if " exec " in x]

    def tree(lines):
        return [((len(x) - len(x.lstrip())) / 2, x.rsplit(": ", 1)[1].split()[0]) for x in lines]

    assert tree(shown()) == [(0, "sh"), (1, "sh"), (2, "sh"), (2, "ls"), (1, "env"), (1, "true"),
                             (1, "ls"), (0, "/bin/sh"), (1, "ls")]
    r = [r for r in records(stet, "t1") if r["event"] == "exec"]
    assert [x.split()[0] for x in shown()] == [f"{x['pid']}<{x['ppid']}" for x in r]


def test_every_exit(stet, work):
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 15):
        pytest.skip("impossible here: the kernel does not tell how other processes ended")
    stet("exec", "--", "sh", "-c", "sh -c 'exit 3'; env true; sh -c 'kill -9 $$'; exit 5",
         cwd=work).ok(5)
    r = records(stet, "t1")
    last = {x["pid"]: x["argv"] for x in r if x["event"] == "exec"}
    ends = {tuple(last[x["pid"]]): x.get("exit", -x.get("signal", 0))
            for x in r if x["event"] == "exit"}
    assert ends == {("sh", "-c", "exit 3"): 3, ("true",): 0, ("sh", "-c", "kill -9 $$"): -9,
                    ("sh", "-c", "sh -c 'exit 3'; env true; sh -c 'kill -9 $$'; exit 5"): 5}
    sound(stet)


def test_strange_arguments(stet, work):
    stet("exec", "--", "true", "a\nb", b"\xff\\", "x" * 5000, "\u202e", cwd=work).ok()
    argv = records(stet)[0]["argv"]
    assert argv[1:3] == ["a\nb", "\\xff\\\\"] and argv[3] == "x" * 4096 + "…"
    out = stet("audit").ok().out
    assert "\u202e" not in out and len([x for x in out.splitlines() if " exit  " not in x]) == 3


def test_out_of_reach(stet, work):
    stet.ready()
    stet("exec", "--", "true", cwd=work).ok()
    r = stet("exec", "--", "sh", "-c", f"ls {stet.state}; cat {books(stet)}; mkdir -p {stet.state}; "
             f"echo forged >> {books(stet)}; true", cwd=work)
    assert "hash" not in r.out
    assert sound(stet) >= 3
    with open(books(stet), encoding="utf-8") as f:
        assert all(json.loads(x)["event"] for x in f)


def edit(lines):
    n = next(i for i, x in enumerate(lines) if '"t2"' in x)
    lines[n] = lines[n].replace('"t2"', '"t9"')


HARM = {
    "edited": edit,
    "removed": lambda lines: lines.pop(2),
    "first removed": lambda lines: lines.pop(0),
    "end removed": lambda lines: lines.pop(),
    "exchanged": lambda lines: lines.insert(1, lines.pop(3)),
    "repeated": lambda lines: lines.insert(3, lines[2]),
    "all removed": lambda lines: lines.clear(),
    "foreign": lambda lines: lines.insert(2, '{"event":"exec"}\n'),
}


@pytest.mark.parametrize("name", HARM)
def test_harm_is_found(stet, work, name):
    for _ in range(3):
        stet("exec", "--", "true", cwd=work).ok()
    sound(stet)
    with open(books(stet), encoding="utf-8") as f:
        lines = f.readlines()
    HARM[name](lines)
    with open(books(stet), "w", encoding="utf-8") as f:
        f.writelines(lines)
    r = stet("audit", "verify").ok(7)
    assert "not all sound" in r.out
    stet("exec", "--", "true", cwd=work).ok()
    stet("audit", "verify").ok(7)


def test_books_that_are_gone_are_missed(stet, work):
    """Log and head together: the journal knows that there were some."""
    sound(stet)
    stet("exec", "--", "touch", "a", cwd=work).ok()
    for name in ("audit.jsonl", "audit.head"):
        os.unlink(os.path.join(stet.state, name))
    assert "there are no books" in stet("audit", "verify").ok(7).out
    stet("exec", "--", "true", cwd=work).ok()
    assert "the journal has t1" in stet("audit", "verify").ok(7).out


def test_an_older_copy_is_found(stet, work):
    """Log and head set back together: the chain is whole, the journal knows better."""
    stet("exec", "--", "true", cwd=work).ok()
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(os.path.join(stet.state, name), os.path.join(stet.home, name))
    stet("exec", "--", "true", cwd=work).ok()
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(os.path.join(stet.home, name), os.path.join(stet.state, name))
    assert "the journal has t2" in stet("audit", "verify").ok(7).out


def test_many_at_once(stet, work):
    stet.ready()
    ps = [stet.popen("exec", "--", "sh", "-c", f"echo {i} > {i}", cwd=work) for i in range(6)]
    for p in ps:
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
    assert sound(stet) > 18
    assert sorted(os.listdir(work)) == [str(i) for i in range(6)]


def test_after_our_own_death(stet, work):
    mark = f"5{os.getpid()}9"
    p = stet.popen("exec", "--", "sh", "-c", f"echo x > x; sleep {mark}", cwd=work)
    wait_until(lambda: processes_with(f"sleep\0{mark}"))
    p.kill()
    p.wait()
    wait_until(lambda: not processes_with(f"sleep\0{mark}"))
    # A line that was cut by the crash, on top.
    with open(books(stet), "ab") as f:
        f.write(b'{"seq":2,"pr')
    found = [r.get("event", r.get("wrong")) for r in records(stet)]
    assert [x for x in found if x not in ("exec", "exit")] == ["begin", "is no record", "torn", "rollback"]
    sound(stet)


def test_follow(stet, work):
    stet("exec", "--", "true", cwd=work).ok()
    p = stet.popen("audit", "--follow", "--json", stdout=subprocess.PIPE)

    def seen(n):
        out = []
        while len(out) < n:
            event = json.loads(p.stdout.readline())["event"]
            out += [event] if event != "exit" else []
        return out

    assert seen(3) == ["begin", "exec", "drop"]
    stet("exec", "--", "sh", "-c", "echo 1 > a", cwd=work).ok()
    assert seen(4) == ["begin", "exec", "end", "commit"]
    p.terminate()
    p.wait()


# Each with long words of its own: the whole would fill the books twice.
FLOOD = """
import os
for i in range(10000):
    p = os.posix_spawn("/bin/true", ["true", *[f"{i}{k}" + "x" * 4000 for k in range(14)]], {})
    os.waitpid(p, 0)
"""


def test_a_flood_pushes_nothing_out(stet, work):
    """What was before is all there, and what was not told is counted. (More of them: test_audit.c.)"""
    stet("exec", "--", "sh", "-c", "echo 1 > a", cwd=work).ok()
    before = records(stet, "t1")
    stet("run", "-q", "--checkpoint", "none", "--", "python3", "-c", FLOOD, cwd=work,
         timeout=120).ok()
    assert records(stet, "t1") == before
    size = sum(os.path.getsize(os.path.join(stet.state, n)) for n in os.listdir(stet.state)
               if n.startswith("audit"))
    assert size < 45 << 20
    r = stet("audit", "verify", "--json").ok().json()
    found = records(stet, "t2")
    told = [x["event"] for x in found].count("exec")
    counted = sum(x["count"] for x in found if x["event"] == "folded")
    assert told > 500 and told + counted == 10001 and r["folded"] >= counted
    assert "execs and exits are counted in them" in stet("audit", "verify").ok().out
    assert " folded   " in stet("audit", "t2").ok().out


def test_the_same_over_and_over(stet, work):
    """A command that is repeated is told a hundred times, then counted with its verdict."""
    stet("exec", "--", "sh", "-c", "for i in $(seq 300); do /bin/true same; done; /bin/true other",
         cwd=work).ok()
    found = records(stet, "t1")
    argv = [x["argv"] for x in found if x["event"] == "exec"]
    assert argv.count(["/bin/true", "same"]) == 100 and argv.count(["/bin/true", "other"]) == 1
    (one,) = [x for x in found if x["event"] == "folded" and "argv" in x]
    assert (one["count"], one["argv"], one["verdict"]) == (200, ["/bin/true", "same"], "allow")
    assert [x["event"] for x in found][-1] != "folded"  # told before the end
    assert "200 more, allow (ran): /bin/true same" in stet("audit", "t1").ok().out
