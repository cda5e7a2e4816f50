# SPDX-License-Identifier: Apache-2.0
"""Rules about changes: what they deny is not committed, what they ask for takes a yes."""
import pytest

POLICY = """version: 1
diff:
  - {id: mine.deny, verdict: deny, what: [written], paths: {within: [$WORKSPACE/fixed]},
     why: it was agreed on}
  - {id: mine.gone, verdict: deny, what: [deleted], paths: {within: [$WORKSPACE/old]},
     why: it is still needed}
  - {id: mine.ask, verdict: ask, what: [executable], why: somebody might run it}
"""


@pytest.fixture(name="project")
def fixture_project(stet, home, work):
    rules = home / ".config" / "stet" / "policy.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text(POLICY)
    (work / "fixed").write_text("as it was\n")
    (work / "old").write_text("old\n")
    return work


def notes(o, kind):
    return [(n["path"].rpartition("/")[2], n["what"].partition(":")[0]) for n in o.get(kind, [])]


@pytest.mark.parametrize("script, kind, want", [
    ("echo new > fixed", "denied", [("fixed", "mine.deny")]),
    ("rm old", "denied", [("old", "mine.gone")]),
    ("echo x > tool; chmod +x tool", "risks", [("tool", "mine.ask")]),
    ("mkdir .husky; echo x > .husky/pre-push", "risks", [("pre-push", "diff.git-hooks")]),
])
def test_commit_refuses(stet, project, script, kind, want):
    stet.sh(script, cwd=project).ok()
    assert notes(stet("status", "--json", cwd=project).ok().json(), "risks") == want
    e = stet("commit", "--json", cwd=project).ok(2).json()["error"]
    assert notes(e, kind) == want
    assert (project / "fixed").read_text() == "as it was\n" and (project / "old").exists()
    r = stet("commit", "--accept-risky", "--json", cwd=project)
    assert r.rc == (2 if kind == "denied" else 0), r


def test_the_rest_can_be_committed(stet, project):
    stet.sh("echo new > fixed; echo a > a", cwd=project).ok()
    stet("commit", "a", cwd=project).ok()
    assert (project / "a").exists() and (project / "fixed").read_text() == "as it was\n"


def test_exec_and_run(stet, project):
    r = stet("exec", "--json", "--", "sh", "-c", "echo new > fixed", cwd=project).ok(125).json()
    assert (r["reason"], r["fate"]) == ("policy", "rolled back")
    r = stet("exec", "--", "sh", "-c", "echo new > fixed", cwd=project).ok(125)
    assert "mine.deny: it was agreed on" in r.err
    stet.sh("echo new > fixed", opts=["--on-success", "commit"], cwd=project).ok(125)
    assert (project / "fixed").read_text() == "as it was\n"
    stet("exec", "--no-policy", "--", "sh", "-c", "echo new > fixed", cwd=project).ok()
    assert (project / "fixed").read_text() == "new\n"


def test_a_policy_that_does_not_load_commits_nothing(stet, project, home):
    stet.sh("echo a > a", cwd=project).ok()
    (home / ".config/stet/policy.yaml").write_text("version: 1\nnonsense: 1\n")
    r = stet("commit", cwd=project).ok(1)
    assert "policy.yaml:2" in r.err and not (project / "a").exists()
