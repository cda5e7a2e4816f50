# SPDX-License-Identifier: Apache-2.0
"""stet policy and stet allow: verdicts, layers, and what is refused."""
import json

import pytest

RULE = "version: 1\nrules:\n  - {id: no.make, verdict: deny, why: not here, program: [make]}\n"


def user_policy(home, text):
    config = home / ".config" / "stet"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text(text)
    return config / "policy.yaml"


def check(stet, work, *command):
    r = stet("policy", "check", "--json", "--", *command, cwd=work)
    return r.rc, json.loads(r.out)


@pytest.mark.parametrize("command,verdict,rule,rc", [
    (["ls -l"], "allow", None, 0),
    (["rm -rf build"], "checkpoint", "rm.any", 0),
    (['rm -rf "$X"'], "defer", "rm.outside", 0),
    (["git push -f"], "ask", "git.push.force", 2),
    (["ls; rm -rf /etc"], "deny", "rm.outside", 2),
    (["rm", "-rf", "/etc"], "deny", "rm.outside", 2),
    (["echo", "rm -rf /etc"], "allow", None, 0),
    (["rm", "-rf", "$X"], "checkpoint", "rm.any", 0),
    (["bash x.sh"], "defer", None, 0),
    (["bash", "x.sh"], "defer", None, 0),
    (["$X a"], "defer", None, 0),
    (["xargs", "rm"], "defer", "rm.outside", 0),
    (["make; rm -rf /etc"], "deny", "rm.outside", 2),
])
def test_verdicts(stet, work, command, verdict, rule, rc):
    got, o = check(stet, work, *command)
    assert (got, o["verdict"], o["rule"]) == (rc, verdict, rule)
    assert len(o["policy"]) == 64


def test_place_and_words(stet, work):
    r = stet("policy", "check", "ls; rm -rf /etc", cwd=work)
    assert r.rc == 2
    assert r.out.startswith("deny by rm.outside\n")
    assert "  where rm -rf /etc\n" in r.out
    _, o = check(stet, work, "ls; rm -rf /etc")
    assert "ls; rm -rf /etc"[o["from"]:o["to"]] == "rm -rf /etc"


def test_users_layer(stet, work, home):
    before = check(stet, work, "make")[1]["policy"]
    user_policy(home, RULE + "off: [git.push.force]\n")
    rc, o = check(stet, work, "make")
    assert (rc, o["rule"], o["why"]) == (2, "no.make", "not here")
    assert o["policy"] != before
    assert check(stet, work, "git push -f")[0] == 0
    shown = stet("policy", "show", "--json", cwd=work).json()
    origins = {r["id"]: (r["origin"], r["off"]) for r in shown["rules"]}
    assert origins["no.make"] == ("user", False)
    assert origins["git.push.force"] == ("built-in", True)


def test_bad_policy_stops_everything(stet, work, home):
    path = user_policy(home, "version: 1\nrulez: []\n")
    message = f"{path}:2: Unexpected key: rulez"
    r = stet("policy", "check", "ls", cwd=work)
    assert r.rc == 1 and message in r.err
    r = stet.run("touch", "x", cwd=work)
    assert r.rc == 125 and message in r.err
    assert not (work / "x").exists()


def test_what_cannot_be_a_policy_stops_everything(stet, work, home):
    path = user_policy(home, "version: 1\n")
    path.unlink()
    path.symlink_to(home / "not-there")
    r = stet.run("touch", "x", cwd=work)
    assert r.rc == 125 and f"{path}:1: a link that leads nowhere" in r.err
    path.unlink()
    path.write_bytes(b"#" * 10_000_000 + b"\nversion: 1\n")
    r = stet.run("touch", "x", cwd=work)
    assert r.rc == 125 and f"{path}:1: larger than 8 MiB" in r.err
    path.unlink()
    (work / ".stet.yaml").symlink_to("/etc/hostname")
    r = stet.run("touch", "x", cwd=work)
    assert r.rc == 125 and f"{work}/.stet.yaml:1: not a regular file" in r.err
    assert not (work / "x").exists()


def test_project_waits_for_a_person(stet, work):
    (work / ".stet.yaml").write_text(RULE)
    assert check(stet, work, "make")[0] == 0
    assert stet("policy", "show", "--json", cwd=work).json()["project"] == "waiting"
    assert stet("allow", cwd=work).ok().out.endswith("is in force, as it is now\n")
    assert check(stet, work, "make")[0] == 2
    # Another directory with the same text is another project.
    other = work / "other"
    other.mkdir()
    (other / ".stet.yaml").write_text(RULE)
    assert check(stet, other, "make")[0] == 0
    (work / ".stet.yaml").write_text(RULE + "# changed\n")
    assert check(stet, work, "make")[0] == 0
    for words in (["policy", "check", "make"], ["policy", "show"]):
        r = stet(*words, cwd=work).ok()
        assert r.err == "stet: this project's .stet.yaml has changed: it is not in force; " \
            "read it, then: stet allow\n"
        o = stet(*words[:2], "--json", *words[2:], cwd=work).ok().json()
        assert o["project_policy"] == "changed"
        r = stet(*words, cwd=other).ok()
        assert ".stet.yaml is not allowed yet: it is not in force" in r.err
        assert stet(*words, cwd=work.parent).ok().err == ""
    assert stet("policy", "show", "--json", cwd=work).json()["project"] == "changed"
    assert stet("allow", "--json", cwd=work).json()["allowed"]
    assert check(stet, work, "make")[0] == 2
    stet("allow", "--revoke", cwd=work).ok()
    assert check(stet, work, "make")[0] == 0


def test_project_may_only_tighten(stet, work):
    (work / ".stet.yaml").write_text("version: 1\noff: [rm.outside]\n")
    r = stet("allow", cwd=work)
    assert r.rc == 1 and ".stet.yaml:2: a project may only tighten" in r.err
    assert check(stet, work, "rm -rf /etc")[0] == 2


def test_allow_needs_a_file(stet, work):
    r = stet("allow", cwd=work)
    assert r.rc == 4 and "there is none" in r.err
    (work / ".stet.yaml").symlink_to("/etc/passwd")
    r = stet("allow", cwd=work)
    assert r.rc == 1 and "not a regular file" in r.err


def test_tests_of_the_rules(stet, work):
    o = stet("policy", "test", "--json", cwd=work).ok().json()
    assert o["run"] > 400 and o["failed"] == 0
    file = work / "mine.yaml"
    file.write_text(RULE.replace("[make]", "[make], tests: {deny: [make all]}"))
    assert stet("policy", "test", "mine.yaml", cwd=work).ok().out == "1 tests, 0 failed\n"
    file.write_text(RULE.replace("[make]", "[make], tests: {allow: [make all]}"))
    r = stet("policy", "test", "mine.yaml", cwd=work)
    assert r.rc == 1 and "mine.yaml:3: rule no.make: its test 'make all' is deny" in r.err
    assert stet("policy", "test", "missing.yaml", cwd=work).rc == 6


def test_explain(stet, work):
    r = stet("policy", "explain", "rm.outside", cwd=work).ok()
    assert r.out.startswith("# built-in\n") and "verdict: deny" in r.out
    r = stet("policy", "explain", "no.such", cwd=work)
    assert r.rc == 1 and "see: stet policy show" in r.err


def test_run_follows_it(stet, work, home):
    user_policy(home, RULE)
    r = stet.run("sh", "-c", "make --version; echo went on", cwd=work)
    assert "no.make" in r.err
    stet.run("sh", "-c", "touch made", cwd=work).ok()
    assert stet("status", "--json", cwd=work).json()["txn"]["policy"]


def test_nearly_a_name(stet, work):
    r = stet("policy", "chekc", "x", cwd=work).ok(1)
    assert "did you mean: stet policy check" in r.err


def test_help_of_two_words(stet):
    assert stet("help", "policy", "check").ok().out == stet("policy", "check", "--help").ok().out
