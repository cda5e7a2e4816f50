# SPDX-License-Identifier: Apache-2.0
"""Inside, the user is himself and his tools behave as they do outside."""
import json
import os
import signal
import subprocess

import pytest
from stetlib import differences

NEEDS = "foreign strict readonly dead shared"
ROOT = os.geteuid() == 0
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1"}


def outside(stet, script, cwd, env=None):
    """The same shell script without stet."""
    return subprocess.run(["bash", "-c", script], cwd=cwd, env=stet.environ(env), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


@pytest.mark.parametrize("script", [
    "id -u", "id -g", "id -un", "echo $HOME", "pwd", "umask", "echo $PATH", "cat /etc/passwd",
    "stat -c '%u %g %a' .", "stat -c %a /etc/passwd /usr/bin /", "hostname",
    "cat /proc/self/limits | grep -c .", "ls /usr/bin | md5sum", "uname -a", "locale",
    "stat -c %a /tmp /var/tmp /dev/shm", "stat -c %a /run / /home /usr/bin /etc/passwd", "test -w . && echo w", "test -w /etc && echo w",
    "echo $SHLVL", "date +%Z", "nproc", "readlink -f /bin/sh", "command -v git node python3",
    "getconf ARG_MAX", "stat -f -c %T /proc /sys", "ls -d /proc/self/fd/0",
    "grep -h Cpus_allowed: /proc/self/status /proc/$PPID/status",
])
def test_same_answer_inside(stet, work, script):
    a = outside(stet, script, work)
    b = stet.run("bash", "-c", script, cwd=work)
    assert (b.rc, b.out) == (a.returncode, a.stdout)


def test_run_is_not_to_be_written(stet, work):
    """Its mode is the host's, though inside it belongs to an ordinary user; its places are open."""
    script = ("cd /run && ! touch new && ! mkdir new && ! chmod 777 . && ! test -w . && "
              "! mv lock gone && ! rmdir user && touch lock/f user/$(id -u)/f")
    if not ROOT:
        stet.no_policy = True
        stet.sh(script, cwd=work).ok()


def test_owners(stet, work):
    """Root sees everybody; a user sees himself, and the kernel's stand-in for others."""
    script = "stat -c '%U %G' /etc/passwd /usr/bin /var/mail ."
    b = stet.run("bash", "-c", script, cwd=work).ok().out.splitlines()
    a = outside(stet, script, work).stdout.splitlines()
    assert b[-1] == a[-1]
    assert b == a if ROOT else set(b[:-1]) == {"nobody nogroup"}


def test_environment(stet, work):
    env = {"SOME_VALUE": "x=y z\n2", "EMPTY": ""}
    script = ("import json, os; e = dict(os.environ); "
              "print(json.dumps({k: v for k, v in e.items()}))")
    inside = json.loads(stet.run("/usr/bin/python3", "-c", script, cwd=work, env=env).ok().out)
    plain = stet.environ(env)
    added = {k: v for k, v in inside.items() if plain.get(k) != v}
    assert set(added) <= {"STET_TXN", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "LC_CTYPE"}
    assert not [k for k in plain if k not in inside]


def test_groups(stet, work):
    """Of groups that are not mapped none is shown: the stand-in is no group of the user's."""
    inside = set(stet.run("id", "-G", cwd=work).ok().out.split())
    if ROOT:
        assert inside == {str(g) for g in set(os.getgroups()) | {os.getgid()}}
        return
    assert [g for g in os.getgroups() if g != os.getgid()], "the user needs another group"
    assert inside == {str(os.getgid())}
    script = "import os; print(os.getgroups(), os.getgid() == os.getegid())"
    assert stet.run("/usr/bin/python3", "-c", script, cwd=work).ok().out == "[] True\n"


COPIES = ["rsync -a", "cp -a", "cp -rp", "tarred"]


@pytest.mark.parametrize("copy", COPIES)
def test_copies_of_what_is_not_the_users(stet, work, copy):
    """No tool tries to give files to the group that others' files seem to have."""
    if copy == "tarred":
        script = "mkdir new; tar -C /usr/share/doc -cf - bash | tar -C new -xpf -"
    else:
        script = f"{copy} /usr/share/doc/bash/ new"
    a = outside(stet, f"mkdir out; cd out; {script}", work)
    b = stet.sh(f"mkdir in; cd in; {script}", cwd=work)
    assert (b.rc, b.err) == (a.returncode, a.stderr)


@pytest.mark.parametrize("rc", [0, 1, 3, 42, 255])
def test_exit_status_is_the_commands(stet, work, rc):
    assert stet.sh(f"exit {rc}", cwd=work).rc == rc


@pytest.mark.parametrize("name,rc", [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
def test_exit_status_of_a_signal(stet, work, name, rc):
    assert stet.sh(f"kill -{name} $$", cwd=work).rc == rc


def test_not_found_and_not_executable(stet, work):
    (work / "plain").write_text("text\n")
    assert stet.run("no-such-command-anywhere", cwd=work).rc == 127
    assert stet.run("./plain", cwd=work).rc == 126
    assert stet.run("./", cwd=work).rc == 126
    assert stet.run("./missing", cwd=work).rc == 127


def test_children_that_nobody_waits_for_outside(stet, work):
    """Some daemons start programs with SIGCHLD ignored."""
    r = stet.sh("bash -c 'exit 3'; exit $(($? + 1))", cwd=work,
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert r.rc == 4, repr(r)


def test_timeout(stet, work):
    assert stet.run("sleep", "1000", cwd=work, opts=["--timeout", "300ms"]).rc == 124


def test_output_is_whole(stet, work):
    """Large output on both streams, none of it lost at the end."""
    r = stet.run("/usr/bin/python3", "-c",
                 "import sys; sys.stdout.write('o' * 3000000); sys.stderr.write('e' * 3000000)",
                 cwd=work).ok()
    assert (len(r.out), r.err.count("e") >= 3000000) == (3000000, True)


# --- tools ---------------------------------------------------------------------------

REPO = """
set -e
git init -q -b main .
mkdir -p src/deep doc
for i in $(seq 30); do echo $i > src/f$i; echo $i > src/deep/g$i; done
echo readme > doc/README
git add . && git commit -qm first
git checkout -qb other && echo other > doc/README && git commit -qam other
git checkout -q main
"""


def test_git(stet, work, digest):
    """Branches, stash, gc, worktrees, and a renamed directory."""
    assert outside(stet, REPO, work, GIT).returncode == 0
    before = digest(work)
    script = """
set -e
git mv src source
git mv source/deep shallow
[ "$(git status --porcelain | cut -c1-2 | sort -u)" = "R " ]
git commit -qm moved
git checkout -q other && git checkout -q main
echo x >> doc/README && git stash -q && git stash pop -q && git checkout -q .
git worktree add -q ../tree other && git worktree remove ../tree
git merge -q -m merged other
git gc -q --prune=now
git fsck --full
git clone -q . ../clone && [ -e ../clone/shallow/g3 ]
rm -rf .git && git init -q .
"""
    stet.sh(script, cwd=work, env=GIT).ok()
    assert differences(before, digest(work)) == []


def test_git_clones_what_the_host_has(stet, work):
    """By links, as it does outside, or by copies: whole in any case. A link is a link for others."""
    outside(stet, "git init -q r; cd r; for i in 1 2 3; do echo $i > f$i; git add f$i; "
            "git commit -qm $i; done; git gc -q; echo 4 > f4; git add f4; git commit -qm 4", work, GIT)
    r = stet.sh("""set -e
git clone -q r copy
git -C copy fsck --strict 2>&1
git clone -q --mirror "$PWD/r" mirror
git clone -q --shared r shared
git clone -q copy again
[ "$(git -C again log --format=%s | tr '\\n' ' ')" = "4 3 2 1 " ]
ln r/f1 linked; perl -e 'link("r/f2", "linked2") or die "$!"'
[ "$(stat -c %h linked linked2 | sort -u)" = 2 ]
""", cwd=work, env=GIT).ok()
    assert r.err == ""


def test_git_mv_status_afterwards(stet, work):
    """The host sees a renamed directory as what it is."""
    assert outside(stet, REPO, work, GIT).returncode == 0
    stet.sh("git mv src source", cwd=work, env=GIT).ok()
    changes = stet.changes(cwd=work, below=work)
    assert changes[b"src/deep/g7"] == "D" and changes[b"source/deep/g7"] == "A"
    assert (work / "src" / "deep" / "g7").exists()


@pytest.mark.parametrize("move", [
    "import os; os.rename('d', 'e')",
    "import os; os.rename('d', 'sub/e')",
    "import os; os.rename('d/inner', 'inner')",
    "import shutil; shutil.move('d', 'e')",
    "import os; os.mkdir('e'); os.rename('d', 'e')",
    "import os; os.rename('d', 'e'); os.rename('e', 'd'); os.rename('d', 'f')",
    "import os; f = os.open('.', 0); os.rename('d', 'e', src_dir_fd=f, dst_dir_fd=f)",
])
def test_rename_of_a_directory(stet, work, tree, digest, move):
    tree(work, {"d": {"a": "a", "inner": {"b": "b", "l": ("link", "b")}}, "sub": {},
                "x": ("xattr", {"user.n": b"v"}, {})})
    before = digest(work)
    stet.run("/usr/bin/python3", "-c", move, cwd=work).ok()
    assert differences(before, digest(work)) == []


@pytest.mark.parametrize("move,error", [
    ("os.rename('d', 'full')", "ENOTEMPTY"), ("os.rename('d', 'd/x')", "EINVAL"),
    ("os.rename('d', 'file')", "ENOTDIR"), ("os.rename('none', 'e')", "ENOENT"),
    ("os.rename('file', 'full')", "EISDIR"), ("os.rename('d', 'no/where')", "ENOENT"),
])
def test_rename_errors_are_the_kernels(stet, work, tree, digest, move, error):
    tree(work, {"d": {"a": "a"}, "full": {"b": "b"}, "file": "f"})
    before = digest(work)
    r = stet.run("/usr/bin/python3", "-c",
                 "import errno, os\ntry:\n    " + move + "\nexcept OSError as e:\n    "
                 "print(errno.errorcode[e.errno])\nprint(sorted(os.listdir('d')))", cwd=work)
    assert r.ok().out == f"{error}\n['a']\n"
    assert differences(before, digest(work)) == []


def test_npm_install(stet, home, work, tree):
    """A local package, without a network; twice, with a change and a removal."""
    tree(home / "lib", {"package.json": '{"name": "lib", "version": "1.0.0"}',
                        "index.js": "module.exports = () => 42;\n", "d": {"x.js": "1;\n"}})
    tree(work, {"package.json": '{"name": "app", "version": "1.0.0"}'})
    tarball = subprocess.run(["npm", "pack", "--silent"], cwd=home / "lib", text=True,
                             env=stet.environ(), check=True, stdout=subprocess.PIPE)
    script = """
set -e
npm install --offline --no-audit --no-fund --loglevel=error ../lib/%s
node -e 'if (require("lib")() !== 42) process.exit(1)'
npm uninstall --offline --no-audit --no-fund --loglevel=error lib
npm install --offline --no-audit --no-fund --loglevel=error ../lib/%s
mv node_modules gone && mv gone node_modules
node -e 'if (require("lib")() !== 42) process.exit(1)'
""" % (tarball.stdout.strip(), tarball.stdout.strip())
    stet.sh(script, cwd=work, timeout=120).ok()
    assert sorted(os.listdir(work)) == ["package.json"]
    assert stet.changes(cwd=work, below=work)[b"node_modules/lib/index.js"] == "A"


def test_make(stet, work, tree):
    tree(work, {"Makefile": "all: prog\n\t./prog > out\nprog: prog.c\n\t$(CC) -o $@ $<\n",
                "prog.c": '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n'})
    stet.sh("make -s && make -s -q prog && touch prog.c && ! make -q prog && make -s && cat out",
            cwd=work).ok()
    assert sorted(os.listdir(work)) == ["Makefile", "prog.c"]


def test_python_venv(stet, work):
    stet.sh("/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; "
            "assert sys.prefix.endswith(\"/v\")'", cwd=work).ok()
    assert os.listdir(work) == []


def test_sqlite(stet, work, digest):
    subprocess.run(["sqlite3", "db", "pragma journal_mode=wal; create table t(x); "
                    "insert into t values(1);"], cwd=work, check=True,
                   stdout=subprocess.DEVNULL)
    before = digest(work)
    r = stet.sh("for i in 2 3 4; do sqlite3 db \"insert into t values($i)\"; done; "
                "sqlite3 db 'select sum(x) from t; pragma integrity_check'", cwd=work).ok()
    assert r.out == "10\nok\n"
    assert differences(before, digest(work)) == []


def test_rsync_and_tar(stet, work, tree):
    tree(work, {"a": {"f": "f", "l": ("link", "f"), "h": ("hard", "a/f"), "d": {"x": "x"},
                      "s": ("sparse", 1 << 20), "m": ("mode", 0o640, "m")}})
    stet.sh("rsync -aHAXS --delete a/ b/ && rsync -naHAXSi --delete a/ b/ > diff && [ ! -s diff ]"
            " && tar -cf t.tar a && mkdir c && tar -xf t.tar -C c && diff -r a c/a", cwd=work).ok()


def test_find_has_no_more_errors_than_outside(stet, work):
    """Errors outside (unreadable directories) stay; none is added.

    Deeper than a few levels lie a hundred thousand more directories of the same kinds, for
    which `make long` has the time; /etc, with its secrets, is looked at to the bottom.
    """
    depth = "" if os.environ.get("STET_LONG") else "-maxdepth 4"
    script = (f"find / -xdev {depth} -path /proc -prune -o -name stet-no-such-name -print "
              "2>&1 >/dev/null; find /etc -xdev 2>&1 >/dev/null")
    a = set(outside(stet, script, work).stdout.splitlines())
    b = set(stet.sh(script, cwd=work, timeout=300).out.splitlines())
    # Other tests come and go meanwhile.
    theirs = {line for line in b if "No such file" in line or
              "/stet-test-" in line and stet.home not in line}
    assert b - a - theirs == set()


def test_find_through_other_mounts(stet, work):
    script = ("find / \\( -path /proc -o -path /sys -o -path /usr -o -path /home -o -path /root "
              "\\) -prune -o -name stet-no-such-name -print 2>&1 >/dev/null | "
              "grep -v 'Permission denied\\|No such file'")
    assert stet.sh(script, cwd=work, timeout=300).out == ""


@pytest.mark.parametrize("script", [
    "flock -n lock true", "mkfifo p && (echo x > p &) && cat p | grep -q x",
    "mktemp && mktemp -d && mktemp -p .", "seq 100 | xargs -P4 -I{} touch t{} && ls | wc -l",
    "exec 5<>f; echo x >&5; cat f | grep -q x", "diff <(echo a) <(echo a)",
    "sleep 100 & kill %1; wait; true", "ls /proc/self/fd >/dev/null && ps -e >/dev/null",
    "/usr/bin/python3 -c 'import multiprocessing as m; m.Pool(2).map(abs, range(9))'",
    "/usr/bin/python3 -c 'import socket as s; a = s.socket(s.AF_UNIX); a.bind(\"s\"); "
    "a.listen(); b = s.socket(s.AF_UNIX); b.connect(\"s\")'",
    "/usr/bin/python3 -c 'import socket as s; a = s.socket(); a.bind((\"127.0.0.1\", 0)); "
    "a.listen(); b = s.socket(); b.connect(a.getsockname())'",
    "/usr/bin/python3 -c 'import os; os.memfd_create(\"x\"); os.posix_spawn(\"/bin/true\", "
    "[\"true\"], {})'",
    "/usr/bin/python3 -c 'from multiprocessing import shared_memory as s; "
    "m = s.SharedMemory(create=True, size=99); m.close(); m.unlink()'",
    "script -qec true /dev/null >/dev/null", "tmux -L t new -d 'sleep 100' && tmux -L t kill-server",
    "command -v strace >/dev/null && strace -o log true; true",
    "unshare -r true", "dd if=/dev/zero of=z bs=1M count=8 conv=fsync status=none",
    "ulimit -c; sync; df . >/dev/null; df / >/dev/null", "mkdir a && cd a && rmdir ../a && ! touch x 2>/dev/null",
])
def test_ordinary_things_work(stet, work, script):
    stet.run("bash", "-c", "set -e; " + script, cwd=work, timeout=60).ok()


# --- foreign owners, mounts, flags -----------------------------------------------------

@pytest.mark.parametrize("script", [
    "echo more >> root-0666", "echo x > root-1777/new", "mkdir root-1777/d && rmdir root-1777/d",
    "echo x > group-2775/new", "echo more >> group-2775/file", "rm group-2775/file",
    "mv group-2775/file group-2775/moved", "echo more >> own-file", "chmod 600 own-file",
    "echo x > own-dir/new", "mv own-dir moved", "rm -r own-dir", "rm own-file",
    "mv own-file own-dir/", "ln own-file twin", "cp -a group-2775 copy",
    "! echo x >> root-0755/file", "! touch root-0755/new", "! rm -f root-0755/file",
    "cat root-0755/file", "touch own-file", "echo more >> much/deep/shared/file",
    "echo x > much/deep/shared/new", "[ -w group-2775 ] && [ -w group-2775/file ]",
    "! [ -w root-0755 ] && ! [ -w root-0755/file ]",
])
def test_foreign_objects_behave_as_outside(stet, filesystem, digest, script):
    """What the host lets the user do with other people's things works, and the reverse."""
    place = filesystem("foreign")
    if ROOT and script.startswith("!"):
        script = script.replace("! ", "")
    before = digest(place)
    r = stet.run("bash", "-c", script, cwd=place)
    assert r.rc == 0, repr(r)
    assert "too large" not in r.err
    assert differences(before, digest(place)) == []


@pytest.mark.skipif(ROOT, reason="impossible here: root's view maps every group")
def test_a_mount_in_a_directory_of_others(stet, filesystem):
    """What the user cannot change is no reason not to run; what he can, is captured."""
    place = filesystem("shared")
    r = stet.sh("echo x > f; echo x > roots/own/f; stat -c %s roots/image; cat roots/mount/file; "
                "test -w roots || echo closed", cwd=place).ok()
    assert r.out == "1073741824\nroot's\n" + ("" if os.geteuid() == 0 else "closed\n")
    assert stet.changes(cwd=place) == {os.fsencode(f"{place}/{n}"): "A"
                                       for n in ("f", "roots/own/f")}
    assert stet("explore", "-q", "--", "cat", "f", "roots/own/f", cwd=place).ok().out == "x\nx\n"
    stet("commit", cwd=place).ok()
    assert os.path.exists(f"{place}/roots/own/f")
    stet("undo", cwd=place).ok()


def test_a_mount_that_is_met_twice(stet, filesystem):
    """As a part of the tree around it and as a mount of its own: it has one layer, in which later
    commands find what this one made."""
    place = filesystem("shared")
    stet.sh("echo x > roots/mine/f", cwd=place).ok()
    assert stet.changes(cwd=place) == {os.fsencode(f"{place}/roots/mine/f"): "A"}
    assert stet("explore", "-q", "--", "cat", "roots/mine/f", cwd=place).ok().out == "x\n"
    stet("rollback", cwd=place).ok()


def test_another_group_since_the_last_run(stet, work):
    """That nothing of other groups was found a moment ago does not make it true now."""
    other = 1 if os.geteuid() == 0 else next(g for g in os.getgroups() if g != os.getgid())
    for name in ("near", "in/it"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("text\n")
    stet.run("true", cwd=work).ok()
    for name in ("near", "in/it", "in"):
        os.chown(work / name, -1, other)
    r = stet.sh("echo more >> near && echo more >> in/it && touch in/new", cwd=work).ok()
    assert "too large" not in r.err


def test_read_only_mount(stet, work, filesystem):
    place = filesystem("readonly")
    r = stet.sh('cat "$1/file"; echo x > "$1/file" || echo refused; touch "$1/new" || '
                "echo refused", place, cwd=work).ok()
    assert r.out == "kept\nrefused\nrefused\n"
    assert "Read-only file system" in r.err


def test_mount_flags_carry_over(stet, filesystem, probe):
    place = filesystem("strict")
    script = """
cp "$1" prog && chmod 755 prog && { ./prog; echo $?; }
cat > flags.py <<'X'
import os
f = os.statvfs('.').f_flag
print([n for n in ('ST_NOSUID', 'ST_NODEV', 'ST_NOEXEC') if f & getattr(os, n)])
X
/usr/bin/python3 flags.py
"""
    r = stet.sh(script, probe, cwd=place)
    assert r.out == "126\n['ST_NOSUID', 'ST_NODEV', 'ST_NOEXEC']\n"
    assert [n for n in os.listdir(place) if not n.startswith(".stet-")] == []


@pytest.mark.parametrize("where", ["readonly"])
def test_workspace_on_a_read_only_mount(stet, filesystem, where):
    """Refused, or read-only inside: never writable, never silently."""
    r = stet.sh("cat file; echo x > file", cwd=filesystem(where))
    assert r.rc != 0
    with open(f"{filesystem(where)}/file", encoding="ascii") as f:
        assert f.read() == "kept\n"


def test_a_mount_whose_server_is_gone(stet, work, filesystem):
    """Nobody can do anything there; everywhere else there is work to do."""
    place = filesystem("dead")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("impossible here: no FUSE")
    assert os.access(place, os.W_OK)  # as far as the kernel remembers
    with pytest.raises(OSError):
        os.listdir(place)
    stet.sh(f"echo new > new; ! ls {place} && ! touch {place}/file", cwd=work,
            opts=["--on-success", "commit"]).ok()
    assert (work / "new").read_text() == "new\n"
