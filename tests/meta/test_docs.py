# SPDX-License-Identifier: Apache-2.0
"""Every verb and option is documented where people look."""
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


def test_links_lead_somewhere():
    broken = []
    for page in files(".", suffixes=(".md",)):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target)):
                broken.append(f"{page}: {target}")
    assert not broken
