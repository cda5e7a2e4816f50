# SPDX-License-Identifier: Apache-2.0
"""One call, one commit: what it did to files outside of the workspace is not done unseen."""
import os
import subprocess

import pytest
from stetlib import differences, digest, make_tree

SANITIZED_APART = True

PRECIOUS = {"a": "one\n", "b": "two\n" * 100, "link": ("link", "a"), "empty": {".keep": ""},
            "dir": {"c": "three\n", "deep": {"d": "four\n"}}}

# For many the place where their files are, until they say otherwise.
TRASH = ".local/share/Trash"

OFF = "version: 1\noff: ['rm.*', 'mv.*', 'chmod.*', 'redirect.*', 'write.*', 'tar.*']\n"

PY = "python3 -c 'import os, shutil, pathlib; P = os.path.expanduser(\"~/precious\"); {}'"


def py(code):
    return PY.format(code)


# What was there is gone or is something else.
ATTACKS = {
    # deletions
    "rm": "rm ~/precious/a",
    "unlink": "unlink ~/precious/a",
    "rm by find": "find ~/precious -type f -exec rm {} +",
    "rmdir": "rm ~/precious/empty/.keep; rmdir ~/precious/empty",
    "perl unlink": "perl -e 'unlink glob \"$ENV{HOME}/precious/*\"'",
    "perl rmtree": "perl -MFile::Path=remove_tree -e 'remove_tree(\"$ENV{HOME}/precious\")'",
    "os.unlink": py("os.unlink(P + \"/a\")"),
    "os.removedirs": py("os.unlink(P + \"/empty/.keep\"); os.rmdir(P + \"/empty\")"),
    "shutil.rmtree": py("shutil.rmtree(P)"),
    "rmtree of a part": py("shutil.rmtree(P + \"/dir\")"),
    "pathlib": py("[f.unlink() for f in pathlib.Path(P).rglob(\"*\") if f.is_file()]"),
    "in the background": py("os.fork() or (os.setsid(), shutil.rmtree(P)); os.wait()"),
    "what was thrown away": "rm -r ~/.local/share/Trash/files/precious",
    "all that was thrown away": py("shutil.rmtree(os.path.expanduser(\"~/.local/share/Trash\"))"),
    # moves
    "mv to /tmp": "mv ~/precious /tmp/x",
    "mv into the workspace": "mv ~/precious/a .",
    "mv the directory in": "mv ~/precious here",
    "mv aside": "mv ~/precious ~/precious2",
    "mv a part aside": "mv ~/precious/dir ~/precious/dir2",
    "os.rename": py("os.rename(P, P + \".old\")"),
    "renamed over": "echo x > t; mv -f t ~/precious/a",
    "os.replace": py("open(\"t\", \"w\").close(); os.replace(\"t\", P + \"/a\")"),
    "exchanged": py("os.rename(P + \"/a\", P + \"/t\"); os.rename(P + \"/b\", P + \"/a\"); "
                    "os.rename(P + \"/t\", P + \"/b\")"),
    # content
    "truncated by the shell": ": > ~/precious/a",
    "truncate": "truncate -s 0 ~/precious/b",
    "truncate by a byte": "truncate -s -1 ~/precious/b",
    "os.truncate": py("os.truncate(P + \"/b\", 3)"),
    "overwritten": "echo other > ~/precious/a",
    "one byte": "printf x | dd of=$HOME/precious/b bs=1 seek=5 conv=notrunc status=none",
    "appended": "echo more >> ~/precious/a",
    "cp over": "echo x > t; cp t ~/precious/a",
    "cp /dev/null": "cp /dev/null ~/precious/a",
    "install over": "echo x > t; install -m 644 t ~/precious/a",
    "tee": "echo x | tee ~/precious/a",
    "sed -i": "sed -i s/two/x/ ~/precious/b",
    "perl -i": "perl -pi -e s/two/x/ ~/precious/b",
    "shred": "shred ~/precious/a",
    "tar over": "mkdir precious; echo x > precious/a; tar cf - precious | tar xf - -C ~",
    "mmap": py("import mmap; f = open(P + \"/b\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0] = 65; "
               "m.flush()"),
    "fallocate": "fallocate -p -l 64 ~/precious/b",
    # another kind of thing
    "directory to link": "mv ~/precious here; ln -s $PWD/here ~/precious",
    "part to link": py("shutil.rmtree(P + \"/dir\"); os.symlink(\"/tmp\", P + \"/dir\")"),
    "file to link": "ln -sf /etc/hostname ~/precious/a",
    "link to elsewhere": "ln -sfn b ~/precious/link",
    "file to directory": "rm ~/precious/a; mkdir ~/precious/a",
    "directory to file": py("shutil.rmtree(P); open(P, \"w\").close()"),
    "file to fifo": "rm ~/precious/a; mkfifo ~/precious/a",
    "hard link over": "echo x > t; ln -f t ~/precious/a",
    "directory made anew": py("shutil.rmtree(P); os.mkdir(P)"),
    "whole tree made anew": "cp -a ~/precious t; echo x > t/a; python3 -c 'import shutil, os; "
                            "shutil.rmtree(os.path.expanduser(\"~/precious\"))'; mv t ~/precious",
    # attributes
    "chmod 000": "chmod 000 ~/precious",
    "chmod 000 of a file": "chmod 000 ~/precious/a",
    "chmod of all": "find ~/precious -exec chmod 777 {} +",
    "os.chmod": py("os.chmod(P + \"/dir\", 0)"),
    "executable": "chmod +x ~/precious/a",
    "xattr": py("os.setxattr(P + \"/a\", \"user.x\", b\"1\")"),
    "xattr of a directory": py("os.setxattr(P + \"/dir\", \"user.x\", b\"1\")"),
    # by other ways
    "through a link": "ln -s ~/precious l; echo x > l/a",
    "through a hard link": "ln ~/precious/a l; echo x > l",
    "from its own directory": "cd ~/precious; echo x > a",
    "by /proc/self/cwd": "cd ~/precious; python3 -c 'import os; os.unlink(\"/proc/self/cwd/a\")'",
    "by a descriptor": py("d = os.open(P, os.O_RDONLY); os.unlink(\"a\", dir_fd=d)"),
    "by a script": "printf 'rm ~/precious/a\\n' > s; sh s",
    "by awk": "awk 'BEGIN { system(\"rm ~/precious/a\") }'",
    "by xargs": "echo ~/precious/a | xargs unlink",
    "by env -S": "env -S 'unlink' ~/precious/a",
    "together with honest work": "echo x > src; rm ~/precious/a; echo y > more",
}


@pytest.fixture(name="place")
def fixture_place(stet, home, work):
    make_tree(home / "precious", PRECIOUS)
    make_tree(home / TRASH, {"files": {"precious": PRECIOUS}, "info": {"precious.trashinfo": "[Trash Info]\n"},
                             "directorysizes": "1 2 precious\n"})
    (work / "src").write_text("mine\n")
    # No command is refused before it has done anything; root's home counts as the system's.
    make_tree(home / ".config" / "stet", {"policy.yaml": OFF})
    stet.ready()
    return work


def outside(home):
    """The home but for what is stet's and the workspace."""
    return {(n, k): v for n in sorted(os.listdir(home)) if n not in (".local", "work")
            for k, v in digest(home / n).items()} | {("Trash", k): v for k, v in digest(home / TRASH).items()}


@pytest.mark.parametrize("name", ATTACKS)
def test_exec_commits_nothing(stet, home, place, name):
    before = outside(home)
    r = stet("exec", "--json", "--", "sh", "-c", ATTACKS[name], cwd=place)
    o = r.json()
    assert (o["reason"], o["fate"], r.rc) == ("policy", "rolled back", 125), r
    whats = [n["what"] for n in o["error"]["risks"]]
    assert any(w.startswith(("diff.outside.", "link that")) for w in whats), r
    assert "stet exec --accept-risky" in o["error"]["hint"]
    assert not differences(before, outside(home))
    assert (place / "src").read_text() == "mine\n"


def test_as_text(stet, home, place):
    r = stet("exec", "--", "rm", home / "precious/a", cwd=place).ok(125)
    assert "precious/a" in r.err and "diff.outside.deleted: deleted outside of the workspace" in r.err
    assert "stet exec --accept-risky" in r.err


def test_accepted(stet, home, place):
    stet("exec", "--accept-risky", "--", "rm", home / "precious/a", cwd=place).ok()
    assert not (home / "precious/a").exists()
    stet("undo", cwd=place).ok()
    assert (home / "precious/a").exists()


@pytest.mark.parametrize("opt", ["--on-success", "--on-failure"])
def test_run_keeps_it_pending(stet, home, place, opt):
    end = "" if opt == "--on-success" else "; exit 1"
    before = outside(home)
    r = stet("run", "--json", opt, "commit", "--", "sh", "-c", f"rm ~/precious/a{end}", cwd=place).ok(125)
    assert "diff.outside.deleted" in r.err and "--accept-risky" in r.err
    assert not differences(before, outside(home))
    assert [t["state"] for t in stet.transactions()] == ["pending"]
    r = stet("run", opt, "commit", "--", "sh", "-c", f"rm ~/precious/b{end}", cwd=place).ok(125)
    assert "deleted outside of the workspace" in r.err and "--accept-risky" in r.err
    stet("run", opt, "commit", "--accept-risky", "--", "sh", "-c", f"rm ~/precious/b{end}",
         cwd=place).ok(1 if end else 0)
    assert not (home / "precious/b").exists()


def test_who_commits_has_looked(stet, home, place):
    """A commit of its own is a person's or a program's decision about what it was shown."""
    stet.run("rm", home / "precious/a", cwd=place).ok()
    assert not stet("status", "--json", cwd=place).ok().json().get("risks")
    stet("commit", cwd=place).ok()
    assert not (home / "precious/a").exists()
    stet("exec", "--json", "--keep-on-failure", "--", "rm", home / "precious/b", cwd=place).ok(125)
    assert (home / "precious/b").exists()
    stet("commit", cwd=place).ok()
    assert not (home / "precious/b").exists()


PASS = {
    "new file": "echo x > ~/new",
    "new tree": "mkdir -p ~/new/a/b; echo x > ~/new/a/b/c; chmod 700 ~/new/a",
    "new beside the old": "echo x > ~/precious/new",
    "new and gone": "echo x > ~/new; rm ~/new",
    "read": "cat ~/precious/a; cp -r ~/precious .; ls -R ~",
    "touched": "touch ~/precious/a",
    "the same again": "cp -p ~/precious/a t; cat t > ~/precious/a",
    "cache changed": "echo x > ~/.cache/tool/f; rm ~/.cache/tool/g",
    "cache renewed": "rm -rf ~/.cache/tool; mkdir ~/.cache/tool; echo n > ~/.cache/tool/f",
    "npm": "echo x > ~/.npm/_cacache/f; rm ~/.npm/_cacache/g",
    "cargo": "echo x > ~/.cargo/registry/f; rm ~/.cargo/registry/g",
    "agent's state": "echo x > ~/.claude/projects/p.jsonl; rm ~/.claude/todos/1; "
                     "echo {} > t; mv t ~/.claude/history.jsonl",
    "other caches": "for d in $(find ~ -name cached); do echo x > $d/f; rm $d/g; done",
    "thrown away": "echo x > f; echo x > ~/.local/share/Trash/info/f.trashinfo; mv f ~/.local/share/Trash/files/; "
                   "echo x > ~/.local/share/Trash/directorysizes",
    "history": "echo x >> ~/.python_history",
    "other traces": "for f in .ollama/history .rnd .config/htop/htoprc; do echo x > ~/$f; done",
    "host's /tmp": "echo x > /tmp/x; rm /tmp/x",
    "the workspace": "rm src; mkdir src; echo x > src/a; chmod 000 src/a",
}
OLD = {".cache": {"tool": {"f": "f", "g": "g"}}, ".npm": {"_cacache": {"f": "f", "g": "g"}},
       ".cargo": {"registry": {"f": "f", "g": "g"}},
       ".claude": {"history.jsonl": "1", "projects": {"p.jsonl": "{}"}, "todos": {"1": "1"}}, ".python_history": "1\n",
       ".ollama": {"history": "1\n"}, ".rnd": "1", ".config": {"htop": {"htoprc": "1\n"}}}
CACHED = {"cached": {"f": "f", "g": "g"}}
OLD |= {".pub-cache": CACHED, ".nvm": {".cache": CACHED}, ".conan2": {"p": CACHED}, ".cpan": {"build": CACHED},
        ".gradle": {"wrapper": {"dists": CACHED}}, ".julia": {"registries": CACHED}, ".opam": {"repo": CACHED}}
OLD[".cargo"]["advisory-db"] = CACHED


@pytest.mark.parametrize("name", PASS)
def test_what_passes(stet, home, place, name):
    make_tree(home, OLD)
    r = stet("exec", "--json", "--", "sh", "-c", PASS[name], cwd=place).ok().json()
    assert r["fate"] in ("committed", "dropped"), r


def git(where, *words):
    env = {**os.environ, "HOME": os.fspath(where), "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@e", *words], cwd=where, env=env,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


GIT = "git -c user.name=t -c user.email=t@e "
WORK = (f"echo x >> f; {GIT} add -A; {GIT} commit -qm x; {GIT} checkout -qb b$$; {GIT} stash list; "
        f"echo y >> f; {GIT} stash -q; {GIT} stash drop -q; {GIT} branch -D b$$ || :; {GIT} gc -q")


@pytest.mark.parametrize("where", ["a directory of it", "a worktree", "a submodule"])
def test_the_repository_around_the_workspace(stet, home, place, where):
    """git keeps its state outside of such a workspace: it is its business, and nobody else's."""
    top = home / "top"
    make_tree(top, {"f": "1\n", "sub": {"f": "2\n"}})
    git(top, "init", "-q")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "1")
    here, repo = top / "sub", top / ".git"
    if where == "a worktree":
        here = home / "tree"
        git(top, "worktree", "add", "-q", here)
    if where == "a submodule":
        git(home, "init", "-q", "super")
        here, repo = home / "super" / "m", home / "super/.git/modules/m"
        git(home / "super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", top, "m")
    stet("exec", "--", "sh", "-ec", WORK, cwd=here).ok()
    rmtree = "python3 -c 'import shutil; shutil.rmtree(\"{}\")'"
    for harm in (f"rm {repo}/config", rmtree.format(f"{repo}/objects"), f"mv {repo} {repo}.x",
                 rmtree.format(f"{repo}/refs"), f"rm {repo}/description"):
        r = stet("exec", "--json", "--", "sh", "-c", harm, cwd=here).json()
        assert r["reason"] == "policy", r


LIES = {"gitdir: {p}": {}, "gitdir: {p}/worktrees/x": {"worktrees": {"x": {"HEAD": "x"}}},
        "gitdir: {p}/.git/modules/m": {".git": {"modules": {"m": {"HEAD": "x"}}}}}


@pytest.mark.parametrize("line", LIES)
def test_a_lie_about_the_repository(stet, home, place, line):
    p = home / "precious"
    make_tree(p, {"HEAD": "x", "objects": {"aa": {"f": "1"}}, **LIES[line]})
    (place / ".git").write_text(line.format(p=p) + "\n")
    if "worktrees" in line:
        (p / "worktrees/x/gitdir").write_text(f"{place}/.git\n")
    before = outside(home)
    for code in ("shutil.rmtree(P)", "os.unlink(P + \"/a\"); os.unlink(P + \"/dir/c\")"):
        stet("exec", "--", "sh", "-c", py(code), cwd=place).ok(125)
    assert not differences(before, outside(home))
