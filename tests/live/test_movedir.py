# SPDX-License-Identifier: Apache-2.0
"""Directories that the host has are renamed inside as they are outside."""
import ast
import os
import subprocess
import sys

import pytest
import stetlib
from commitlib import commit
from stetlib import differences, digest

ROOT = os.geteuid() == 0
LIB = os.path.abspath(stetlib.__file__)
OLD = 1_500_000_000_123_456_789
ME = f"{os.getuid()}"
OTHER = "1234" if ROOT else "0"  # somebody who is not mapped inside, but for root
SWAP = """/usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
a, b = map(os.fsencode, sys.argv[1:])
print(libc.renameat2(-100, a, -100, b, 2) and os.strerror(ctypes.get_errno()))' """
RENAME = """/usr/bin/python3 -c '
import errno, os, sys
try:
    print(os.rename(*sys.argv[1:]))
except OSError as e:
    print(errno.errorcode[e.errno])' """

SOME = "mkdir -p c/a c/ro/deep p; echo 1 > c/ro/f; echo 2 > c/ro/deep/g; echo 3 > c/z;"
CASES = {
    "nothing special": ("", "mv c p/c"),
    "read-only below": ("chmod 555 c/ro", "mv c p/c"),
    "read-only, all of it": ("chmod -R a-w c; chmod u+w c", "mv c p/c"),
    "read-only itself": ("chmod 555 c", "mv c d"),
    "read-only itself, elsewhere": ("chmod 555 c", RENAME + "c p/c"),
    "read-only target": ("chmod 555 p", RENAME + "c p/c"),
    "read-only source": ("chmod 555 c", RENAME + "c/ro p/c"),
    "unreadable below": ("chmod 111 c/ro", "mv c p/c; stat -c '%a %.9Y' p/c/ro; chmod 755 p/c/ro"),
    "closed below": ("chmod 0 c/ro", "mv c p/c; stat -c '%a %.9Y' p/c/ro; chmod 755 p/c/ro"),
    "closed itself": ("chmod 0 c", "mv c d; stat -c '%a %.9Y' d; chmod 755 d"),
    "unreadable itself": ("chmod 311 c", "mv c p/c; stat -c '%a %.9Y' p/c; chmod 755 p/c"),
    "closed target": ("mkdir p/c; chmod 0 p/c", RENAME + "c p/c"),
    "full closed target": ("mkdir -p p/c/x; chmod 0 p/c", RENAME + "c p/c; chmod 755 p/c"),
    "odd modes": ("chmod 3775 c/ro; chmod 2700 c/a; chmod 1777 c", "mv c p/c"),
    "setgid target": ("chmod 2775 p", "mv c p/c"),
    "attributes": ("setfattr -n user.x -v 1 c c/ro; chmod 555 c/ro", "mv c p/c"),
    "ACL": (f"setfacl -m u:{ME}:rwx c c/ro; setfacl -d -m u:{ME}:rx c/ro", "mv c p/c"),
    "ACL to be inherited": (f"setfacl -d -m u:{ME}:rwx p", "mv c p/c"),
    "exchange": ("", SWAP + "c p"),
    "exchange elsewhere": ("chmod 555 c/ro; mkdir p/q; echo 4 > p/q/h", SWAP + "c p/q"),
    "exchange, read-only": ("chmod 555 c p", SWAP + "c p"),
    "exchange elsewhere, read-only": ("chmod 555 c; mkdir p/q", SWAP + "c p/q"),
    "exchange with a file": ("echo f > f", SWAP + "c f"),
    "exchange of a file": ("echo f > p/f", SWAP + "p/f c"),
    "exchange with a part": ("", SWAP + "c c/ro"),
    "exchange with nothing": ("", SWAP + "c none"),
}


TIMES = """
import os
at = %d
for d, _, files in sorted(os.walk(".", topdown=False)):
    for n in sorted(files) + ["."]:
        at += 1
        os.utime(os.path.join(d, n), ns=(at, at))
""" % OLD
LOOK = f"""
{sys.executable} -Bc 'import sys; sys.path.insert(0, "{os.path.dirname(LIB)}")
from stetlib import digest; print(digest(".", exact=False))'"""


@pytest.fixture(autouse=True)
def fixture_removable(home):
    """What is closed to its owner could not be cleared away."""
    yield
    subprocess.run(["chmod", "-R", "u+rwX", str(home)], check=False)


def build(place, setup):
    """The tree of a case; times are old, and different."""
    place.mkdir(exist_ok=True)
    subprocess.run(["sh", "-c", SOME], cwd=place, check=True)
    subprocess.run([sys.executable, "-c", TIMES], cwd=place, check=True)
    subprocess.run(["sh", "-ec", setup], cwd=place, check=True)


def settled(tree):
    """Without what differs between any two runs: times that are new."""
    for d in tree.values():
        if d["mtime"] > OLD + 1000:
            d["mtime"] = "new"
    return tree


def split(out):
    lines = out.splitlines()
    return lines[:-1], settled(ast.literal_eval(lines[-1]))


def outside(script, cwd):
    return subprocess.run(["sh", "-c", script], cwd=cwd, text=True, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("case", CASES)
def test_as_outside(stet, home, work, case):
    """Inside, and on the host after a commit, it is what a plain run makes of a copy."""
    setup, script = CASES[case]
    plain = home / "plain"
    build(plain, setup)
    build(work, setup)
    said, expected = split(outside(script + LOOK, plain))
    heard, found = split(stet.sh(script + LOOK, cwd=work).ok().out)
    assert heard == said
    assert differences(expected, found) == []
    commit(stet, work)  # refused where nothing was to happen
    assert differences(expected, settled(digest(work, exact=False))) == []


def entries(place):
    """The ACLs of a tree in numbers, without those who are strangers inside."""
    text = outside("getfacl -nRp .", place)
    gone = () if ROOT else (f"user:{OTHER}:", f"group:{OTHER}:")
    return [line for line in text.splitlines()
            if not line.replace("default:", "").startswith(gone)]


@pytest.mark.parametrize("acl,result", [
    ("u:{0}:rwx", "None"), ("u:{0}:r-x", "None"), ("g:{0}:rwx", "None"), ("g:{0}:r-x", "None"),
    ("u:{0}:rwx,g:{0}:rwx", "None"), ("d:u:{0}:rwx", "None"), ("d:g:{0}:r-x,u:{1}:rx", "None"),
    ("u:{0}:---", "EXDEV"), ("u:{0}:r--", "EXDEV"), ("g:{0}:---", "EXDEV"),
    ("u:{0}:rwx,m::r", "EXDEV"), ("u:{0}:r-x,g:{1}:rwx", "EXDEV"), ("d:u:{0}:---", "EXDEV"),
])
@pytest.mark.parametrize("where", ["c", "c/ro/deep"])
def test_strangers_in_an_acl(stet, home, work, acl, result, where):
    """They keep what they may or lose it; nobody may more than before. Root keeps all."""
    setup = f"setfacl -m {acl.format(OTHER, ME)} {where}"
    plain = home / "plain"
    build(plain, setup)
    build(work, setup)
    before = settled(digest(work, exact=False))
    said = stet.sh(RENAME + "c d" + LOOK, cwd=work).ok().out
    heard, found = split(said)
    assert heard == ["None" if ROOT else result]
    if heard == ["None"]:
        outside("mv c d", plain)
        commit(stet, work).ok()
        assert entries(work) == entries(plain)
    else:
        # Inside, strangers have no number; and the try has been seen in the directory above.
        for d in [*found.values(), *before.values()]:
            del d["xattrs"]
        del found[b""], before[b""]
        assert differences(before, found) == []


def test_a_refused_one_is_copied(stet, work):
    """What mv does where a rename cannot be; what was taken back is what it was."""
    build(work, f"setfacl -m u:{OTHER}:--- c/ro/deep")
    r = stet.sh("stat -c %a c/ro/deep; mv c d && test ! -e c; stat -c %a d/ro/deep; ls -A", cwd=work)
    assert r.ok().out == "755\n755\nd\np\n"


@pytest.mark.skipif(not ROOT, reason="impossible here: only root can be somebody else inside")
@pytest.mark.parametrize("setup,move", [
    ("chown -R 1234:1234 .", "c p/c"),
    ("chown -R 1234:1234 .; chmod 555 c/ro", "c p/c"),
    ("chown -R 1234:1234 .; chown -R 0:0 c/ro; chmod 700 c/ro", "c p/c"),
    ("chown -R 1234:1234 .; chown -R 0:0 c; chmod 700 c", "c d"),
    ("chown -R 1234:1234 .; chown -R 0:0 c; chmod 700 c", "c p/c"),
    ("chown -R 1234:1234 .; chown 0:0 . c; chmod 1777 .", "c p/c"),
    ("chown -R 1234:1234 .; chown 0:0 .; chmod 1777 .", "c p/c"),
    ("chown -R 1234:1234 .; chown 0:0 p; chmod 755 p", "c p/c"),
    ("chown -R 1234:1234 .; chown 0:0 p; chmod 775 p", "c p/c"),
    ("chown -R 1234:1234 .; chown 0:4321 p; chmod 775 p", "c p/c"),
    ("chown -R 1234:1234 .; mkdir p/c; chown 0:0 p p/c; chmod 1777 p", "c p/c"),
])
def test_rights_are_the_callers(stet, home, work, setup, move):
    """Root's sandbox, and somebody else in it: he can rename what he could outside."""
    script = "setpriv --reuid 1234 --regid 1234 --groups 1234,4321 " + RENAME + move
    os.chmod(home.parent, 0o755)
    plain = home / "plain"
    build(plain, setup)
    build(work, setup)
    said, expected = split(outside(script + LOOK, plain))
    heard, found = split(stet.sh(script + LOOK, cwd=work).ok().out)
    assert heard == said
    assert differences(expected, found) == []
