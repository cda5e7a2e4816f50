# SPDX-License-Identifier: Apache-2.0
"""The test runner: builds, jobs, and the count. See tests/run."""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from xml.etree import ElementTree

from identity import identities

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = os.path.join(ROOT, "tests")
PYTEST_SUITES = ("cli", "live", "agents", "fidelity", "model")
# Minutes each: doors of their own, not part of `make test`.
LONGER = ("torture", "powercut", "fidelity", "model", "matrix", "sanitized")
SUITES = ("build", "meta", "unit", "torture", "powercut", "matrix", "sanitized") + PYTEST_SUITES
# The suites of `quick`: one build, as the user who starts it, and a sample of the fault points. Less
# than a minute where nothing has to be built.
QUICK = ("meta", "unit", "torture")
EVERYTHING = tuple(s for s in SUITES if s not in LONGER)
JOB_SECONDS = 420
PROGRAM_SECONDS = 1800
FULL_SECONDS = 4 * 3600
# Minutes of waiting for an agent, for code that the other three have been through.
LEFT_OUT = {("agents", "asan", "root")}
# A quarter of all: left out if everything is run, unless it is asked for by name or suite.
SANITIZED = {("live", "asan", "root"), ("cli", "asan", "root")}
RUNNING = set()
MARK = re.compile(r'^NEEDS = "([^"]*)"', re.M)
# To remember who allocated what costs every process a megabyte; a second try does so.
BRIEF = ":malloc_context_size=1"
# In a test file that never starts stet: which build it is cannot matter, and one will do.
NO_STET = re.compile(r"^WITHOUT_STET = True", re.M)
# In a test file that takes long: with the sanitizers it runs in `sanitized` alone, as root.
LONG = re.compile(r"^SANITIZED_APART = True", re.M)


class Count:
    """What one suite came to; written to from several threads."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.impossible = name, 0, 0, 0
        self.seconds = 0.0


def shortened(text, most=400):
    """Both ends of what is too long to be read."""
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    half = most // 2
    return "\n".join(lines[:half] + [f"... {len(lines) - most} lines ..."] + lines[-half:])


SAID = re.compile(r"^said: (.*)$", re.M)


class Report:
    """Collects results and prints them: one line per suite, failures in full."""

    def __init__(self):
        self.lock = threading.Lock()
        self.suites = {}
        self.again = []  # what failed beside others, to be tried alone

    def add(self, suite, passed, failed, impossible, seconds, trouble):
        with self.lock:
            c = self.suites.setdefault(suite, Count(suite))
            c.passed += passed
            c.failed += failed
            c.impossible += impossible
            c.seconds += seconds
            if trouble:
                print(f"\n---- {suite}\n{shortened(trouble.rstrip())}\n", flush=True)

    def tell(self, text):
        """What a test wants to be read though it passed: its lines that begin with `said: `."""
        with self.lock:
            for line in SAID.findall(text):
                print(line, flush=True)

    def line(self, suite):
        c = self.suites.get(suite)
        if c is None:
            return
        more = f", {c.impossible} impossible here" if c.impossible else ""
        print(f"{suite}: {c.passed} passed, {c.failed} failed{more} ({c.seconds:.0f} s)",
              flush=True)

    def total(self):
        passed = sum(c.passed for c in self.suites.values())
        failed = sum(c.failed for c in self.suites.values())
        return passed, failed


def end(p):
    """Kills a job and what it started in its session."""
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()


def run(argv, env=None, identity=None, cwd=None, seconds=JOB_SECONDS):
    """Runs to the end or the time limit; (status, output, seconds). Status None: time limit."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=out, start_new_session=True,
                             **(identity.popen() if identity else {}))
        RUNNING.add(p)
        try:
            status = p.wait(seconds)
        except subprocess.TimeoutExpired:
            end(p)
            status = None
        RUNNING.discard(p)
        out.seek(0)
        text = out.read().decode(errors="replace")
    return status, text, time.monotonic() - begin


@contextlib.contextmanager
def crew(many):
    """Threads; if we are interrupted, what they have started ends."""
    with ThreadPoolExecutor(many) as pool:
        try:
            yield pool
            pool.shutdown()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for p in list(RUNNING):
                end(p)
            raise


def build(report, kind, target):
    status, text, seconds = run([f"{ROOT}/build-aux/build", kind, target], os.environ.copy(),
                                seconds=PROGRAM_SECONDS)
    report.add("build", int(status == 0), int(status != 0), 0, seconds,
               "" if status == 0 else f"{kind}: {text}")
    return text.strip().splitlines()[-1] if status == 0 else None


def build_probe(report, stage):
    out = f"{stage}/probe"
    status, text, seconds = run(["gcc", "-static", "-std=gnu17", "-O1", "-Wall", "-Wextra",
                                 "-Werror", "-D_GNU_SOURCE", "-o", out]
                                + sorted(glob.glob(f"{TESTS}/probe/*.c")))
    report.add("build", int(status == 0), int(status != 0), 0, seconds,
               "" if status == 0 else f"probe: {text}")


def fetch_agent(report):
    status, text, seconds = run([f"{ROOT}/build-aux/agents", "qwen"],
                                dict(os.environ, STET_TEST_CACHE=cache()))
    report.add("build", int(status == 0), int(status != 0), 0, seconds,
               "" if status == 0 else f"agents: {text}")


def stage_all(report, stage, suites):
    """Builds and copies what the jobs use to a place that every user can read."""
    many = ["release"] if suites is QUICK else ["release", "asan"]
    kinds = (many if set(suites) - {"torture"} else []) + \
        (["faults"] if "torture" in suites else [])
    # At once: each begins and ends with work for one processor.
    with crew(len(kinds) + 2) as pool:
        builds = {kind: pool.submit(build, report, kind, "tests") for kind in kinds}
        others = [pool.submit(build_probe, report, stage)]
        if "agents" in suites:
            others.append(pool.submit(fetch_agent, report))
    dirs = {kind: f.result() for kind, f in builds.items()}
    for f in others:
        f.result()
    if "torture" in suites:
        if dirs["faults"]:
            os.makedirs(f"{stage}/faults")
            for program in ("tests/torture/torture", "stet", "stet-text"):
                shutil.copy2(f"{dirs['faults']}/{program}", f"{stage}/faults")
        shutil.copytree(f"{ROOT}/src", f"{stage}/source/src")
    for kind, d in dirs.items():
        if d and kind != "faults":
            os.makedirs(f"{stage}/{kind}")
            for program in ("stet", "stet-text"):
                shutil.copy2(f"{d}/{program}", f"{stage}/{kind}")
    shutil.copytree(TESTS, f"{stage}/tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(f"{ROOT}/policy", f"{stage}/policy")
    os.makedirs(f"{stage}/build-aux")
    for f in glob.glob(f"{ROOT}/build-aux/*"):
        shutil.copy2(f, f"{stage}/build-aux")
    return dirs


def cache():
    """Where downloaded test material is kept between runs; every user can read it."""
    if "STET_TEST_CACHE" in os.environ:
        return os.environ["STET_TEST_CACHE"]
    if os.geteuid() == 0:
        return "/var/cache/stet-test"
    return os.path.expanduser("~/.cache/stet-test")


def job_env(who, home, kind, stage):
    keep = ("PATH", "LANG", "LC_ALL", "TERM", "CI", "STET_LONG")
    env = {k: os.environ[k] for k in keep if k in os.environ}
    env.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    env.update(HOME=home, TMPDIR=home, USER=who.name, LOGNAME=who.name,
               PYTHONDONTWRITEBYTECODE="1", STET_BIN=f"{stage}/{kind}/stet",
               STET_LIBEXEC=f"{stage}/{kind}", STET_PROBE=f"{stage}/probe", STET_BUILD=kind, STET_SOURCE=stage,
               STET_TEST_CACHE=cache())
    # Inside a PID namespace the leak checker cannot stop its threads; unit tests have it.
    # Undefined behaviour is a trap in this build.
    env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1:disable_coredump=0:" \
        f"handle_sigill=1{BRIEF}"
    env["UBSAN_OPTIONS"] = "halt_on_error=1:abort_on_error=1:print_stacktrace=1"
    return env


def tap(text, status):
    """(passed, failed) of a cmocka program's TAP output."""
    passed = len(re.findall(r"^ok \d+ - ", text, re.M))
    failed = len(re.findall(r"^not ok \d+", text, re.M))
    failed += len(re.findall(r"^ok \d+ # SKIP", text, re.M | re.I))
    planned = sum(int(n) for n in re.findall(r"^1\.\.(\d+)", text, re.M))
    if planned > passed + failed:
        failed = planned - passed
    if status != 0 and failed == 0:
        failed = 1
    if passed + failed == 0:
        failed = 1
    return passed, failed


def unit_job(report, suite, exe, env, who, cwd):
    env = dict(env, CMOCKA_MESSAGE_OUTPUT="TAP")
    env["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=1:handle_sigill=1"
    status, text, seconds = run([exe], env, who, cwd)
    passed, failed = tap(text, status)
    name = os.path.basename(exe)
    if status is None:
        text += "\nnot tried again: it hung"
    elif failed:
        print(f"{suite}: {name}: tried again\n{shortened(text, 60)}", flush=True)
        status, text, more = run([exe], env, who, cwd)
        passed, failed = tap(text, status)
        seconds += more
    report.add(suite, passed, failed, 0, seconds,
               f"{name} (status {status}):\n{text}" if failed else "")


def unit_programs(dirs):
    """Paths of the unit tests by build, as meson knows them. The build with fault points is for
    torture."""
    found = {}
    for kind, d in dirs.items():
        if not d or kind == "faults":
            continue
        text = subprocess.run(["meson", "introspect", "--tests", d], check=True,
                              stdout=subprocess.PIPE).stdout
        found[kind] = [t["cmd"][0] for t in json.loads(text)]
    return found


def xml_failed(path):
    """Names of the tests that failed in a junit file."""
    return [c.get("name") for c in ElementTree.parse(path).iter("testcase")
            if c.find("failure") is not None or c.find("error") is not None]


def xml_hung(path):
    """Names of the tests in which a program did not end, as conftest.py marks them."""
    return [c.get("name") for c in ElementTree.parse(path).iter("testcase")
            if any(p.get("name") == "hung" for p in c.iter("property"))]


def xml_count(path):
    """(passed, failed, impossible, remarks) of a junit file."""
    passed = failed = impossible = 0
    remarks = []
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skipped is None:
            passed += 1
        elif re.search(r"\bimpossible here:", skipped.get("message", "")):
            impossible += 1
        else:
            failed += 1
            remarks.append(f"skipped {case.get('name')}: {skipped.get('message')}")
    return passed, failed, impossible, "\n".join(remarks)


def in_mounts(base, who, needs):
    """Before a command: with mounts for it alone, in a mount namespace of its own; there it
    drops to `who`."""
    return ["unshare", "--mount", "--propagation", "private", "/usr/bin/python3",
            os.path.join(TESTS, "lib", "mounts.py"), base, who.name, needs]


def pytest_job(report, suite, file, env, who, base, extra, only=None):
    xml = f"{base}/result.xml"
    person = who
    argv = ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short",
            "--no-header", "-o", "junit_family=xunit1", f"--basetemp={base}/t",
            f"--junitxml={xml}", f"--rootdir={os.path.dirname(os.path.dirname(file))}",
            *([f"{file}::{name}" for name in only] if only else [file])] + extra
    with open(file, encoding="utf-8") as f:
        needs = MARK.search(f.read())
    if needs and os.geteuid() == 0:
        argv = in_mounts(base, who, needs.group(1)) + argv
        who = None
    longer = suite.split("/")[0] in LONGER
    status, text, seconds = run(argv, env, who, base,
                                PROGRAM_SECONDS if longer else JOB_SECONDS)
    name = os.path.basename(file)
    if status == 5 and extra:
        return
    try:
        passed, failed, impossible, remarks = xml_count(xml)
    except (OSError, ElementTree.ParseError):
        passed, failed, impossible, remarks = 0, 1, 0, "it ended without a result"
    if status is None:
        failed, remarks = max(failed, 1), "time limit reached"
    elif status != 0 and failed == 0:
        failed = 1
    elif failed and not remarks and only is None:
        hung = xml_hung(xml)
        rest = [n for n in xml_failed(xml) if n not in hung]
        if hung:
            # A minute is enough beside others, too; a deadlock would pass the next time.
            remarks = f"not tried again, a program hung: {', '.join(hung)}"
        if rest:
            # Others were at work, too: what also fails without them has failed.
            report.again.append((suite, file, env, person, rest, text))
        failed = len(hung)
    report.add(suite, passed, failed, impossible, seconds,
               f"{name} (status {status})\n{text}\n{remarks}" if failed else "")
    report.tell(text)


# So many tests may fail for want of time; more are no accident.
ACCIDENTS = 12


def try_again(report, places):
    """Tests that failed while others ran, once more, one after the other."""
    many = sum(len(names) for *_, names, _ in report.again) > ACCIDENTS
    for suite, file, env, who, names, text in report.again:
        if many:
            report.add(suite, 0, len(names), 0, 0, text)
            continue
        env = dict(env, ASAN_OPTIONS=env["ASAN_OPTIONS"].replace(BRIEF, ""))
        pytest_job(report, suite, file, env, who, places.new(who), [], names)
        print(f"{suite}: tried again, alone: {', '.join(names)}\n{shortened(text, 60)}",
              flush=True)


def program_job(report, suite, argv, env, who=None):
    """A program that counts for itself: its last line is `N passed, N failed`."""
    full = env.get("STET_TORTURE") == "full"
    status, text, seconds = run(argv, env, who, seconds=FULL_SECONDS if full else PROGRAM_SECONDS)
    count = re.search(r"^(\d+) passed, (\d+) failed$", text, re.M)
    passed, failed = map(int, count.groups()) if count else (0, 1)
    if status != 0 and failed == 0:
        failed = 1
    report.add(suite, passed, failed, 0, seconds,
               f"status {status}\n{text}" if failed else "")


class Places:
    """Directories for jobs, in the home of whoever runs them: projects lie in homes."""

    def __init__(self, people):
        self.base = {}
        self.n = 0
        self.removals = []
        for who in people:
            d = tempfile.mkdtemp(prefix="stet-test-", dir=who.home)
            os.chown(d, who.uid, who.gid)
            self.base[who.name] = d

    def new(self, who):
        self.n += 1
        d = f"{self.base[who.name]}/j{self.n}"
        os.mkdir(d, 0o755)
        os.chown(d, who.uid, who.gid)
        return d

    def tidy(self, done):
        """Begins with the removal: there are hundreds of thousands of files."""
        for base in self.base.values():
            mine = [d for d in done if d.startswith(f"{base}/")]
            self.removals += [begin_removal(mine)] if mine else []

    def remove(self, *others):
        for p in self.removals:
            p.wait()
        for p in [begin_removal([d]) for d in (*self.base.values(), *others)]:
            p.wait()


def begin_removal(trees):
    may = "" if os.geteuid() == 0 else 'chmod -R u+rwX "$@" 2>/dev/null;'
    return subprocess.Popen(["nice", "-n", "19", "sh", "-c", f'{may} exec rm -rf "$@"', "sh",
                             *trees])


def matrix_job(report, stage, who, base):
    """As root on file systems of its own, as a user at home."""
    env = job_env(who, base, "release", stage)
    env.update((n, os.environ[n]) for n in ("STET_MATRIX", "STET_MATRIX_SEED", "STET_MATRIX_CELL")
               if n in os.environ)
    argv = [f"{stage}/tests/matrix/run"]
    if who.uid == 0:
        argv = in_mounts(base, who, "ext4 xfs btrfs") + argv
    return program_job, report, f"matrix/{who.label}", argv, env, who


def is_wanted(suites, variant):
    """Is a (suite, build, user) part of what was asked for?"""
    if variant in SANITIZED:
        return "sanitized" in suites or variant[0] in suites and suites is not EVERYTHING
    return variant[0] in suites and variant not in LEFT_OUT


def plan(report, suites, people, stage, dirs, places, extra):
    """The jobs, (function, arguments...): long ones first, a hundred short ones at the end."""
    jobs = []
    if "build" in suites:
        jobs.append((build, report, "clang", "tests"))
    if "meta" in suites:
        who = people[0]
        for file in sorted(glob.glob(f"{TESTS}/meta/test_*.py")):
            d = places.new(who)
            env = job_env(who, d, "release", stage)
            env["STET_SOURCE"] = ROOT
            jobs.append((pytest_job, report, "meta", file, env, who, d, extra))
    if "powercut" in suites and not extra and os.geteuid() == 0 and dirs.get("release"):
        root = next(who for who in people if who.uid == 0)
        env = job_env(root, places.new(root), "release", stage)
        for name in ("STET_POWERCUT", "STET_POWERCUT_SEED"):
            if name in os.environ:
                env[name] = os.environ[name]
        jobs.append((program_job, report, "powercut", [f"{stage}/tests/powercut/run"], env))
    if "matrix" in suites and not extra and dirs.get("release"):
        jobs += [matrix_job(report, stage, who, places.new(who)) for who in people]
    if "torture" in suites and not extra and dirs.get("faults"):
        for who in people:
            env = job_env(who, places.new(who), "faults", stage)
            env["STET_SOURCE"] = f"{stage}/source"
            for name in ("STET_TORTURE", "STET_TORTURE_DIR", "STET_TORTURE_KEEP"):
                if name in os.environ:
                    env[name] = os.environ[name]
            if suites is QUICK:
                env["STET_TORTURE"] = "quick"
            jobs.append((program_job, report, f"torture/{who.label}",
                         [f"{stage}/tests/torture/run", f"{stage}/faults/torture"], env, who))
    for name in PYTEST_SUITES[::-1]:
        for file in sorted(glob.glob(f"{stage}/tests/{name}/test_*.py")):
            with open(file, encoding="utf-8") as f:
                text = f.read()
            apart = suites is EVERYTHING and LONG.search(text)
            kinds = ("release",) if apart or NO_STET.search(text) else ("asan", "release")
            for who in people:
                for kind in kinds:
                    if not dirs.get(kind) or not is_wanted(suites, (name, kind, who.label)):
                        continue
                    suite = f"{name}/{kind}/{who.label}"
                    d = places.new(who)
                    env = job_env(who, d, kind, stage)
                    jobs.append((pytest_job, report, suite, file, env, who, d, extra))
    if "unit" in suites and not extra:
        for kind, programs in unit_programs(dirs).items():
            for exe in programs:
                name = os.path.basename(exe)
                # The policy's rows are data, and are counted apart from the unit tests.
                suite = "policy" if name.startswith("test_policy_") else "unit"
                copy = f"{stage}/{kind}/{name}"
                shutil.copy2(exe, copy)
                for who in people:
                    # Some change to another user on the way: not in root's home.
                    d = f"{stage}/unit/{len(jobs)}"
                    os.makedirs(d, 0o755)
                    os.chown(d, who.uid, who.gid)
                    jobs.append((unit_job, report, f"{suite}/{kind}/{who.label}", copy,
                                 job_env(who, d, kind, stage), who, d))
    return jobs


# Of the processors' time: with more than that left there is room for another job.
IDLE = 0.08


class Idleness:
    """How much of the processors' time nobody had a use for."""

    LEAST = 0.5  # seconds: in less, the kernel's ticks say nothing

    def __init__(self):
        self.begin()

    def begin(self):
        """What is asked for later begins now."""
        self.at = time.monotonic()
        self.idle, self.all = self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            times = [int(n) for n in f.readline().split()[1:9]]
        return times[3] + times[4], sum(times)

    def share(self):
        """Since the beginning, and begins again; 0 if that is hardly any time."""
        if time.monotonic() - self.at < self.LEAST:
            return 0
        idle, total = self.idle, self.all
        self.begin()
        return (self.idle - idle) / max(1, self.all - total)


def tidy(report, jobs, places):
    """What these jobs have left, but for those that will be tried again."""
    needed = {env["HOME"] for _, _, env, *_ in report.again}
    places.tidy({job[4]["HOME"] for job in jobs if job[0] is pytest_job} - needed)


def work_off(report, jobs, places):
    """Runs the jobs: three per processor, and more while those leave processors idle.

    Many wait for terminals, timers and disks most of the time, others compute all of it, and
    each does only one thing at a time.
    When the last ones run there is time to tidy up after the others: before, it would cost
    them more than it saves.
    """
    least, most = 3 * (os.cpu_count() or 1), 8 * (os.cpu_count() or 1)
    with crew(most) as pool:
        running, begun, idleness = set(), {}, Idleness()
        for job in jobs:
            room = len(running) < least
            while not room:
                done, running = wait(running, idleness.LEAST, FIRST_COMPLETED)
                for f in done:
                    f.result()
                room = len(running) < least or len(running) < most and idleness.share() > IDLE
            future = pool.submit(*job)
            running.add(future)
            begun[future] = job
            idleness.begin()
        tidy(report, [job for f, job in begun.items() if f not in running], places)
        for f in running:
            f.result()


def main(argv):
    extra = []
    if "--" in argv:
        i = argv.index("--")
        argv, extra = argv[:i], argv[i + 1:]
    if argv != ["quick"] and any(a not in SUITES for a in argv):
        print(f"usage: tests/run [{'|'.join(SUITES)}]... [-- PYTEST-ARGUMENT...]\n"
              "       tests/run quick", file=sys.stderr)
        return 2
    suites = QUICK if argv == ["quick"] else argv or EVERYTHING
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A shell starts its background jobs with these ignored, nohup with the last, and so would be
    # all that we start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    report = Report()
    with identities(alone=suites is QUICK) as people:
        # Not in /tmp or /var/tmp, which sandboxes have for themselves.
        stage = tempfile.mkdtemp(prefix="stet-stage-",
                                 dir="/var/lib" if os.geteuid() == 0 else people[0].home)
        os.chmod(stage, 0o755)
        places = Places(people)
        try:
            dirs = stage_all(report, stage, suites)
            jobs = plan(report, suites, people, stage, dirs, places, extra)
            work_off(report, jobs, places)
            try_again(report, places)
        finally:
            places.remove(stage)
    for suite in sorted(report.suites):
        report.line(suite)
    passed, failed = report.total()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
