# SPDX-License-Identifier: Apache-2.0
"""What is --read-only is not committed, though a mount on a file can be taken away with the file."""
import json
import os

import pytest
from commitlib import DENIED, commit, plain, shell, undo

SAID = "was read-only for the command"
HOST = "mkdir -p d/sub; echo keep > d/ro; echo o > d/o; echo f > d/sub/f; echo top > top; "
# With mounts of its own, the name goes, and what was mounted on it for everybody.
GONE = '"$1" nested-remove=$PWD/d/ro >&2 && '

# What the command does, what is refused, what else there is, and a script that does to a copy of
# the host's tree what a commit without that does.
CASES = {
    "replaced": ("echo EVIL > d/ro; echo n > d/n", ["d/ro"], "echo n > d/n"),
    "deleted": ("rm -f d/o", ["d/ro"], "rm d/o"),
    "renamed over": ("mv d/o d/ro", ["d/ro"], "rm d/o"),
    "now a directory": ("mkdir d/ro; echo x > d/ro/x; echo y > d/y", ["d/ro", "d/ro/x"],
                        "echo y > d/y"),
    "now a link": ("ln -s /etc/passwd d/ro; echo y > d/y", ["d/ro"], "echo y > d/y"),
    "now a link to another": ("ln d/o d/ro; echo y > d/y", ["d/ro"], "echo y > d/y"),
    "deleted around": ("rm -r d; echo y > y", ["d/ro"], "rm -r d/o d/sub; echo y > y"),
    "replaced around": ("rm -r d; mkdir d; echo EVIL > d/ro; echo n > d/n", ["d/ro"],
                        "rm -r d/o d/sub; echo n > d/n"),
    "a mode": ("echo keep > d/ro; chmod 777 d/ro; echo y > y", ["d/ro"], "echo y > y"),
}


def run(stet, work, probe, name):
    shell(HOST, work)
    script, refused, _ = CASES[name]
    r = stet.run("bash", "-c", f"set -e; {GONE} {script}", "-", probe, cwd=work,
                 opts=["--no-policy", "--read-only", work / "d/ro"]).ok()
    return [os.path.join(work, p) for p in refused]


def denied(r):
    found = json.loads(r.out)
    return {n["path"] for n in (found.get("error") or found)["denied"] if n["what"] == SAID}


def contents(path):
    return {n: {k: v for k, v in d.items() if k not in ("mtime", "links")}
            for n, d in plain(path).items()}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_committed(stet, work, probe, name):
    """Neither as a whole nor by its name, whatever is accepted."""
    refused = run(stet, work, probe, name)
    before = plain(work)
    assert denied(commit(stet, work, opts=["--dry-run", "--json"]).ok()) == set(refused)
    for words in {}, {"ours": ["d/ro", "d"]}, {"opts": ["--merge"]}:
        r = commit(stet, work, **words).ok(DENIED)
        assert f"{refused[0]}" in r.err and "read-only in t1; nothing was committed" in r.err
        assert "stet commit t1 --theirs PATH" in r.err
    for path in "d/ro", "d", "d/r*":
        r = commit(stet, work, path, opts=["--json"]).ok(DENIED)
        assert denied(r) == set(refused)
    assert plain(work) == before
    assert SAID in stet("diff", cwd=work).ok().out
    shown = stet("diff", "--json", cwd=work).ok().json()["changes"]
    assert [c["path"] for c in shown if c["read_only"]] == refused


@pytest.mark.parametrize("name", CASES)
def test_the_rest(stet, work, tmp_path, probe, name):
    """Without it, all else is committed, and undone."""
    refused = run(stet, work, probe, name)
    before = plain(work)
    copy = tmp_path / "copy"
    shell(f"cp -a '{work}' '{copy}'; cd '{copy}'; {CASES[name][2]}", tmp_path)
    commit(stet, work, theirs=refused).ok()
    assert contents(work) == contents(copy)
    undo(stet, work).ok()
    assert plain(work) == before


@pytest.mark.parametrize("name", CASES)
def test_on_success(stet, work, probe, name):
    """A commit at once is refused like any other; the transaction waits."""
    shell(HOST, work)
    before = plain(work)
    script, refused, _ = CASES[name]
    r = stet.run("bash", "-c", f"set -e; {GONE} {script}", "-", probe, cwd=work,
                 opts=["--no-policy", "--read-only", work / "d/ro", "--on-success", "commit"])
    assert os.path.join(work, refused[0]) in r.err and "nothing was committed" in r.err
    assert plain(work) == before
    assert "pending" in stet("status", cwd=work).ok().out


def test_other_paths_by_their_name(stet, work, probe):
    run(stet, work, probe, "replaced")
    commit(stet, work, "d/n").ok()
    assert (work / "d/n").read_text() == "n\n"
    assert (work / "d/ro").read_text() == "keep\n"
    r = commit(stet, work).ok(DENIED)
    assert "d/ro" in r.err


def test_with_all_around_it(stet, work, probe):
    """Below a directory that is read-only the name cannot be taken away; what can be done is."""
    shell(HOST, work)
    stet.run("bash", "-c", f"{GONE} echo y > y; ! echo x > d/ro", "-", probe, cwd=work,
                 opts=["--no-policy", "--read-only", work / "d"]).ok()
    commit(stet, work).ok()
    assert (work / "d/ro").read_text() == "keep\n"
    assert (work / "y").exists()


def test_explored(stet, work, probe):
    """What is done later, in the same view, is held to the same."""
    shell(HOST, work)
    stet.run("bash", "-c", "echo y > y", cwd=work,
             opts=["--no-policy", "--read-only", work / "d/ro"]).ok()
    stet("explore", "--", "bash", "-c", f"{GONE} echo EVIL > d/ro", "-", probe, cwd=work).ok()
    assert "d/ro" in commit(stet, work).ok(DENIED).err
    assert (work / "d/ro").read_text() == "keep\n"


def test_an_untouched_one_stops_nothing(stet, work):
    """Changed on the host meanwhile, or copied ahead: no doing of the command's."""
    shell(HOST, work)
    p = stet.popen("run", "--quiet", "--read-only", work / "d/ro", "--read-only", work / "d/sub",
                   "--", "bash", "-c", "echo y > d/y; echo READY; read line", cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    shell("echo host > d/ro; echo host > d/sub/f; echo host > d/sub/g", work)
    p.stdin.write(b"\n")
    p.stdin.close()
    assert p.wait() == 0
    commit(stet, work, opts=["--json"]).ok()
    assert (work / "d/ro").read_text() == "host\n"
    assert (work / "d/y").exists()


@pytest.mark.parametrize("path", ["d/ro", "d/sub"])
@pytest.mark.parametrize("how", ["remove", "rename"])
def test_in_what_is_written_through(stet, work, probe, path, how):
    """There is no layer there: nobody gets mounts of his own."""
    shell(HOST, work)
    r = stet.run("bash", "-c", f'"$1" nested-{how}=$PWD/{path}; echo y > d/y', "-", probe,
                 cwd=work, opts=["--no-policy", "--write-through", work / "d", "--read-only",
                                 work / path]).ok()
    assert f"nested-{how}: denied(EPERM)" in r.out + r.err
    assert sorted(os.listdir(work / "d")) == ["o", "ro", "sub", "y"]
    assert (work / "d/ro").read_text() == "keep\n"
    assert (work / "d/sub/f").read_text() == "f\n"


def test_mounts_of_its_own(stet, work, probe):
    """Where nothing depends on it, a command has them still."""
    shell(HOST, work)
    r = stet.run("bash", "-c", '"$1" nested-rename=$PWD/d/o', "-", probe, cwd=work,
                 opts=["--no-policy", "--write-through", work / "d", "--read-only", work / "top"]
                 ).ok()
    assert "denied" not in r.out + r.err
    assert (work / "d/moved").read_text() == "o\n"
