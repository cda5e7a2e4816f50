# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a command that runs, and going back while it does.

The pause is how long its processes stood still; the whole is the verb from its spawn to its
end. What else there is works on a plain tree in which the same was done.
"""
import json
import os
import subprocess
import time

from measure import Broken, Samples, resolve, rounds
from rows import FASTER, SLOWER, Bar

# Does what it is told, a line of words at a time, and says when it is done.
ACTOR = r"""
import subprocess, sys
for line in sys.stdin:
    print(subprocess.run(line.split(), stdin=subprocess.DEVNULL).returncode, flush=True)
"""
PEERS = ("shadow git commit", "rsync --link-dest", "cp -a --reflink")
PAUSE, WHOLE = "pause of the command", "stet checkpoint"


class Agent:
    """A command in a transaction that does as it is told."""

    def __init__(self, b, tree):
        self.b, self.tree = b, tree
        argv = resolve(["stet", "run", "-q", "--checkpoint", "none", "--on-success", "keep",
                        "--", "/usr/bin/python3", "-c", ACTOR], b.env)
        self.p = subprocess.Popen(argv, cwd=tree, env=b.env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def do(self, *words):
        self.p.stdin.write((" ".join(words) + "\n").encode())
        self.p.stdin.flush()
        if self.p.stdout.readline() != b"0\n":
            raise Broken(f"{' '.join(words)} failed inside")

    def ask(self, *words):
        """(ns in all, the answer)"""
        begin = time.perf_counter_ns()
        text = self.b.do(["stet", *words, "--json"], self.tree)
        return time.perf_counter_ns() - begin, json.loads(text)

    def end(self):
        self.p.stdin.close()
        self.p.wait()
        self.b.do(["stet", "rollback"], self.tree)


class Peers:
    """Ways to keep a state of a plain tree; each keeps what it needs from before."""

    def __init__(self, b, tree):
        self.b, self.tree, self.n = b, tree, 0
        self.place = f"{b.place.scratch}/kept"
        self.git = dict(b.env, GIT_DIR=f"{self.place}/git", GIT_WORK_TREE=tree,
                        GIT_AUTHOR_NAME="b", GIT_AUTHOR_EMAIL="b@example.org",
                        GIT_COMMITTER_NAME="b", GIT_COMMITTER_EMAIL="b@example.org")
        os.makedirs(self.place)
        self.keep("shadow git commit")
        self.keep("rsync --link-dest")

    def keep(self, way):
        self.n += 1
        new = f"{self.place}/{self.n}"
        env, argv = self.b.env, ["cp", "-a", "--reflink=auto", self.tree, new]
        if way == "shadow git commit":
            env = self.git
            argv = ["sh", "-c", '[ -d "$GIT_DIR" ] || git init -q; git add -A && '
                                "git commit -q --allow-empty -m x"]
        elif way == "rsync --link-dest":
            old = f"{self.place}/last"
            argv = ["rsync", "-a", f"--link-dest={old}", f"{self.tree}/", new]
        begin = time.perf_counter_ns()
        r = subprocess.run(resolve(argv, env), cwd=self.tree, env=env, check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
        ns = time.perf_counter_ns() - begin
        if r.returncode:
            raise Broken(f"{argv[0]}: {r.stderr.decode(errors='replace').strip()}")
        if way == "rsync --link-dest":
            if os.path.lexists(f"{self.place}/last"):
                self.b.place.throw(f"{self.place}/last")
            os.rename(new, f"{self.place}/last")
        elif os.path.lexists(new):
            self.b.place.throw(new)
        return ns

    def end(self):
        self.b.place.throw(self.place)


class Checkpoint:
    """`changed` files of `upper` that the layer holds, in a tree of `files`."""

    def __init__(self, name, title, files, upper, changed, pause, peers=True):
        self.name, self.title = name, title
        self.files, self.upper, self.changed = files, upper, changed
        self.pause, self.peers, self.fs = pause, peers, None

    def goals(self):
        return [Bar(f"stopped for less than {self.pause} ms", PAUSE, None, SLOWER, self.pause),
                *(Bar(f"faster than {p}", p, WHOLE, FASTER, 1.0) for p in PEERS
                  if self.peers)]

    def run(self, b):
        tree = b.files(b.size(self.files))
        s = Samples()
        agent = Agent(b, tree)
        agent.do("work", "append", str(b.size(self.upper)))
        agent.ask("checkpoint")
        pauses, plain, peers = [], None, None
        if self.peers:
            plain = f"{b.place.scratch}/plain"
            os.makedirs(plain)
            b.do(["work", "tree", str(b.size(self.files))], plain)
            peers = Peers(b, plain)

        def once(way):
            if way == WHOLE:
                agent.do("work", "append", str(b.size(self.changed)))
                ns, r = agent.ask("checkpoint")
                if not r["checkpoint"]:
                    raise Broken("nothing was found to have changed")
                pauses.append(r["paused_us"] * 1000)
                return ns
            b.do(["work", "append", str(b.size(self.changed))], plain)
            return peers.keep(way)

        rounds([WHOLE, *(PEERS if self.peers else ())], b.reps(5), s, once, b.order)
        s.ns[PAUSE] = pauses[1:]
        agent.end()
        if peers:
            peers.end()
            b.place.throw(plain)
        return s


class Modules:
    """All of a big upper is new: what a package manager has just installed."""

    name, title = "ckpt-modules", "checkpoint: 50,000 files just installed"
    fs = None

    def goals(self):
        limit = 10.0 if self.fs == "btrfs" else 300.0
        return [Bar(f"stopped for less than {limit:.0f} ms", PAUSE, None, SLOWER, limit)]

    def run(self, b):
        self.fs = b.place.kind
        s = Samples()
        for _ in range(b.reps(3)):
            tree = f"{b.place.scratch}/project"
            os.makedirs(tree)
            agent = Agent(b, tree)
            agent.do("work", "tree", str(b.size(50000)))
            ns, r = agent.ask("checkpoint")
            s.add(WHOLE, ns)
            s.add(PAUSE, r["paused_us"] * 1000)
            agent.end()
            b.place.throw(tree)
        return s


class Nothing:
    name, title = "ckpt-nothing", "checkpoint: nothing changed in an upper of 50,000 files"

    def goals(self):
        return [Bar("nothing is stopped", PAUSE, None, SLOWER, 1.0),
                Bar("known in less than 1 ms, if nothing ran", "looking", None, SLOWER, 1.0)]

    def run(self, b):
        s = Samples()
        tree = f"{b.place.scratch}/project"
        os.makedirs(tree)
        agent = Agent(b, tree)
        agent.do("work", "tree", str(b.size(50000)))
        agent.ask("checkpoint")
        for i in range(b.reps(9) + 2):
            ns, r = agent.ask("checkpoint")
            if r["checkpoint"]:
                raise Broken("something was found to have changed")
            if i > 1:
                s.add(WHOLE, ns)
                s.add(PAUSE, r["paused_us"] * 1000)
                s.add("looking", r["took_us"] * 1000)
        agent.end()
        b.place.throw(tree)
        return s


class LiveRollback:
    name, title = "rollback-live", "live rollback of 1,000 changed files"

    def goals(self):
        return [Bar("in less than 100 ms", "stet rollback --to", None, SLOWER, 100.0)]

    def run(self, b):
        s, n = Samples(), str(b.size(1000))
        tree = b.files(b.size(10000))
        agent = Agent(b, tree)
        agent.do("work", "append", n)
        _, first = agent.ask("checkpoint")
        for i in range(b.reps(7) + 1):
            agent.do("work", "append", n)
            ns, r = agent.ask("rollback", "--to", str(first["last"]))
            if i:
                s.add("stet rollback --to", ns)
                s.add(PAUSE, r["paused_us"] * 1000)
        agent.end()
        return s


CKPT_ROWS = [Checkpoint("ckpt-few", "checkpoint: 10 changed of 1,000, in a tree of 100,000",
                        100000, 1000, 10, 5.0),
             Checkpoint("ckpt-many", "checkpoint: 1,000 changed small files", 10000, 1000, 1000,
                        60.0),
             Modules(), Nothing(), LiveRollback()]
