# SPDX-License-Identifier: Apache-2.0
"""What the command leaves is hostile: commit follows nothing, waits for nothing, runs nothing."""
import os
import socket
import stat
import threading

import pytest
from commitlib import CONFLICT, DENIED, commit, plain, redo, same_inodes, shell, undo
from stetlib import differences

ROOT = os.geteuid() == 0
OTHER = 1 if ROOT else [g for g in os.getgroups() if g != os.getegid()][0]

@pytest.fixture(autouse=True)
def fixture_unjudged(stet):
    """What is tried here, the policy would refuse: the rest must hold without it."""
    stet.no_policy = True



def without_top(tree):
    return {k: v for k, v in tree.items() if k}


def through(stet, work, reference, prepare, script):
    """Commit, undo and redo of a script; the result is that of a plain run."""
    for where in (work, reference):
        os.makedirs(where, exist_ok=True)
        shell(prepare, where)
    stet.sh(script, cwd=work).ok()
    shell(script, reference)
    before = same_inodes(work)
    for step, expected in ((commit, plain(reference)), (undo, None),
                           (redo, plain(reference))):
        step(stet, work).ok()
        if expected:
            found = without_top(plain(work))
            expected = without_top(expected)
            for d in list(found.values()) + list(expected.values()):
                d.pop("mtime")
            assert differences(expected, found) == []
        else:
            assert differences(without_top(before), without_top(same_inodes(work))) == []


NAMES = {
    "newlines": "mkdir $'a\\nb'; echo 1 > $'a\\nb/c\\n'; ln -s $'x\\ny' $'l\\n'; rm $'old\\n'",
    "not UTF-8": "echo 1 > $'\\xff\\xfe'; mkdir $'d\\x80'; echo 2 > $'d\\x80/\\xc0'",
    "escapes": "echo 1 > $'\\e[31m'; echo 2 > $'\\r'; echo 3 > $'\\x7f'; mkdir ./-rf; echo > ./--",
    "255 bytes": "n=$(printf '%0255d' 7); echo 1 > $n; mkdir d$(printf '%0254d' 8); "
                 "echo 2 > d$(printf '%0254d' 8)/$n; rm $(printf '%0255d' 9)",
    "100 levels": "p=.; for i in $(seq 100); do p=$p/level$i; done; mkdir -p $p; echo x > $p/f; "
                  "ln -s f $p/l",
    "change deep": "p=old; for i in $(seq 60); do p=$p/o$i; done; echo y > $p/f; echo n > $p/n",
    "delete deep": "rm -rf old",
    "whiteout names": "echo x > .wh.a; mkdir .wh..wh..opq; echo 1 > '#1'; echo 2 > ~1",
    "marks": "mkdir m; setfattr -n user.overlay.opaque -v y m; echo > m/f; "
             "setfattr -n user.overlay.whiteout -v y m/f; setfattr -n user.overlay.x -v z keep",
    "many": "mkdir many; for i in {1..1500}; do : > many/$i; done; rm -f bulk/*; rmdir bulk",
}
PREPARE = ("echo > $'old\\n'; echo > $(printf '%0255d' 9); echo k > keep; p=old; "
           "for i in $(seq 60); do p=$p/o$i; done; mkdir -p $p; echo x > $p/f; mkdir bulk; "
           "for i in {1..300}; do : > bulk/$i; done")


@pytest.mark.parametrize("name", NAMES, ids=lambda v: v.replace(" ", "_"))
def test_names(stet, work, home, name):
    if name == "marks" and "not supported" in stet.run(
            "setfattr", "-n", "user.overlay.x", "-v", "z", home, cwd=work,
            opts=["--on-success", "rollback"]).err:
        pytest.skip("impossible here: overlays before Linux 6.7 refuse these attributes")
    through(stet, str(work), str(home / "reference"), PREPARE, NAMES[name])


def test_paths_longer_than_any_call_takes(stet, work, home):
    """A hundred levels of 200 bytes: 20,000 bytes of path."""
    grow = "for i in $(seq 100); do n=$(printf '%0200d' $i); mkdir $n; cd $n; echo $i > f; done"
    look = "find . -printf '%y %m %d %f\\n' | sort; find . -type f -execdir cat {} + | sort"
    reference = home / "reference"
    reference.mkdir()
    shell(grow, reference)
    stet.sh(grow, cwd=work).ok()
    commit(stet, work).ok()
    assert shell(look, work) == shell(look, reference)
    stet.sh("find . -name f -execdir sh -c 'echo more >> f' \\;", cwd=work).ok()
    shell("find . -name f -execdir sh -c 'echo more >> f' \\;", reference)
    commit(stet, work).ok()
    assert shell(look, work) == shell(look, reference)
    undo(stet, work).ok()
    undo(stet, work).ok()
    assert os.listdir(work) == []


SPECIAL = {
    "fifo": "mkfifo f; mkdir d; mkfifo d/f",
    "fifo for a file": "rm a; mkfifo a", "file for a fifo": "rm p; echo x > p",
    "fifo's mode": "chmod 600 p", "fifo gone": "rm p", "fifo's name": "mv p q",
    "directory of fifos gone": "rm -rf pd", "link for a fifo": "ln -sf /dev/zero p",
}


@pytest.mark.parametrize("name", SPECIAL, ids=lambda v: v.replace(" ", "_"))
def test_fifos_keep_nobody_waiting(stet, work, home, name):
    through(stet, str(work), str(home / "reference"),
            "mkfifo p; echo a > a; mkdir pd; mkfifo pd/1 pd/2", SPECIAL[name])


def test_host_fifo_has_no_visitors(stet, work):
    """Opening a FIFO of the host's would let its other side run into nothing."""
    os.mkfifo(work / "p")
    stet.sh("chmod 600 p; echo x > y", cwd=work).ok()
    came = []

    def write_side():
        fd = os.open(work / "p", os.O_WRONLY)
        came.append(fd)
        os.close(fd)

    t = threading.Thread(target=write_side, daemon=True)
    t.start()
    commit(stet, work).ok()
    undo(stet, work).ok()
    assert not came
    fd = os.open(work / "p", os.O_RDONLY | os.O_NONBLOCK)
    t.join(20)
    os.close(fd)
    assert came


def test_sockets(stet, work):
    stet.run("/usr/bin/python3", "-c", "import socket; s = socket.socket(socket.AF_UNIX); "
             "s.bind('s'); import os; os.mkdir('d'); t = socket.socket(socket.AF_UNIX); "
             "t.bind('d/t')", cwd=work).ok()
    commit(stet, work).ok()
    assert stat.S_ISSOCK(os.lstat(work / "s").st_mode)
    assert stat.S_ISSOCK(os.lstat(work / "d" / "t").st_mode)
    undo(stet, work).ok()
    assert os.listdir(work) == []


def test_host_socket_replaced(stet, work):
    with socket.socket(socket.AF_UNIX) as s:
        cwd = os.getcwd()
        os.chdir(work)
        s.bind("s")
        os.chdir(cwd)
        stet.sh("rm s; echo file > s", cwd=work).ok()
        commit(stet, work).ok()
        assert (work / "s").read_text() == "file\n"
        undo(stet, work).ok()
        assert stat.S_ISSOCK(os.lstat(work / "s").st_mode)


def uppers(stet):
    """The uppers in the store that hold the workspace."""
    found = []
    for d, dirs, _ in os.walk(os.path.join(stet.state, "tx")):
        if "up" in dirs:
            found.append(os.path.join(d, "up"))
    return found


def in_upper(stet, work, name):
    """Where the store keeps what the command did to a path of the workspace."""
    full = os.path.join(str(work), name)
    for up in uppers(stet):
        for cut in range(len(full.split("/"))):
            path = os.path.join(up, *full.split("/")[cut:])
            if os.path.lexists(path):
                return path
    raise AssertionError(f"{name} is in no upper")


@pytest.mark.skipif(not ROOT, reason="impossible here: only root can make devices")
def test_devices_are_not_taken_silently(stet, work):
    """Made by hand in the store: a device with a number is a risk, 0:0 a deletion."""
    (work / "gone").write_text("x\n")
    stet.sh("echo x > a; echo y > gone", cwd=work).ok()
    a, gone = in_upper(stet, work, "a"), in_upper(stet, work, "gone")
    os.unlink(a)
    os.unlink(gone)
    os.mknod(a, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(gone, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    before = same_inodes(work)
    r = commit(stet, work, accept=False).ok(DENIED)
    assert "device" in r.out + r.err
    assert differences(before, same_inodes(work)) == []


@pytest.mark.parametrize("what", ["directory", "file", "parent"])
def test_upper_turned_into_a_link(stet, work, home, digest, what):
    """Links planted in the store itself lead nowhere."""
    outside = home / "outside"
    outside.mkdir()
    (outside / "f").write_text("canary\n")
    (outside / "sub").mkdir()
    canary = digest(outside)
    shell("mkdir -p d/sub; echo base > d/f; echo base > d/sub/g", work)
    stet.sh("echo inside > d/f; echo inside > d/sub/g; echo n > d/sub/n", cwd=work).ok()
    path = in_upper(stet, work, {"directory": "d/sub", "file": "d/f", "parent": "d"}[what])
    os.rename(path, str(home / "aside"))
    os.symlink(outside, path)
    r = commit(stet, work)
    assert r.rc in (0, CONFLICT, 6, 7), repr(r)
    assert digest(outside) == canary
    if r.rc == 0:
        undo(stet, work).ok()
    assert (work / "d" / "sub" / "g").read_text() == "base\n"
    assert digest(outside) == canary


def test_host_directory_is_a_link_at_commit(stet, work, home, digest):
    """The host's parent became a link that leads out: nothing is written through it."""
    outside = home / "outside"
    outside.mkdir()
    (outside / "f").write_text("base\n")
    canary = digest(outside)
    shell("mkdir d; echo base > d/f", work)
    stet.sh("echo inside > d/f; echo n > d/n", cwd=work).ok()
    shell(f"rm -r d; ln -s {outside} d", work)
    commit(stet, work).ok(CONFLICT)
    assert digest(outside) == canary
    assert os.readlink(work / "d") == str(outside)


RISKS = {
    "setuid": "cp /bin/true x; chmod 4755 x", "setgid": "cp /bin/true x; chmod 2755 x",
    "git hook": "mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/pre-commit",
    "git configuration": "mkdir -p .git; echo '[core]' > .git/config",
    "CI file": "mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml",
    "in a package": "mkdir -p node_modules/p; echo x > node_modules/p/.bashrc",
    "gitlab": "echo a: b > .gitlab-ci.yml", "envrc": "echo x > .envrc",
    "editor": "mkdir .vscode; echo {} > .vscode/tasks.json",
    "link out": "ln -s /etc/passwd x", "link up": "mkdir d; ln -s ../../.. d/x",
    "link far": "ln -s ../outside x", "in a new directory": "mkdir -p a/b; ln -s / a/b/x",
    "dotted link": "ln -s ./../../x x", "through itself": "ln -s /proc/self/root x",
}
HARMLESS = {
    "file": "echo x > x; chmod 755 x", "link within": "mkdir d; ln -s ../y d/x; ln -s d l",
    "absolute link within": "ln -s \"$PWD/y\" x", "sample hook":
    "mkdir -p .git/hooks; echo > .git/hooks/pre-commit.sample", "sticky": "mkdir -m 1777 d",
    "setgid directory": "mkdir d; chmod g+s d", "hook-like": "mkdir hooks; echo > hooks/post",
    "up and in": "mkdir -p a/b; ln -s ../../y a/b/x", "packages":
    "mkdir -p node_modules/p/.github/workflows lib/site-packages/q/.vscode; "
    "touch node_modules/p/.travis.yml node_modules/p/.github/workflows/x.yml "
    "lib/site-packages/q/.gitmodules lib/site-packages/q/.vscode/tasks.json",
}


@pytest.mark.parametrize("name", RISKS, ids=lambda v: v.replace(" ", "_"))
def test_risks(stet, work, name):
    """Listed in status, refused unasked, committed when accepted."""
    stet.sh(RISKS[name], cwd=work).ok()
    before = same_inodes(work)
    commit(stet, work, accept=False).ok(DENIED)
    assert differences(before, same_inodes(work)) == []
    assert stet("status", cwd=work).ok().out
    commit(stet, work).ok()
    assert os.listdir(work)
    undo(stet, work).ok()
    assert os.listdir(work) == []


@pytest.mark.parametrize("name", HARMLESS, ids=lambda v: v.replace(" ", "_"))
def test_no_risks(stet, work, name):
    stet.sh(HARMLESS[name], cwd=work).ok()
    commit(stet, work, accept=False).ok()


@pytest.mark.parametrize("name", [".bashrc", ".profile", ".zshrc", ".ssh/authorized_keys",
                                  ".gitconfig", ".config/autostart/x.desktop"])
def test_risks_at_home(stet, home, work, name):
    stet.sh('mkdir -p "$(dirname "$HOME/$1")"; echo x > "$HOME/$1"', name, cwd=work).ok()
    commit(stet, work, accept=False).ok(DENIED)
    assert not (home / name).exists()
    commit(stet, work).ok()
    assert (home / name).read_text() == "x\n"
    undo(stet, work).ok()
    assert not (home / name).exists()


@pytest.mark.parametrize("script,rc", [
    ("echo more >> x", DENIED), ("echo n > n; mv n x", DENIED), ("chmod 600 x", 0),
    ("rm x", 0), ("echo more >> x; ln -f x x2", 0)])
def test_one_name_of_several(stet, work, script, rc):
    """Without a sandbox the other name would change, too: that needs a look."""
    shell("echo base > x; ln x x2", work)
    stet.sh(script, cwd=work).ok()
    r = commit(stet, work, accept=False).ok(rc)
    assert ("other names" in r.out + r.err + stet("status", cwd=work).ok().out) == (rc != 0)
    if rc:
        assert (work / "x2").stat().st_nlink == 2
        commit(stet, work).ok()
        assert (work / "x2").read_text() == "base\n" != (work / "x").read_text()


def test_hidden_path_needs_a_look(stet, home, work):
    """What was hidden from the command and made anew by it is not laid over the real one."""
    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "id").write_text("secret\n")
    stet.sh("mkdir -p ~/.ssh; echo planted > ~/.ssh/id; echo k > ~/.ssh/authorized_keys",
            cwd=work).ok()
    commit(stet, work, accept=False).ok(DENIED)
    assert (ssh / "id").read_text() == "secret\n"
    assert os.listdir(ssh) == ["id"]


def test_nothing_is_run(stet, work, home):
    """Hooks and programs of the tree stay files."""
    shell("git init -q .; git config core.hooksPath hooks; mkdir hooks", work)
    stet.sh("for h in pre-commit post-checkout post-index-change fsmonitor-watchman; do "
            f"printf '#!/bin/sh\\ntouch {home}/ran\\n' > hooks/$h; chmod +x hooks/$h; done; "
            f"git config core.fsmonitor 'touch {home}/ran'; echo '*.x filter=y' > .gitattributes",
            cwd=work).ok()
    for args in (["status"], ["diff"], ["commit", "--accept-risky"], ["undo"], ["redo"]):
        stet(*args, cwd=work).ok()
    assert not (home / "ran").exists()


@pytest.mark.parametrize("mode", ["0", "100", "400"])
def test_directories_without_rights(stet, work, mode):
    """They are committed, in part too, taken back and done again like others."""
    shell("mkdir -p k/s; echo 1 > k/f; echo 2 > k/s/t", work)
    before = same_inodes(work)
    stet.sh("echo 2 > k/f; echo 3 > k/n; rm -r k/s; mkdir k/s; mkdir -p d/e; echo 4 > d/e/f; "
            f"mkdir -m {mode} new; echo a > a; chmod {mode} k d/e", cwd=work).ok()
    for words in (("k/n", "a"), ("d/e/f",), ()):
        stet("commit", *words, cwd=work).ok()
        stet("undo", cwd=work).ok()
        assert differences(without_top(before), without_top(same_inodes(work))) == []
    stet("redo", cwd=work).ok()
    assert sorted(os.listdir(work)) == ["a", "d", "k", "new"]
    assert {stat.S_IMODE(os.lstat(work / d).st_mode) for d in ("k", "new")} == {int(mode, 8)}
    shell(f"chmod 700 new; echo mine > new/x; chmod {mode} new", work)
    assert "new  holds what was changed" in stet("undo", cwd=work).ok(CONFLICT).err
    stet("undo", "--ours", "new", cwd=work).ok()
    assert differences(without_top(before), without_top(same_inodes(work))) == []
    os.mkdir(work / "gone", 0)
    stet("run", "-q", "--", "rmdir", "gone", cwd=work).ok()
    for verb, there in (("commit", False), ("undo", True), ("redo", False)):
        stet(verb, cwd=work).ok()
        assert (work / "gone").exists() == there
    stet("check").ok()


def test_directories_without_rights_and_other_groups(stet, work):
    """Where both cannot be had, nothing is promised, and the way out is said."""
    os.mkdir(work / "sub")
    for d in (work, work / "sub"):
        os.chown(d, -1, OTHER)
        os.chmod(d, 0o2775)
    before = same_inodes(work)
    stet.sh("mkdir -m 0 e; echo 1 > a; mkdir sub/x", cwd=work).ok()
    if not ROOT:
        r = stet("commit", cwd=work).ok(5)
        assert "other groups" in r.err and "stet explore t1 -- chmod u+rwx" in r.err
        assert differences(before, same_inodes(work)) == []
        stet("check").ok()
    stet("explore", "t1", "-q", "--", "chmod", "u+rwx", "e", cwd=work).ok()
    stet("commit", cwd=work).ok()
    assert os.lstat(work / "a").st_gid == OTHER
    stet("undo", cwd=work).ok()
    assert differences(before, same_inodes(work)) == []
