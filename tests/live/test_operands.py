# SPDX-License-Identifier: Apache-2.0
"""What a rule says of a path holds for where it leads: links and ".." are followed at the exec."""
import os

import pytest
from stetlib import make_tree

# In the workspace: l leads to ~/precious, up to the home, key to a secret, far to l by way of
# another link, loop to itself; build is a directory of it, in leads there.
LINKS = "ln -s ~/precious l; ln -s ~ up; ln -s mid far; ln -s l mid; " \
        "ln -s loop loop; mkdir -p build/sub; ln -s build in; ln -s /proc/self/cwd me; "

DENIED = {
    "rm.outside": [
        "rm -rf l/", "rm -rf l/.", "rm -rf l/*", "rm -rf l/dir", "rm -rf ./l//dir", "rm -rf l/../precious",
        "rm -rf far/dir", "rm -rf build l/dir", "rm -rf in/../l/dir", "rm -rf up/precious",
        "rm -rf $PWD/l/dir", "rm -rf /proc/self/cwd/l/dir", "rm -rf l/dir/not/there",
        "cd build && rm -rf ../l/dir", "cd l && rm -rf dir", "find l/ -exec rm -rf {} +",
        "echo l/dir | xargs rm -rf", "rm -rf l/../work/../precious", "rm -rf build/../../precious",
        "python3 -c 'import os; os.symlink(\"l\", \"late\"); os.execlp(\"rm\", \"rm\", \"-rf\", \"late/dir\")'",
    ],
    "find.delete.outside": [
        "find l/ -delete", "find -L l -delete", "find -H l -name '*' -delete", "find l/dir -delete",
        "find far/ -type f -delete", "find l -follow -delete",
    ],
    "chmod.outside": ["chmod -R 000 up", "chmod -R 000 up/", "chown -R 0 up/."],
    "chmod.root": ["chmod 000 up"],
    "secrets.read": ["cat key", "base64 < /dev/null key", "cat up/.ssh/id_rsa", "head -c1 l/../.ssh/id_rsa"],
    "write.critical": ["ln -s /etc/passwd p; cp build/x p", "ln -s /etc e; cp build/x e/passwd",
                       "ln -s /etc e; install build/x e/sudoers.d/new"],
}
RUN = [
    "rm -rf l", "rm -rf far", "rm l", "rm -f loop", "rm -rf in", "rm -rf in/", "rm -rf in/sub", "rm -rf build",
    "find l -delete", "find in/ -type f -delete", "find . -maxdepth 1 -name l -delete", "mv l other", "rm -rf me/build",
    "cat in/x", "cat loop || :", "chmod -R u+w in", "rm -rf not/there/at/all", "rm -f $(seq 3000)", "mv in/x in/y",
]


@pytest.fixture(name="place")
def fixture_place(home, work):
    make_tree(home, {"precious": {"a": "1", "dir": {"b": "2"}}, ".ssh": {"id_rsa": "secret"}})
    os.symlink(home / ".ssh/id_rsa", work / "key")
    return work


def script(work, text):
    """A file: the text of sh -c would be judged before there is a link."""
    (work / "script").write_text("mkdir -p build; echo x > build/x\n" + LINKS + "\n" + text + "\n")
    return "script"


@pytest.mark.parametrize("rule, text", [(r, t) for r in DENIED for t in DENIED[r]])
def test_denied(stet, home, place, rule, text):
    r = stet("exec", "--json", "--keep-on-failure", "--", "sh", script(place, text), cwd=place).json()
    found = [v["rule"] for v in r["verdicts"] if v["outcome"] == "denied"]
    # The home of root is the system's, for which another rule is as strict.
    assert rule in found or (os.geteuid() == 0 and f"{rule.partition('.')[0]}.system" in found), r
    stet("rollback", cwd=place)
    assert (home / "precious/dir/b").exists()


@pytest.mark.parametrize("text", RUN)
def test_what_runs(stet, home, place, text):
    r = stet("exec", "--json", "--keep-on-failure", "--", "sh", "-e", script(place, text),
             cwd=place).json()
    assert not [v for v in r["verdicts"] if v["outcome"] == "denied"], r
    assert r["exit"] == 0 and (home / "precious/dir/b").exists(), r


def test_a_link_to_the_workspace(stet, home, place):
    """What lies in it may be called by another name, too."""
    os.symlink(place, home / "name")
    stet("exec", "--", "sh", "-c", "mkdir build; rm -rf ~/name/build", cwd=place).ok()


def test_so_many_that_nobody_can_look(stet, place):
    """It is denied, and says what to do; the usual thousands are not too many."""
    text = "import os; os.execvp('rm', ['rm', '-f', *(f'd{i}/x' for i in range(%d))])"
    stet("exec", "--", "python3", "-c", text % 4000, cwd=place).ok()
    r = stet("exec", "--", "python3", "-c", text % 20000, cwd=place)
    assert r.rc and "stet: denied by exec.operands" in r.err and "xargs -n" in r.err
