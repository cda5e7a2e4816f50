# SPDX-License-Identifier: Apache-2.0
"""A real agent destroys a project inside a transaction, and nothing of it is true outside."""
import os
import subprocess

import pexpect
import pytest
from modelserver import ModelServer
from stetlib import differences

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = {
    "README.md": "# demo\n",
    "Makefile": "all:\n\tcc -o demo src/main.c src/util.c\n",
    "src": {"main.c": "int main(void) { return 0; }\n", "util.c": "int x;\n",
            "deep": {"data.bin": bytes(range(256)) * 16}},
    "docs": {"guide.md": "guide\n", "latest": ("link", "guide.md")},
}
# What a careless model does on a bad day. The agent may lose the end of a command's output
# (its terminal is closed before it has read all), so what each command saw is in a file too.
SCRIPT = [
    "rm -rf src && echo gone > README.md && echo first-done >> said",
    "mv docs papers && chmod 600 Makefile && echo junk > new.txt && echo second-done >> said",
    "find . -type f -not -path './.git/*' | sort >> said; cat README.md >> said; "
    "test ! -e src && echo third-done >> said; cat said",
]
SAID = ["first-done", "second-done", "./Makefile", "./README.md", "./new.txt",
        "./papers/guide.md", "./said", "gone", "third-done"]
LIMIT = 180  # seconds; a run takes ten on a quiet machine


@pytest.fixture(name="qwen", scope="session")
def fixture_qwen():
    """The agent's program; tests/run has installed it, in a cache, before."""
    installer = os.path.join(os.environ.get("STET_SOURCE", f"{HERE}/../.."),
                             "build-aux", "agents")
    r = subprocess.run([installer, "qwen"], stdout=subprocess.PIPE, text=True, check=False)
    assert r.returncode == 0, "the agent cannot be installed"
    return r.stdout.strip()


@pytest.fixture(name="server")
def fixture_server():
    with ModelServer(SCRIPT) as server:
        yield server


@pytest.fixture(name="project")
def fixture_project(work, tree):
    tree(work, PROJECT)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True,
                   env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    return work


def agent_env(server):
    """Nothing of the outside world: a proxy would swallow the requests to loopback."""
    return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_MODEL": "mock", "SHELL": "/bin/bash", "NO_COLOR": None,
            "TERM": "xterm-256color"}


def the_model_was_told(server):
    """All of the script ran, in order, each of its commands with success."""
    results = server.results()
    assert len(results) == len(SCRIPT), server.requests
    for command, result in zip(SCRIPT, results):
        assert command in result and "Exit Code: 0" in result, result


def the_commands_saw(text):
    """The third command saw what the first two had done."""
    assert text.split("\n") == SAID + [""], text


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


def the_rollback_ends_it(stet, project):
    tx = the_transaction_shows_it(stet, project)
    stet("rollback", tx, cwd=project).ok()
    listed = stet("list", "--all", "--json", cwd=project).ok().json()
    states = {t["id"]: t["state"] for t in listed["transactions"]}
    assert states[tx] == "rolled back"


def test_agent_alone_is_destructive(qwen, server, project, home):
    """Without stet the script does what it says: the other tests rest on that."""
    env = {k: v for k, v in agent_env(server).items() if v is not None}
    subprocess.run([qwen, "-p", "go", "--yolo", "--auth-type", "openai"], cwd=project,
                   env=dict(env, HOME=str(home), PATH="/usr/local/bin:/usr/bin:/bin"),
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                   timeout=LIMIT, check=True)
    the_model_was_told(server)
    assert not os.path.exists(project / "src")
    assert (project / "README.md").read_text() == "gone\n"
    the_commands_saw((project / "said").read_text())


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
    # 130: the last Ctrl-C met an agent that had already given the keyboard back.
    assert tui.exitstatus in (0, 130)
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
