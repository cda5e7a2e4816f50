# SPDX-License-Identifier: Apache-2.0
"""The stopwatch and what is made of its readings."""
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import time

LIMIT_S = 300


class Broken(Exception):
    """A command did not do its work; its reading is worth nothing."""


def resolve(argv, env):
    path = shutil.which(argv[0], path=env["PATH"])
    if not path:
        raise Broken(f"{argv[0]} is not installed")
    return [path, *argv[1:]]


def timed(argv, cwd, env, log):
    """Nanoseconds from the spawn to the end of a command. Its output is thrown away."""
    argv = resolve(argv, env)
    os.chdir(cwd)
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
               (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)]

    def overdue(*_):
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, overdue)
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
    signal.alarm(LIMIT_S)
    _, status = os.waitpid(pid, 0)
    end = time.perf_counter_ns()
    signal.alarm(0)
    if status:
        with open(log, errors="replace", encoding="utf-8") as f:
            said = f.read().strip().splitlines()
        raise Broken(f"{os.path.basename(argv[0])} ended with status "
                     f"{os.waitstatus_to_exitcode(status)}: {said[-1] if said else ''}")
    return end - begin


def peak(argv, cwd, env, log):
    """KiB that the command had at most. Not from wait4(): that counts the memory of whoever
    spawned it, too."""
    most = 0
    with open(log, "wb") as f:
        p = subprocess.Popen(resolve(argv, env), cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=f)
    while p.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{p.pid}/status", encoding="ascii",
                                                errors="replace") as f:
            text = f.read()
            if "VmHWM:" in text and f"Name:\t{os.path.basename(argv[0])}\n" in text:
                most = max(most, int(text.partition("VmHWM:")[2].split()[0]))
        time.sleep(0.001)
    if p.returncode or not most:
        raise Broken(f"{argv[0]} ended with status {p.returncode}, {most} KiB seen")
    return most


def quiet(argv, cwd, env, check=True):
    """Preparation: not timed."""
    r = subprocess.run(resolve(argv, env), cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if check and r.returncode:
        text = r.stdout.decode(errors="replace").strip().splitlines()
        raise Broken(f"{argv[0]}: {text[-1] if text else r.returncode}")
    return r.stdout


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def ratios(a, b):
    """Quartiles of a/b, taken round by round: what disturbed a round disturbed both."""
    n = min(len(a), len(b))
    return quartiles([a[i] / b[i] for i in range(n)]) if n else None


class Samples:
    """Readings of one row: {variant: [ns, ...]}, and why others have none."""

    def __init__(self):
        self.ns, self.missing = {}, {}

    def add(self, variant, value):
        self.ns.setdefault(variant, []).append(value)

    def lose(self, variant, why):
        self.ns.pop(variant, None)
        self.missing[variant] = str(why)

    def median(self, variant):
        v = self.ns.get(variant)
        return statistics.median(v) if v else None

    def spread(self, variant):
        """Half the distance between the quartiles, as a part of the median."""
        v = self.ns.get(variant)
        if not v:
            return None
        low, mid, high = quartiles(v)
        return (high - low) / 2 / mid if mid else 0.0


def rounds(variants, n, samples, once, order):
    """Interleaved: every round measures every variant once, in a shuffled order.

    once(variant) gives a reading. The first round warms caches and is not counted.
    """
    alive = list(variants)
    for i in range(n + 1):
        order.shuffle(alive)
        for v in list(alive):
            try:
                ns = once(v)
            except (Broken, OSError) as e:
                samples.lose(v, e)
                alive.remove(v)
                continue
            if i:
                samples.add(v, ns)
    return samples
