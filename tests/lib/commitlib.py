# SPDX-License-Identifier: Apache-2.0
"""What the commit tests share: the verbs, and digests that can be compared across trees."""
import glob
import os
import re
import subprocess

from stetlib import digest, wait_until

CONFLICT, DENIED, STATE = 3, 2, 4


def commit(stet, work, *paths, tx=None, ours=(), theirs=(), accept=True, opts=()):
    args = ["commit"] + ([tx] if tx else []) + (["--accept-risky"] if accept else [])
    for name, values in (("--ours", ours), ("--theirs", theirs)):
        for value in values:
            args += [name, os.path.join(work, value)]
    return stet(*args, *opts, *[os.path.join(work, p) for p in paths], cwd=work)


def undo(stet, work, *args):
    return stet("undo", *args, cwd=work)


def redo(stet, work, *args):
    return stet("redo", *args, cwd=work)


def names_conflict(result, name):
    """Is this path among those that the refusal lists?"""
    text = result.out + result.err
    return re.search(rf"(?m)^ +(\S*/)?{re.escape(name)}(/\S*)?  +\S", text) is not None


def shell(script, cwd, env=None):
    """Outside of any sandbox."""
    r = subprocess.run(["bash", "-c", script], cwd=cwd, env=env, check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 0, (script, r.stdout)
    return r.stdout


def with_links(tree):
    """A digest in which hard links are the names that share an inode.

    st_nlink would count the names that the transaction keeps for undo, too.
    """
    by_inode = {}
    for name, d in tree.items():
        by_inode.setdefault(d["ino"], []).append(name)
    out = {}
    for name, d in tree.items():
        d = dict(d)
        d["links"] = sorted(by_inode[d.pop("ino")])
        d.pop("ctime")
        d.pop("nlink", None)
        out[name] = d
    return out


def plain(path):
    """The digest of a tree without what differs between two equal trees."""
    return with_links(digest(path))


def same_inodes(path):
    """The digest of a tree with inode numbers, without what a rename changes."""
    out = {}
    for name, d in digest(path).items():
        out[name] = {k: v for k, v in d.items() if k not in ("ctime", "nlink")}
    return out


def begin(stet, work, script):
    """A command that has done its work and goes on; end() lets it come to its end."""
    p = stet.popen("run", "--quiet", "--", "bash", "-c", f"{script}; echo READY; read line",
                   cwd=work, stdin=-1)
    assert p.stdout.readline() == b"READY\n"
    return p


def end(p):
    p.communicate(b"\n", timeout=60)
    assert p.returncode == 0


def wait_for_notes(stet, p, names):
    """Until what the host has at these paths is noted, while the command runs."""
    def all_there():
        assert p.poll() is None
        notes = b""
        for name in glob.glob(stet.state + "/tx/*/seen"):
            with open(name, "rb") as f:
                notes += f.read()
        return all(n + b"\0" in notes for n in names)

    wait_until(all_there, 30)
