# SPDX-License-Identifier: Apache-2.0
"""The agent's tests have this in common: a project, what destroys it, and how that looks."""
PROJECT = {
    "README.md": "# demo\n",
    "Makefile": "all:\n\tcc -o demo src/main.c src/util.c\n",
    "src": {"main.c": "int main(void) { return 0; }\n", "util.c": "int x;\n",
            "deep": {"data.bin": bytes(range(256)) * 16}},
    "docs": {"guide.md": "guide\n", "latest": ("link", "guide.md")},
}
# What a careless model does on a bad day. The agent may lose the end of a command's output
# (its terminal is closed before it has read all), so what each command saw is in a file too.
SCRIPT = [
    "rm -rf src && echo gone > README.md && echo first-done >> said",
    "mv docs papers && chmod 600 Makefile && echo junk > new.txt && echo second-done >> said",
    "find . -type f -not -path './.git/*' | sort >> said; cat README.md >> said; "
    "test ! -e src && echo third-done >> said; cat said",
]
SAID = ["first-done", "second-done", "./Makefile", "./README.md", "./new.txt",
        "./papers/guide.md", "./said", "gone", "third-done"]
LIMIT = 180  # seconds; a run takes ten on a quiet machine


def agent_env(server):
    """Nothing of the outside world: a proxy would swallow the requests to loopback."""
    return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_MODEL": "mock", "SHELL": "/bin/bash", "NO_COLOR": None,
            "TERM": "xterm-256color"}


def the_model_was_told(server):
    """All of the script ran, in order, each of its commands with success."""
    results = server.results()
    assert len(results) == len(SCRIPT), server.requests
    for command, result in zip(SCRIPT, results):
        assert command in result and "Exit Code: 0" in result, result


def the_commands_saw(text):
    """The third command saw what the first two had done."""
    assert text.split("\n") == SAID + [""], text
