# SPDX-License-Identifier: Apache-2.0
"""What tests use: running stet, making trees, taking a tree's digest."""
import base64
import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import time


# A machine without a processor of its own (tests/vm) takes so many times as long.
SLOW = float(os.environ.get("STET_TEST_SLOW", "1"))


class Hung(AssertionError):
    """A program did not end in its time. The runner takes that as it is: no second try."""


class Result:
    """How a command ended. Texts are decoded so that no byte is lost."""

    def __init__(self, argv, rc, out, err):
        self.argv, self.rc, self.raw = argv, rc, out
        self.out = out.decode(errors="surrogateescape")
        self.err = err.decode(errors="surrogateescape")

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise AssertionError(f"not JSON ({e}): {self!r}") from e

    def ok(self, rc=0):
        """Asserts the exit status; gives itself back."""
        assert self.rc == rc, f"exit status {self.rc}, not {rc}\n{self!r}"
        return self

    def __repr__(self):
        return (f"$ {' '.join(map(str, self.argv))}\n[{self.rc}]\n"
                f"--- stdout\n{self.out}\n--- stderr\n{self.err}")


def json_bytes(o, key):
    """A name from JSON: the text, or the bytes beside it if it is not UTF-8."""
    if key + "_b64" in o:
        return base64.b64decode(o[key + "_b64"])
    return o[key].encode()


class Stet:
    """stet with an environment of its own: HOME and state lie in the test's directory."""

    def __init__(self, path, home):
        self.path, self.home, self.started = path, home, []
        self.no_policy = False  # True: what is run is not judged
        self.state = os.path.join(home, ".local", "state", "stet")
        self.env = {
            "HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8", "TERM": "xterm", "USER": os.environ.get("USER", ""),
            "LOGNAME": os.environ.get("USER", ""), "NO_COLOR": "1",
            "TMPDIR": "/tmp",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def rules_off(self):
        """No rule counts: what is tested is what holds even then."""
        config = os.path.join(self.home, ".config", "stet")
        os.makedirs(config)
        with open(os.path.join(config, "policy.yaml"), "w", encoding="utf-8") as f:
            f.write("version: 1\noff: ['*']\n")

    def environ(self, extra=None):
        env = dict(self.env)
        for k, v in (extra or {}).items():
            if v is None:
                env.pop(k, None)
            else:
                env[k] = v
        return env

    def popen(self, *args, cwd=None, env=None, **kw):
        if self.no_policy and args and args[0] in ("run", "exec"):
            args = (args[0], "--no-policy", *args[1:])
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        p = subprocess.Popen([self.path, *map(os.fspath, args)], cwd=cwd or self.home,
                             env=self.environ(env), **kw)
        self.started.append(p)
        return p

    def end_all(self):
        """Leaves nothing running, whatever became of the test."""
        for p in self.started:
            if p.poll() is None:
                p.kill()
                p.wait()

    def __call__(self, *args, cwd=None, env=None, input=None, timeout=60, **kw):
        if input is not None:
            kw["stdin"] = subprocess.PIPE
            if isinstance(input, str):
                input = input.encode()
        with self.popen(*args, cwd=cwd, env=env, **kw) as p:
            try:
                out, err = p.communicate(input, timeout * SLOW)
            except subprocess.TimeoutExpired:
                p.send_signal(signal.SIGKILL)
                out, err = p.communicate()
                raise Hung(
                    f"still running after {timeout * SLOW:.0f} s\n"
                    f"{Result(p.args, 'killed', out or b'', err or b'')!r}") from None
        return Result(p.args, p.returncode, out or b"", err or b"")

    def run(self, *argv, opts=(), **kw):
        """`stet run OPTS --quiet -- ARGV`."""
        return self("run", "--quiet", *opts, "--", *argv, **kw)

    def ready(self):
        """Makes the state directory, so that a digest of the home does not show it later."""
        self("list").ok()
        return self

    def changes(self, tx=None, cwd=None, below=None):
        """{path (bytes): letter} as `stet status` tells it; a rename is D and A.

        below: only what lies in this directory, relative to it.
        """
        args = ["status", "--json"] + ([tx] if tx else [])
        found = {}
        for c in self(*args, cwd=cwd).ok().json()["changes"]:
            path = json_bytes(c, "path")
            if c["kind"] == "R":
                found[path] = "A"
                found[json_bytes(c, "from")] = "D"
            else:
                found[path] = c["kind"]
        if below is None:
            return found
        top = os.fsencode(below) + b"/"
        return {p[len(top):]: k for p, k in found.items() if p.startswith(top)}

    def transactions(self):
        """What `stet list` shows, newest first."""
        return self("list", "--json").ok().json()["transactions"]

    def settle(self):
        """Waits until what a run left to the background is done."""
        wait_until(lambda: not self.background())

    def background(self):
        """Ids of our processes that nobody here has started: forked off, executed or not yet."""
        mine = {p.pid for p in self.started if p.poll() is None}
        found = processes_with("--housekeep\0" + self.state)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = os.fsencode(f"HOME={self.home}") in f.read().split(b"\0")
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                    parent = int(f.read().rpartition(")")[2].split()[1])
                if ours and os.readlink(f"/proc/{pid}/exe") == self.path and \
                        not mine & {int(pid), parent}:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def sh(self, script, *args, opts=(), **kw):
        """A shell script inside; $1... are args."""
        return self.run("bash", "-c", script, "bash", *args, opts=opts, **kw)


def make_tree(where, spec):
    """Makes what a dict says, below a directory; gives the directory back.

    name: "text" or b"bytes"        a file
    name: {...}                     a directory with these entries
    name: ("link", target)          a symbolic link
    name: ("hard", other)           a hard link to a path relative to the top
    name: ("fifo",)
    name: ("mode", 0o600, entry)    any of these, with a mode
    name: ("mtime", ns, entry)      ... with a time
    name: ("xattr", {n: b"v"}, entry)
    name: ("sparse", size)          a file of zeros without blocks
    """
    top = os.fsencode(where)

    def make(path, entry):
        if isinstance(entry, dict):
            os.makedirs(path, exist_ok=True)
            for name, sub in entry.items():
                make(os.path.join(path, os.fsencode(name)), sub)
        elif isinstance(entry, (str, bytes)):
            with open(path, "wb") as f:
                f.write(entry.encode() if isinstance(entry, str) else entry)
        elif entry[0] == "link":
            os.symlink(entry[1], path)
        elif entry[0] == "hard":
            os.link(os.path.join(top, os.fsencode(entry[1])), path)
        elif entry[0] == "fifo":
            os.mkfifo(path)
        elif entry[0] == "sparse":
            with open(path, "wb") as f:
                f.truncate(entry[1])
        elif entry[0] == "mode":
            make(path, entry[2])
            os.chmod(path, entry[1])
        elif entry[0] == "mtime":
            make(path, entry[2])
            os.utime(path, ns=(entry[1], entry[1]), follow_symlinks=False)
        elif entry[0] == "xattr":
            make(path, entry[2])
            for name, value in entry[1].items():
                os.setxattr(path, name, value, follow_symlinks=False)
        else:
            raise ValueError(entry)

    make(top, spec)
    return where


def holes(fd, size):
    """Where the data of a file lies: ((begin, end), ...)."""
    found, at = [], 0
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        found.append((begin, at))
    return tuple(found)


def xattrs(path):
    try:
        return {n: os.getxattr(path, n, follow_symlinks=False)
                for n in sorted(os.listxattr(path, follow_symlinks=False))}
    except OSError:
        return {}


def has_user_xattrs(path):
    """Has its file system any? A tmpfs has from Linux 6.6 on, and holds layers only then."""
    try:
        os.getxattr(path, "user.none")
    except OSError as e:
        return e.errno != errno.EOPNOTSUPP
    return True


def describe(path, st, exact):
    d = {"type": stat.S_IFMT(st.st_mode), "mode": stat.S_IMODE(st.st_mode), "uid": st.st_uid,
         "gid": st.st_gid, "mtime": st.st_mtime_ns, "xattrs": xattrs(path)}
    if not stat.S_ISDIR(st.st_mode):
        d["nlink"] = st.st_nlink
    if exact:
        d["ino"], d["ctime"] = st.st_ino, st.st_ctime_ns
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            d["sha"] = hashlib.file_digest(f, "sha256").hexdigest()
            d["size"] = st.st_size
            d["data"] = holes(f.fileno(), st.st_size)
    elif stat.S_ISLNK(st.st_mode):
        d["target"] = os.readlink(path)
    elif stat.S_ISBLK(st.st_mode) or stat.S_ISCHR(st.st_mode):
        d["rdev"] = st.st_rdev
    return d


def digest(path, exact=True, ignore=()):
    """All that can be seen of a tree: {relative path: properties}, the top as b"".

    exact: inode numbers and change times too, so that even a change that was undone shows.
    ignore: paths (relative, bytes) left out with what is below them.
    """
    top = os.fsencode(path)
    seen = {}

    def walk(full, rel):
        st = os.lstat(full)
        seen[rel] = describe(full, st, exact)
        if stat.S_ISDIR(st.st_mode):
            for name in sorted(os.listdir(full)):
                sub = os.path.join(rel, name) if rel else name
                if sub not in ignore:
                    walk(os.path.join(full, name), sub)

    walk(top, b"")
    return seen


def expected_changes(before, after, owners=True):
    """{path: letter} that a plain comparison of two digests gives, as status should.

    Times alone are no change, nor is anything about a directory's link count.
    """
    found = {}
    for name in set(before) | set(after):
        a, b = before.get(name), after.get(name)
        if name == b"":
            continue
        if a is None or b is None:
            found[name] = "A" if a is None else "D"
        elif a["type"] != b["type"]:
            found[name] = "T"
        else:
            keys = ["mode", "xattrs", "sha", "target", "rdev"]
            keys += ["uid", "gid"] if owners else []
            if any(a.get(k) != b.get(k) for k in keys):
                found[name] = "M"
    return found


def differences(before, after):
    """What two digests differ in, for an assertion's message."""
    found = []
    for name in sorted(set(before) | set(after)):
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            found.append(f"{'added' if a is None else 'gone'}: {name!r}")
        elif a != b:
            keys = [k for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
            found.append(f"{name!r}: " + ", ".join(
                f"{k} {a.get(k)!r} -> {b.get(k)!r}" for k in keys))
    return found


def wait_until(what, seconds=20, message="waited in vain"):
    """Polls a condition; the wait is a limit, not a pace."""
    end = time.monotonic() + seconds * SLOW
    while True:
        began = time.monotonic()
        value = what()
        if value:
            return value
        now = time.monotonic()
        assert now < end, message() if callable(message) else message
        # Those who are waited for need the processor, too.
        time.sleep(min(max(0.01, 3 * (now - began)), 0.2))


def processes_with(text, begin=""):
    """Ids of processes whose command line holds a text, and has that beginning."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            if text.encode() in line and line.startswith(begin.encode()) \
                    and int(pid) != os.getpid():
                found.append(int(pid))
        except OSError:
            pass
    return found


if __name__ == "__main__":
    # Inside a sandbox: prints the digest of a directory for the test outside.
    import sys
    sys.stdout.write(repr(digest(sys.argv[1], exact=False)))
