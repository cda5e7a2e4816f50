# SPDX-License-Identifier: Apache-2.0
"""What the policy costs: a tool call as a transaction, an exec, a build, a verdict.

Compared with what people use otherwise: a hook in Python that knows some patterns, and
strace, which sees every exec and decides nothing.
"""
import json
import os
import statistics

from measure import Samples, rounds
from rows import COMPILED, FASTER, SLOWER, Bar

HOOK = r"""import json, re, sys
PATTERNS = [re.compile(p) for p in [
    r"rm\s+-rf?\s+/", r"rm\s+-rf?\s+~", r"mkfs", r"dd\s+.*of=/dev/", r":\(\)\s*\{",
    r"git\s+push\s+.*(-f|--force)", r"git\s+reset\s+--hard", r"git\s+clean\s+-[a-z]*f",
    r"chmod\s+-R\s+777", r"curl.*\|\s*(ba)?sh", r"wget.*\|\s*(ba)?sh", r"npm\s+publish",
    r"terraform\s+destroy", r"kubectl\s+delete", r"aws\s+.*delete", r"drop\s+table",
    r"shutdown|reboot|halt", r">\s*/dev/sd", r"sudo\s", r"docker\s+system\s+prune"]]
text = json.loads(sys.stdin.read())["tool_input"]["command"]
for p in PATTERNS:
    if p.search(text):
        print(json.dumps({"decision": "block", "reason": p.pattern}))
        break
"""
COMMAND = "cd src && make -j2 && git add -A && git commit -m 'x' && ls -la | grep foo > out.txt"


def more(s, name, a, b, per=1):
    """Readings of a, less the median of b, for each of `per`."""
    if a in s.ns and b in s.ns:
        low = statistics.median(s.ns[b])
        s.ns[name] = [max(x - low, 0) / per for x in s.ns[a]]


class ExecCall:
    name, title = "exec", "a tool call as one transaction: `stet exec`"

    def goals(self):
        return [Bar("true: at most 25 ms more", "stet exec, more than true", None, SLOWER, 25.0),
                Bar("with a commit: a fiftieth of 1.8 s", "stet exec, more than touch", None,
                    SLOWER, 36.0)]

    def run(self, b):
        tree = b.files(10)
        ways = {"true": ["true"], "stet exec true": ["stet", "exec", "--quiet", "--", "true"],
                "touch": ["touch", "new"],
                "stet exec touch": ["stet", "exec", "--quiet", "--", "touch", "new"]}

        def once(way):
            if "touch" in way and os.path.exists(f"{tree}/new"):
                os.unlink(f"{tree}/new")
            return b.time(ways[way], tree)

        s = rounds(ways, b.reps(40), Samples(), once, b.order)
        more(s, "stet exec, more than true", "stet exec true", "true")
        more(s, "stet exec, more than touch", "stet exec touch", "touch")
        return s


class GateCost:
    name, title = "gate", "an exec under the gate"

    def goals(self):
        return [Bar("per exec: at most 0.25 ms", "gate, per exec", None, SLOWER, 0.25),
                Bar("not slower than strace", "gate, per exec", "strace, per exec", SLOWER, 1.0)]

    def run(self, b):
        tree, n = b.files(10), b.size(500)
        work = ["sh", "-c", f"i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i+1)); done"]
        run = ["stet", "run", "--quiet"]
        ways = {"native": work, "stet, no policy": [*run, "--no-policy", "--", *work],
                "stet": [*run, "--", *work],
                "strace": ["strace", "-f", "-qq", "-e", "trace=execve", "-o", "/dev/null", *work]}
        s = rounds(ways, b.reps(15), Samples(), lambda w: b.time(ways[w], tree), b.order)
        more(s, "gate, per exec", "stet", "stet, no policy", n)
        more(s, "strace, per exec", "strace", "native", n)
        return s


class MakeGate:
    name, title, full_only = "make-gate", "make -j2 of six rooms of stet under the gate", True

    def goals(self):
        return [Bar("within 5 % of native", "stet", "native", SLOWER, 1.05),
                Bar("against strace", "strace", "stet", FASTER, 1.0)]

    def build(self, b, d):
        b.do(["cp", "-a", f"{b.place.base}/src", d], d)
        with open(f"{d}/Makefile", "w", encoding="utf-8") as f:
            f.write("SRC := $(shell find " + " ".join(f"src/{r}" for r in COMPILED) +
                    " -name '*.c')\n"
                    "OBJ := $(SRC:%.c=obj/%.o)\n"
                    "all: $(OBJ)\n"
                    "obj/%.o: %.c\n\t@mkdir -p $(dir $@)\n"
                    "\t@gcc -std=gnu17 -D_GNU_SOURCE -DSTET_VERSION='\"0\"' -iquote src -O1 "
                    "-c $< -o $@\n")

    def run(self, b):
        tree = b.tree(self.name, lambda d: self.build(b, d))
        work = ["make", "-s", "-j2"]
        ways = {"native": work, "stet": ["stet", "run", "--quiet", "--on-success", "rollback",
                                         "--", *work],
                "strace": ["strace", "-f", "-qq", "-e", "trace=execve", "-o", "/dev/null", *work]}

        def once(way):
            try:
                return b.time(ways[way], tree)
            finally:
                b.place.throw(f"{tree}/obj")

        s = rounds(ways, b.reps(5), Samples(), once, b.order)
        b.place.throw(tree)
        return s


class Check:
    name, title = "policy-check", "a verdict on a shell text, 1,000 rules more"

    def goals(self):
        return [Bar("one command judged in less than 0.3 ms", "judging", None, SLOWER, 0.3),
                Bar("against a hook in Python", "python hook", "stet policy check", FASTER, 1.0)]

    def run(self, b):
        tree, s = b.files(10), Samples()
        rules, hook = f"{b.place.home}/.config/stet/policy.yaml", f"{b.place.scratch}/hook.py"
        os.makedirs(os.path.dirname(rules), exist_ok=True)
        with open(rules + ".off", "w", encoding="utf-8") as f:
            f.write("version: 1\nrules:\n")
            for i in range(1000):
                f.write(f"  - {{id: r{i}, verdict: deny, program: [tool{i}, \"x{i}*\"], "
                        f"options: [\"-f|--force\"], paths: {{outside: [$WORKSPACE]}}, "
                        "why: a test}\n")
        with open(hook, "w", encoding="utf-8") as f:
            f.write(HOOK)
        ask = json.dumps({"tool_input": {"command": COMMAND}}).replace("'", "'\\''")
        check = ["stet", "policy", "check", "--json", "--", COMMAND]
        ways = {"stet policy check": check,
                "python hook": ["sh", "-c", f"echo '{ask}' | /usr/bin/python3 {hook}"]}
        rounds(ways, b.reps(30), s, lambda w: b.time(ways[w], tree), b.order)
        # In a process that has just begun: nothing is in its caches yet.
        os.rename(rules + ".off", rules)
        try:
            one = [*check[:-1], "git commit -m message"]
            for _ in range(b.reps(30)):
                s.add("judging", json.loads(b.do(one, tree))["judge_us"] * 1000)
        finally:
            os.unlink(rules)
        return s


POLICY_ROWS = [ExecCall(), GateCost(), MakeGate(), Check()]
