# SPDX-License-Identifier: Apache-2.0
"""Without stet the script does what it says: the tests in test_qwen.py rest on that."""
import os
import subprocess

from qwenlib import LIMIT, agent_env, the_commands_saw, the_model_was_told

WITHOUT_STET = True


def test_agent_alone_is_destructive(qwen, server, project, home):
    env = {k: v for k, v in agent_env(server).items() if v is not None}
    env["QWEN_CODE_NO_RELAUNCH"] = "true"  # it would start itself again, with other limits
    subprocess.run([qwen, "-p", "go", "--yolo", "--auth-type", "openai"], cwd=project,
                   env=dict(env, HOME=str(home), PATH="/usr/local/bin:/usr/bin:/bin"),
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                   timeout=LIMIT, check=True)
    the_model_was_told(server)
    assert not os.path.exists(project / "src")
    assert (project / "README.md").read_text() == "gone\n"
    the_commands_saw((project / "said").read_text())
