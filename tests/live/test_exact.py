# SPDX-License-Identifier: Apache-2.0
"""Status and diff say exactly what a plain comparison of the two trees says."""
import ast
import os
import re
import subprocess

import pytest
import stetlib
from stetlib import differences, expected_changes, has_user_xattrs, wait_until

NEEDS = "ext4 xfs btrfs tmpfs"
ROOT = os.geteuid() == 0
LIB = os.path.abspath(stetlib.__file__)

TREE = {
    "a": "a\n", "b": "b\n", "c": "c\n", "same": "same\n", "big": "line\n" * 5000,
    "bin": bytes(range(256)) * 20, "mode": ("mode", 0o644, "mode\n"),
    "link": ("link", "a"), "twin1": "twin\n", "twin2": ("hard", "twin1"),
    "d": {"x": "x\n", "y": "y\n", "e": {"z": "z\n"}}, "empty": {}, "keep": {"k": "k\n"},
    "tagged": ("xattr", {"user.t": b"1", "user.u": b"2"}, "t\n"), "fifo": ("fifo",),
    b"new\nline": "n\n", b"bad\xff\xfe": "bad\n", " space ": "s\n", "-dash": "-\n",
    "\u00fcml\u00e4ut": "u\n", b"esc\x1b[31m": "e\n", 'quo"te\\': "q\n",
}

# Each row: a name and a shell script; the expectation is computed, never written down.
CHANGES = {
    "nothing": "cat a d/x >/dev/null; ls -lR >/dev/null",
    "touch only": "touch a d keep/k",
    "content": "echo new > a; echo more >> big; printf '\\0' >> bin",
    "changed back": "cp -p a /tmp/a; echo x > a; cat /tmp/a > a; chmod 600 b; chmod 644 b",
    "deleted and made again the same": "cp a /tmp/a; rm a; cp /tmp/a a",
    "directory deleted and made again the same": "cp -a d /tmp/d; rm -rf d; cp -a /tmp/d d",
    "add": "echo n > new; mkdir -p p/q/r; echo f > p/q/r/f; ln -s nowhere p/l; mkfifo p/fifo",
    "add and delete again": "mkdir t; echo x > t/x; rm -rf t; touch u; rm u",
    "delete": "rm a; rm -rf d; rmdir empty; rm link fifo twin2",
    "delete all": "rm -rf -- * .[!.]*",
    "opaque": "rm -rf d; mkdir d; echo other > d/x; mkdir d/e; echo fresh > d/fresh",
    "opaque below": "rm -rf d/e; mkdir d/e; echo new > d/e/new",
    "whiteout under new directory": "rm -rf d; mkdir d; rmdir d; mkdir d",
    "mode": "chmod 755 mode; chmod 700 d; chmod 4755 a; chmod 1777 empty",
    "xattr": "setfattr -n user.t -v 9 tagged; setfattr -x user.u tagged; "
             "setfattr -n user.n -v 1 d",
    "acl": "setfacl -m u:nobody:r a || true; setfacl -m g::--- b",
    "file to directory": "rm a; mkdir a; echo in > a/in",
    "directory to file": "rm -rf d; echo file > d",
    "file to link": "ln -sf b a", "link to file": "rm link; echo f > link",
    "link to directory": "rm link; mkdir link; echo i > link/i",
    "directory to link": "rm -rf d; ln -s keep d", "fifo to file": "rm fifo; echo f > fifo",
    "link target": "ln -sfn c link",
    "hard links": "ln a a2; echo twins >> twin1; ln b d/b2; ln d/x x2",
    "one of two links": "rm twin1", "new links": "echo n > n1; ln n1 n2; ln n1 d/n3",
    "rename file": "mv a moved; mv d/x x; mv b d/",
    "rename over": "mv a b; mv d/y c",
    "rename directory": "mv d dd; mv dd/e ee", "rename twice": "mv d x1; mv x1 x2; mv x2/e x2/f",
    "rename and back": "mv d dd; mv dd d; mv a aa; mv aa a",
    "rename and replace": "mv d old; mkdir d; echo n > d/x",
    "swap": "mv a t; mv b a; mv t b",
    "names": "echo 2 > $'new\\nline'; echo 2 > $'bad\\xff\\xfe'; rm ' space '; "
             "echo 2 > ./-dash; touch $'\\x01' $'tab\\t' '*'; rm $'esc\\e[31m' 'quo\"te\\'",
    "sparse": "truncate -s 10M hole; truncate -s 1M a",
    "editor": "cp -p a .a.swp; sed -i s/a/b/ a; rm .a.swp",
    "many": "mkdir m; for i in $(seq 300); do echo $i > m/$i; done; rm big bin",
    "deep": "p=.; for i in $(seq 60); do p=$p/ddddddddddddddd; done; mkdir -p $p; echo x > $p/f",
    "long name": "n=$(printf '%0255d' 1); echo x > $n; mkdir l; echo y > l/$n; rm $n",
    "unreadable": "chmod 000 a; mkdir -m 000 locked; chmod 000 keep",
    "whiteout names": "echo x > .wh.a; mkdir .wh..wh..opq; echo 1 > '#1'",
    "overlay xattrs": "setfattr -n user.overlay.opaque -v y d 2>/dev/null; "
                      "setfattr -n user.overlay.whiteout -v y a 2>/dev/null; true",
    "git": "git init -q . && git add -A . 2>/dev/null; rm -rf .git/hooks",
}


def inside_digest(stet, script, work):
    """Runs the script and reads the workspace as the sandbox sees it at the end."""
    full = f"({script}\n) >&2 </dev/null; exec /usr/bin/python3 \"$1\" \"$2\""
    r = stet.run("bash", "-c", full, "bash", LIB, work, cwd=work).ok()
    return ast.literal_eval(r.out)


def check(stet, work, tree, digest, name):
    tree(work, TREE if has_user_xattrs(work) else {**TREE, "tagged": "t\n"})
    stet.ready()
    before = digest(work)
    script = CHANGES[name]
    if name == "unreadable" and not ROOT:
        # The digest inside could not read them; what status says is compared by hand.
        stet.sh(script, cwd=work).ok()
        assert stet.changes(cwd=work, below=work) == {b"a": "M", b"locked": "A", b"keep": "M"}
    else:
        after = inside_digest(stet, script, work)
        expected = expected_changes(digest(work, exact=False), after, owners=ROOT)
        if expected:
            assert stet.changes(cwd=work, below=work) == expected
        else:
            assert stet.transactions() == [] or stet.changes(cwd=work, below=work) == {}
    assert differences(before, digest(work)) == []


@pytest.mark.parametrize("name", CHANGES)
def test_status_is_the_comparison(stet, work, tree, digest, name):
    check(stet, work, tree, digest, name)


@pytest.mark.parametrize("name", ["opaque", "rename directory", "hard links", "xattr", "names",
                                  "delete all", "directory to file", "sparse"])
# With the sanitizers, which are slow, one is enough: the home is another.
@pytest.mark.parametrize("kind", ["btrfs"] if os.environ.get("STET_BUILD") == "asan"
                         else NEEDS.split())
def test_on_file_system(stet, filesystem, tmp_path, tree, digest, kind, name):
    work = f"{filesystem(kind)}/{tmp_path.name}"
    os.mkdir(work)
    check(stet, work, tree, digest, name)


def test_diff_applies(stet, work, tree, tmp_path, home):
    """The diff, applied by git to the host's tree, gives the tree that was inside."""
    text = {k: v for k, v in TREE.items() if isinstance(k, str) and isinstance(v, (str, dict))}
    tree(work, text)
    stet.sh("echo new > a; sed -i 3s/line/LINE/ big; rm b; mkdir n; echo f > n/f; mv d/x moved; "
            "chmod 755 c; printf 'no newline' > same", cwd=work).ok()
    patch = tmp_path / "patch"
    patch.write_bytes(stet("diff", "--color=never", cwd=work).ok().raw)
    copy = home / "copy"
    script = ('cp -a "$1" "$2" && cd "$2" && git init -q . && git apply --whitespace=nowarn '
              '"$3" && rm -rf .git')
    r = subprocess.run(["bash", "-c", script, "bash", work, copy, patch], check=False,
                       env=stet.environ(), stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 0, (r.stdout, patch.read_text())
    assert (copy / "a").read_text() == "new\n"
    assert not (copy / "b").exists()
    assert (copy / "n" / "f").read_text() == "f\n"
    assert (copy / "moved").read_text() == "x\n" and not (copy / "d" / "x").exists()
    assert os.stat(copy / "c").st_mode & 0o777 == 0o755
    assert (copy / "same").read_text() == "no newline"


def test_names_cannot_talk_to_the_terminal(stet, work, tree):
    tree(work, TREE)
    stet.sh(CHANGES["names"] + "; echo $'\\e]0;title\\a' > $'\\e[2Jevil\\r'", cwd=work).ok()
    for args in (["status"], ["status", "--all"], ["diff", "--stat"], ["diff", "--name-status"],
                 ["list"]):
        r = stet(*args, cwd=work).ok()
        assert not [c for c in r.raw if c < 32 and c not in (9, 10)], args
        assert b"\x7f" not in r.raw
    names = [line for line in stet("diff", "--name-status", cwd=work).out.splitlines()]
    assert len(names) == len(stet.changes(cwd=work)) or any("R" in n[:2] for n in names)


def test_exit_code(stet, work):
    (work / "a").write_text("a\n")
    stet.run("true", cwd=work, opts=["--on-success", "keep"]).ok()
    stet("diff", "--exit-code", cwd=work).ok(0)
    stet.sh("echo b > a", cwd=work).ok()
    stet("diff", "--exit-code", cwd=work).ok(1)


def test_status_after_rollback_and_prune(stet, work, digest):
    (work / "a").write_text("a\n")
    before = digest(work)
    stet.sh("echo b > a; mkdir -m 000 locked; mkdir -m 555 d; ln -s / d2", cwd=work).ok()
    stet("rollback", cwd=work).ok()
    assert stet.transactions()[0]["state"] == "rolled back"
    stet("prune").ok()
    assert stet.transactions() == []
    stet.settle()
    left = [os.path.join(d, f) for d, _, fs in os.walk(stet.state) for f in fs]
    # The journal and the books, the note of when history was last trimmed, and a file for locks.
    assert not [f for f in left if not re.match("journal|audit|(trimmed|tidying|looked|stores)$", os.path.basename(f))], left
    assert differences(before, digest(work)) == []


@pytest.mark.parametrize("how", ["explore", "rollback"])
def test_what_is_changed_later_is_not_on_the_disk_yet(stet, work, how):
    def on_disk():
        return stet("status", "t1", "--json", cwd=work).ok().json()["on_disk"]

    stet.sh("echo one > a", cwd=work).ok()
    wait_until(on_disk, 60)
    if how == "explore":
        p = stet.popen("explore", "-q", "--", "sh", "-c", "echo two > a; echo ready; read x", cwd=work,
                       stdin=subprocess.PIPE)
        assert p.stdout.readline() == b"ready\n"
        assert not on_disk()
        p.communicate(b"\n", timeout=60)
        assert p.returncode == 0
    else:
        (mark,) = [os.path.join(d, "durable") for d, _, files in os.walk(stet.state) if "durable" in files]
        before = os.stat(mark).st_ino, os.stat(mark).st_ctime_ns
        stet("rollback", "--to", "0", cwd=work).ok()
        wait_until(on_disk, 60)
        assert (os.stat(mark).st_ino, os.stat(mark).st_ctime_ns) != before
    wait_until(on_disk, 60)


def test_explore_sees_and_keeps_the_transaction(stet, work):
    (work / "a").write_text("a\n")
    stet.sh("echo inside > a; echo n > n; rm -rf /tmp/x; echo t > /tmp/x", cwd=work).ok()
    r = stet("explore", "--", "bash", "-c", "cat a n /tmp/x; echo later > l; mkdir d; mv d e",
             cwd=work)
    assert r.ok().out == "inside\nn\nt\n"
    assert stet.changes(cwd=work, below=work) == {b"a": "M", b"n": "A", b"l": "A", b"e": "A"}
    assert sorted(os.listdir(work)) == ["a"]
