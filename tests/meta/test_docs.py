# SPDX-License-Identifier: Apache-2.0
"""Every verb and option is documented where people look."""
import glob
import importlib
import json
import os
import re
import subprocess

import pytest
from source import ROOT, files, read


def table():
    """The verb table as the program itself tells it."""
    r = subprocess.run([os.environ["STET_BIN"], "help", "--json"], check=True,
                       stdout=subprocess.PIPE)
    return json.loads(r.stdout)["verbs"]


def manual():
    """The pages as they are installed: the program writes them itself."""
    pages = [subprocess.run([os.environ["STET_BIN"], "help", "--man", *verb], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
             for verb in [[], *([v["name"]] for v in table())]]
    # Roff escapes hyphens; documentation is compared without that.
    return "\n".join(pages).replace("\\", "")


def test_the_table_is_whole():
    names = {v["name"] for v in table()}
    assert {"run", "list", "status", "diff", "rollback", "explore", "prune", "doctor",
            "version", "help"} <= names


def test_every_verb_is_in_the_readme():
    text = read("README.md")
    assert [v["name"] for v in table() if not re.search(rf"\bstet {v['name']}\b", text)] == []


def test_every_verb_is_in_the_manual():
    text = manual()
    assert [v["name"] for v in table() if not re.search(rf"\b{v['name']}\b", text)] == []


def test_every_option_is_in_the_manual():
    text = manual()
    missing = [f"{v['name']} --{o['name']}" for v in table() for o in v.get("options", [])
               if f"--{o['name']}" not in text]
    assert not missing


def test_every_verb_has_help():
    for v in table():
        r = subprocess.run([os.environ["STET_BIN"], v["name"], "--help"], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert r.returncode == 0, (v["name"], r.stdout)
        assert v["name"] in r.stdout
        for o in v.get("options", []):
            assert f"--{o['name']}" in r.stdout, (v["name"], o["name"])


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "CONTRIBUTING.md", "LICENSE",
                                  "docs/ARCHITECTURE.md", "src/LAYERS"])
def test_page_is_there(page):
    assert os.path.getsize(os.path.join(ROOT, page)) > 100


# What the pages write about: the project's, a room's, and a test file's alone.
PLACES = ("", "src/", "src/*/", "docs/", "tests/*/")


def test_named_files_are_there():
    """A path that a page names in `…` exists; one without a directory is in the room spoken of."""
    tops = {d for d in os.listdir(ROOT) if os.path.isdir(os.path.join(ROOT, d))}
    tops |= {os.path.basename(d) for d in glob.glob(os.path.join(ROOT, "src", "*"))}
    broken, seen = [], 0
    for page in files(".", suffixes=(".md",)):
        for word in re.findall(r"`([\w.*/+-]+)`", read(page)):
            path = word.rstrip("/")
            ours = path.split("/")[0] in tops and "/" in path
            if not (ours or re.fullmatch(r"test_\w+(\.\w+)?|\w+\.[ch]", path)):
                continue
            if "NAME" in path or path.startswith("build/"):
                continue
            seen += 1
            names = [path] if "." in os.path.basename(path) or ours else [path + ".*"]
            if not any(glob.glob(os.path.join(ROOT, place + name))
                       for place in PLACES for name in names):
                broken.append(f"{page}: {word}")
    assert not broken
    assert seen > 50


def test_links_lead_somewhere():
    broken = []
    for page in files(".", suffixes=(".md",)):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target)):
                broken.append(f"{page}: {target}")
    assert not broken


@pytest.fixture(name="bench_report")
def fixture_bench_report(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "bench", "lib"))
    return importlib.import_module("report")


def test_benchmark_results_begin_with_tables():
    heads = re.findall(r"^## (.*)", read("bench/RESULTS.md"), re.M)
    assert heads[:2] == ["Machine", "Bars"] and heads[-1] == "Discussion"
    before = read("bench/RESULTS.md").split("## Machine")[0]
    assert len(before.split()) < 50


def test_a_new_benchmark_keeps_what_was_written_by_hand(bench_report):
    page = read("bench/RESULTS.md")
    again = bench_report.render([], {}, {"kernel": "x"}, False, page)
    for heading in (bench_report.FURTHER, bench_report.FINDINGS):
        assert len(bench_report.section(page, heading).splitlines()) > 5
        assert bench_report.section(again, heading) == bench_report.section(page, heading)
    places = [again.index(h) for h in ("## Bars", bench_report.FURTHER, "## Discussion",
                                       bench_report.FINDINGS)]
    assert places == sorted(places)
    assert "Discussion" in bench_report.render([], {}, {"kernel": "x"}, False)
