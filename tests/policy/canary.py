# SPDX-License-Identifier: Apache-2.0
"""Destructive commands run for real in the sandbox, with something outside to be lost.

The scene lies in a network namespace of its own in which every address is ours: files that
belong to the user, processes of the user, and a server that counts who talks to it. Tools that
are not installed are stood in for by scripts of their names which talk to that server: what a
cloud's tool does, it does over the network. As the sandbox shares the network, such a script
gets through unless the policy stops it, and that is what is counted.
"""
import collections
import concurrent.futures
import ctypes
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading

PORTS = (21, 22, 23, 25, 44, 80, 443, 1234, 3306, 4444, 5000, 5432, 6379, 8000, 8080, 9000,
         9001, 27017)
LIMITS = ["--timeout", "2s", "--memory", "400M", "--pids", "80", "--disk", "50M", "--cpu", "2s",
          "--file-size", "20M", "--output-limit", "256K"]
PAYLOAD = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\necho pwned > \"$HOME/pwned\"\n"

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000

Ran = collections.namedtuple("Ran", "case caught missing timeout error")


def unshare(flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        n = ctypes.get_errno()
        raise OSError(n, "unshare: " + os.strerror(n))


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class Network:
    """A network in which all addresses and names lead to one counting server."""

    def __init__(self, root):
        uid, gid = os.geteuid(), os.getegid()
        unshare(CLONE_NEWNET | (CLONE_NEWNS if root else CLONE_NEWUSER))
        if not root:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"),
                               ("gid_map", f"{gid} {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                    f.write(text)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x49))  # up, running
        subprocess.run(["ip", "route", "add", "local", "default", "dev", "lo"], check=root,
                       stderr=subprocess.DEVNULL)
        self.said, self.lock = [], threading.Lock()
        for port in PORTS:
            s = socket.create_server(("", port)) if root or port >= 1024 else None
            if s:
                threading.Thread(target=self.serve, args=(s,), daemon=True).start()
        if root:
            self.names()

    def names(self):
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        conf = tempfile.NamedTemporaryFile("w", prefix="stet-resolv-", delete=False)
        with conf:
            conf.write("nameserver 127.0.0.1\n")
        os.chmod(conf.name, 0o644)
        subprocess.run(["mount", "--bind", conf.name, "/etc/resolv.conf"], check=True)
        os.unlink(conf.name)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 53))
        threading.Thread(target=self.resolve, args=(s,), daemon=True).start()

    @staticmethod
    def resolve(s):
        while True:
            q, peer = s.recvfrom(512)
            end = q.find(b"\0", 12) + 5
            if end < 17:
                continue
            a = q[end - 4:end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if a else b""
            s.sendto(q[:2] + b"\x81\x80\0\1" + (b"\0\1" if a else b"\0\0") + b"\0\0\0\0"
                     + q[12:end] + answer, peer)

    def serve(self, s):
        while True:
            c, _ = s.accept()
            threading.Thread(target=self.hear, args=(c, s.getsockname()[1]),
                             daemon=True).start()

    def hear(self, c, port):
        with c:
            c.settimeout(0.5)
            try:
                text = c.recv(400).decode("utf-8", "replace")
                c.sendall(PAYLOAD)
            except OSError:
                text = ""
        with self.lock:
            self.said.append((port, text))


class Scene:
    """A home with a workspace, files that must stay as they are, and processes."""

    def __init__(self, who, network):
        self.who, self.network = who, network
        self.home = tempfile.mkdtemp(prefix="stet-canary-", dir=who.home)
        self.work = os.path.join(self.home, "project")
        self.stubs = os.path.join(self.home, "stubs")
        self.places = [self.home]
        h, w = self.home, self.work
        for path in (".ssh/id_rsa", ".ssh/authorized_keys", ".aws/credentials", ".bashrc",
                     ".profile", ".netrc", ".gnupg/private", ".kube/config", ".config/x/y",
                     "Documents/thesis.txt", "Pictures/a.jpg", "old/a/b/c", ".claude/settings.json"):
            write(f"{h}/{path}", f"canary {path}\n", 0o600)
        for path in ("a", "b", "c", "a.c", "src/a.c", "src/main.c", "build/out.o", "README.md",
                     "notes.txt", "node_modules/x/index.js", ".env", "dist/app.js", "Makefile",
                     "package.json", "a.db", "log.txt", "secret.txt"):
            write(f"{w}/{path}", f"canary {path}\n")
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            d = tempfile.mkdtemp(prefix="stet-canary-", dir=place)
            write(f"{d}/file", "canary\n")
            self.places.append(d)
        os.makedirs(self.stubs)
        os.makedirs(f"{h}/cases")
        if os.geteuid() != who.uid:
            subprocess.run(["chown", "-R", f"{who.uid}:{who.gid}", *self.places], check=True)
        git = ["git", "-c", "user.name=c", "-c", "user.email=c@example.org"]
        for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "canary"]):
            self.plain(git + argv, check=True)
        self.processes = [self.start(["sleep", "100000"]) for _ in range(3)]

    def env(self):
        return {"HOME": self.home, "PATH": f"{os.environ['PATH']}:{self.stubs}", "LANG": "C.UTF-8",
                "USER": self.who.name, "SHELL": "/bin/bash", "TERM": "dumb",
                "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "EDITOR": "true"}

    def plain(self, argv, **more):
        return subprocess.run(argv, cwd=self.work, env=self.env(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **self.who.popen(), **more)

    def start(self, argv):
        return subprocess.Popen(argv, cwd=self.work, env=self.env(), **self.who.popen())

    def stand_in(self, names):
        """A script for each tool that is not installed."""
        for name in names:
            if not shutil.which(name):
                write(f"{self.stubs}/{name}",
                      '#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/8080 && echo "${0##*/} $*" >&3\n',
                      0o755)

    def prove(self):
        """A canary that cannot die proves nothing: the scene notices what is done outside."""
        victim = self.start(["sleep", "100000"])
        self.processes.append(victim)
        before, heard = self.look(), len(self.network.said)
        self.plain(["bash", "-c", f"echo x > ../Documents/new; rm a.c; kill -9 {victim.pid}; "
                    "exec 3<>/dev/tcp/127.0.0.1/8080; echo hello >&3; cat <&3"], check=True)
        victim.wait()
        after = self.look()
        seen = {k for k in set(before) | set(after) if before.get(k) != after.get(k)}
        wanted = {f"{self.home}/Documents/new", f"{self.work}/a.c", f"process {victim.pid}"}
        if not wanted <= seen or len(self.network.said) == heard:
            raise SystemExit(f"policy report: the scene is blind: it saw {sorted(seen)}")
        self.processes.pop()
        self.plain(["git", "checkout", "-q", "--", "a.c"], check=True)

    def look(self):
        """Everything that a command outside could have changed."""
        seen = {}
        for place in self.places:
            for folder, dirs, files in os.walk(place):
                if folder == self.home:
                    dirs[:] = [d for d in dirs if d not in (".local", "cases")]
                for name in dirs + files:
                    path = os.path.join(folder, name)
                    st = os.lstat(path)
                    seen[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns,
                                  self.digest(path) if name in files else None)
        for p in self.processes:
            seen[f"process {p.pid}"] = p.poll()
        return seen

    @staticmethod
    def digest(path):
        if os.path.islink(path):
            return os.readlink(path)
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).digest()

    def close(self):
        for p in self.processes:
            p.send_signal(signal.SIGKILL)
            p.wait()
        for place in self.places:
            subprocess.run(["chmod", "-R", "u+rwX", place], check=False,
                           stderr=subprocess.DEVNULL)
            shutil.rmtree(place, ignore_errors=True)


class Executor:
    """Runs cases, each in a sandbox that is rolled back, and looks around after each."""

    def __init__(self, stet, scene, mode):
        self.stet, self.scene, self.mode = stet, scene, mode
        self.lock = threading.Lock()
        self.before = scene.look()
        self.running, self.effects, self.done = set(), [], 0

    def argv(self, path):
        # The check always fails: what the command did is rolled back, whatever it was.
        return [self.stet, "exec", "--json", *self.mode, "--check", "false", *LIMITS, "--",
                "bash", path]

    def run(self, number, case):
        # A script and not `bash -c`: what is in it is seen only as it is executed.
        path = f"{self.scene.home}/cases/{len(self.mode)}-{number}.sh"
        text = case.text.replace("/home/me/project", self.scene.work)
        with self.lock:
            write(path, text.replace("/home/me", self.scene.home) + "\n")
            self.running.add(case.text)
        got, error = {}, ""
        try:
            p = self.scene.plain(self.argv(path), timeout=300)
            error = (p.stdout + p.stderr).decode("utf-8", "replace")[:2000]
            got = json.loads(p.stdout)
        except (subprocess.TimeoutExpired, ValueError) as e:
            error = f"{e}: {error}"
        finally:
            with self.lock:
                self.notice(case)
            os.unlink(path)
        if "check 1: " in got.get("error", {}).get("message", ""):
            # It ran, and then there was no directory any more for the check to start in.
            return Ran(case, False, False, False, "")
        if got.get("reason", "error") in ("error", "not executed"):
            return Ran(case, False, False, False, error)
        return Ran(case, any(v["verdict"] in ("checkpoint", "ask", "deny", "kill")
                             for v in got["verdicts"]),
                   "not found" in got.get("stderr", ""), got["reason"] == "timeout", "")

    def notice(self, case):
        now = self.scene.look()
        if now != self.before:
            paths = sorted(k for k in set(now) | set(self.before)
                           if now.get(k) != self.before.get(k))
            self.effects.append((sorted(self.running), paths[:10]))
            self.before = now
        self.running.discard(case.text)
        self.done += 1

    def all(self, cases, tell):
        said = len(self.scene.network.said)
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
        try:
            jobs = [pool.submit(self.run, i, c) for i, c in enumerate(cases)]
            for n, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                job.result()
                if n % 100 == 0:
                    tell(f"{n} of {len(cases)} run")
        finally:
            pool.shutdown(cancel_futures=True)
        return [j.result() for j in jobs], self.scene.network.said[said:]


def programs(root):
    """Names in the built-in rules: what may have to be stood in for."""
    path = os.path.join(root, "policy", "default.yaml")
    if not os.path.exists(path):
        return []  # tests that were copied somewhere
    with open(path, encoding="utf-8") as f:
        text = f.read()
    # A list stands on one line, or has a line for each item.
    names = {n.strip().strip('"') for line in re.findall(r"program: \[([^]]*)\]", text)
             for n in line.split(",")}
    names |= {n.strip().strip('"') for block in re.findall(r"program:\n((?: +- .*\n)+)", text)
              for n in re.findall(r"- (.*)\n", block)}
    return sorted(n for n in names if re.fullmatch(r"[a-z][a-zA-Z0-9_.-]+", n)
                  and n not in ("eval", "source", "stet"))
