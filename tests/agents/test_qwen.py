# SPDX-License-Identifier: Apache-2.0
"""A real agent destroys a project inside a transaction, and nothing of it is true outside."""
import json
import os
import signal
import subprocess

import pexpect
from qwenlib import LIMIT, agent_env, the_commands_saw, the_model_was_told
from stetlib import differences


def the_transaction_shows_it(stet, project):
    status = stet("status", "--json", "--all", cwd=project).ok().json()
    assert status["txn"]["state"] == "pending"
    kinds = {}
    for change in status["changes"]:
        path = os.path.relpath(change["path"], project)
        kinds[path] = change["kind"]
        if change["kind"] == "R":
            kinds[os.path.relpath(change["from"], project)] = "D"
    for path in ("src", "src/main.c", "src/util.c", "src/deep/data.bin", "docs/guide.md"):
        assert kinds.get(path) == "D", (path, kinds)
    assert kinds["README.md"] == kinds["Makefile"] == "M"
    assert kinds["new.txt"] == "A"
    assert kinds["papers/guide.md"] in "AR"
    diff = stet("diff", cwd=project).ok()
    assert "+gone" in diff.out and "-# demo" in diff.out
    tx = status["txn"]["id"]
    said = stet("diff", tx, "said", cwd=project).ok().out
    the_commands_saw("".join(line[1:] + "\n" for line in said.splitlines()
                             if line.startswith("+") and not line.startswith("+++")))
    return tx


def each_call_is_a_checkpoint(stet, project):
    """What the first command did and what the second did can be told apart, and taken back."""
    points = [json.loads(line)["checkpoint"]
              for line in stet("log", "--json", cwd=project).ok().out.splitlines()]
    changed = {n: {os.path.relpath(c["path"], project)
                   for c in stet("diff", str(n), "--json", cwd=project).ok().json()["changes"]}
               for n in points if n}
    first = {n for n, paths in changed.items() if "src/main.c" in paths}
    second = {n for n, paths in changed.items() if "papers/guide.md" in paths}
    assert first and second and not first & second, changed


def the_rollback_ends_it(stet, project):
    tx = the_transaction_shows_it(stet, project)
    stet("rollback", tx, cwd=project).ok()
    listed = stet("list", "--all", "--json", cwd=project).ok().json()
    states = {t["id"]: t["state"] for t in listed["transactions"]}
    assert states[tx] == "rolled back"


def test_headless(qwen, server, project, stet, digest):
    before = digest(project)
    r = stet("run", "--", qwen, "-p", "go", "--yolo", "--output-format", "stream-json",
             "--auth-type", "openai", cwd=project, env=agent_env(server), timeout=LIMIT)
    r.ok()
    assert '"result":"done"' in r.out
    the_model_was_told(server)
    assert not differences(before, digest(project))
    # Its own state stays inside as well.
    assert not os.path.exists(os.path.join(stet.home, ".qwen"))
    each_call_is_a_checkpoint(stet, project)
    the_rollback_ends_it(stet, project)
    assert not differences(before, digest(project))


def leave(tui, seconds):
    """Ctrl-C, as a byte through the terminal; the second one in a row ends the agent."""
    for _ in range(seconds):
        tui.sendcontrol("c")
        if tui.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=1) == 0:
            tui.wait()  # it has closed the terminal, which is not yet its end
            return
    raise AssertionError(f"it does not end:\n{tui.before!r}")


def follow(tui, event, seconds):
    """Reads (a full-screen program blocks if nobody does) until something has happened."""
    for _ in range(seconds * 2):
        if event.is_set():
            return
        index = tui.expect([pexpect.TIMEOUT, pexpect.EOF], timeout=0.5)
        assert index == 0, f"it ended early:\n{tui.before!r}"
    raise AssertionError(f"nothing happened:\n{tui.before!r}")


def test_in_a_terminal(qwen, server, project, stet, digest):
    before = digest(project)
    tui = pexpect.spawn(stet.path, ["run", "--on-success", "keep", "--", qwen, "--yolo",
                                    "--auth-type", "openai", "-i", "go"],
                        cwd=str(project), env=stet.environ(agent_env(server)),
                        dimensions=(40, 120), timeout=60)
    try:
        follow(tui, server.finished, LIMIT)
        tui.expect("done")
        leave(tui, 60)
    finally:
        tui.close(force=True)
    # The last Ctrl-C may meet an agent that has already given the keyboard back (130), or stet itself,
    # which has nothing left to do then but to say what was done.
    assert tui.exitstatus in (0, 130) or tui.signalstatus == signal.SIGINT
    the_model_was_told(server)
    assert not differences(before, digest(project))
    the_rollback_ends_it(stet, project)
    assert not differences(before, digest(project))


def test_killed_agent_leaves_nothing(qwen, server, project, stet, digest):
    """The supervisor dies in the middle of it all: the host's files are what they were."""
    before = digest(project)
    p = stet.popen("run", "--", qwen, "-p", "go", "--yolo", "--auth-type", "openai",
                   cwd=project, env=agent_env(server), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    try:
        assert server.begun.wait(LIMIT), "the agent made no call"
    finally:
        p.kill()
        p.wait()
    assert not differences(before, digest(project))
    listed = stet("list", "--json", cwd=project).ok().json()
    assert [t["state"] for t in listed["transactions"]] == ["interrupted"]
    status = stet("status", "--json", cwd=project).ok().json()
    assert any(c["path"] == str(project / "src") and c["kind"] == "D"
               for c in status["changes"])
    stet("rollback", cwd=project).ok()
    assert not differences(before, digest(project))
