# SPDX-License-Identifier: Apache-2.0
"""Beside git on the host: what it merely looks up anew in its index is nobody's change."""
import pytest
from commitlib import CONFLICT, begin, commit, end, names_conflict, plain, redo, shell, undo, \
    wait_for_notes

GIT = "git -c user.name=t -c user.email=t@localhost"
# Kinds of index: how the repository is made, and what is done to it.
KINDS = {
    "plain": ("git init -q .", ":"),
    "version4": ("git init -q .; git config index.version 4", ":"),
    "long": ("git init -q --object-format=sha256 .", ":"),
    "flags": ("git init -q .", "echo n > new; git add -N new; git update-index --skip-worktree f3"),
    "untracked": ("git init -q .", "git update-index --force-untracked-cache"),
}
# What a person, a prompt or an editor runs all day; the file is touched so that it has a reason to write.
LOOK = "touch -d 2001-01-01 f2; git status --short; touch f2; git status --short"


@pytest.fixture(name="repo", params=KINDS)
def fixture_repo(request, work):
    make, then = KINDS[request.param]
    shell(f"{make}; for i in {{1..9}}; do echo $i > f$i; done; git add .; {GIT} commit -qm 1; {then}", work)
    return work


def files(work):
    """Without what is git's own business: its index after a look is another one."""
    return {n: {k: v for k, v in d.items() if k != "mtime"} for n, d in plain(work).items()
            if n and n not in (b".git", b".git/index")}


def test_looked_up_while_it_runs(stet, repo):
    before = files(repo)
    p = begin(stet, repo, "echo inside > f1; git add f1")
    wait_for_notes(stet, p, [b"/.git/index"])
    shell(LOOK, repo)
    end(p)
    shell(LOOK, repo)
    commit(stet, repo).ok()
    assert shell("git diff --cached --name-only --diff-filter=M", repo) == "f1\n"
    undo(stet, repo).ok()
    assert files(repo) == before


def test_looked_up_after_the_commit(stet, repo):
    stet.sh("echo inside > f1; git add f1", cwd=repo).ok()
    before = files(repo)
    commit(stet, repo).ok()
    done = files(repo)
    shell(LOOK, repo)
    undo(stet, repo).ok()
    assert files(repo) == before
    shell(LOOK, repo)
    redo(stet, repo).ok()
    assert files(repo) == done


def test_staged_on_the_host(stet, repo):
    """Something that git was told is somebody's work."""
    p = begin(stet, repo, "echo inside > f1; git add f1")
    end(p)
    shell("echo host > f5; git add f5", repo)
    assert names_conflict(commit(stet, repo).ok(CONFLICT), ".git/index")
    commit(stet, repo, ours=[".git/index"]).ok()
    shell("git add f5", repo)
    assert names_conflict(undo(stet, repo).ok(CONFLICT), ".git/index")
