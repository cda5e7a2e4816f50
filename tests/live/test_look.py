# SPDX-License-Identifier: Apache-2.0
"""Changes that deserve a look: what acts later, outside of the workspace."""
import os

import pytest
from stetlib import make_tree

LOOK = {
    "shells": """.bashrc .bash_profile .bash_login .bash_logout .profile .bash_aliases .aliases .zshrc .zshenv
        .zprofile .zlogin .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .xsession .xsessionrc
        .Xresources .Xdefaults .pam_environment .config/environment.d/10.conf .config/fish/config.fish
        .config/fish/conf.d/a.fish .config/nushell/env.nu .bash_completion .bashrc.d/x .cargo/env
        .local/share/bash-completion/completions/git .config/direnv/direnvrc .envrc .oh-my-zsh/custom/a.zsh
        .nvm/nvm.sh .profile.d/x .npmrc .ripgreprc .vimrc .exrc .gvimrc .curlrc .wgetrc .screenrc .nanorc
        .condarc .gemrc .irbrc .psqlrc .sqliterc .yarnrc .yarnrc.yml .mongorc.js .ideavimrc .netrc
        .terraformrc .ackrc .hgrc .tigrc .pdbrc .pythonrc .pythonrc.py""",
    "tools": """.gdbinit .config/gdb/gdbinit .lldbinit .local/lib/python3.11/site-packages/usercustomize.py
        .local/lib/python3.11/site-packages/sitecustomize.py .local/lib/python3.11/site-packages/x.pth
        .pip/pip.conf .config/pip/pip.conf .config/uv/uv.toml .config/pypoetry/config.toml .pypirc
        .ipython/profile_default/startup/a.py .jupyter/jupyter_notebook_config.py .bunfig.toml
        .config/pnpm/rc .cargo/config.toml .cargo/config .gradle/init.gradle .gradle/init.d/a.gradle
        .gradle/gradle.properties .m2/settings.xml .config/go/env .composer/config.json .nuget/NuGet/NuGet.Config
        .config/nix/nix.conf .Rprofile .julia/config/startup.jl .ghci .iex.exs .ansible.cfg
        .docker/config.json .docker/cli-plugins/docker-x .kube/config .aws/config .config/gh/config.yml
        .local/share/gh/extensions/gh-x/gh-x .gitconfig .config/git/config .config/git/attributes
        .config/git/hooks/pre-commit .gitattributes .git-templates/hooks/pre-commit other/.git/hooks/pre-commit
        other/.git/config other/.git/info/attributes other/.git/modules/m/hooks/post-checkout
        .config/jj/config.toml .subversion/config .gnupg/gpg-agent.conf .ssh/config .ssh/rc .ssh/authorized_keys
        .ssh/environment .config/mise/config.toml .tool-versions .lessfilter .forward .mailcap
        .config/bat/config .config/containers/containers.conf .bundle/config .config/ripgrep/ripgreprc""",
    "editors": """.vim/plugin/a.vim .vim/vimrc .config/nvim/init.lua .config/nvim/init.vim .local/share/nvim/site/plugin/a.lua
        .emacs .emacs.d/init.el .config/emacs/init.el .doom.d/config.el .config/helix/config.toml
        .config/Code/User/settings.json .config/Code/User/tasks.json .config/Code/User/keybindings.json
        .config/Code/User/mcp.json .config/VSCodium/User/settings.json .config/Cursor/User/settings.json
        .vscode/argv.json .vscode/extensions/x/package.json .vscode-server/data/Machine/settings.json
        .config/zed/settings.json .config/zed/tasks.json .config/zed/keymap.json
        .config/sublime-text/Packages/User/a.py .config/JetBrains/Idea/options/a.xml
        .tmux.conf .config/tmux/tmux.conf .tmux/plugins/a.tmux .config/kitty/kitty.conf .wezterm.lua""",
    "desktop": """.config/autostart/a.desktop .config/systemd/user/a.service .local/share/systemd/user/a.service
        .local/share/applications/a.desktop .local/share/dbus-1/services/a.service .config/i3/config
        .config/sway/config .config/hypr/hyprland.conf .config/plasma-workspace/env/a.sh .xmonad/xmonad.hs
        .local/share/gnome-shell/extensions/a/extension.js .config/mimeapps.list
        .mozilla/native-messaging-hosts/a.json .config/google-chrome/NativeMessagingHosts/a.json""",
    "agents": """.claude.json .claude/settings.json .claude/settings.local.json .claude/hooks/a.sh .claude/CLAUDE.md
        .claude/commands/a.md .claude/skills/a/SKILL.md .mcp.json .codex/config.toml .codex/AGENTS.md
        .gemini/settings.json .gemini/GEMINI.md .gemini/extensions/a/gemini-extension.json .qwen/settings.json
        .cursor/mcp.json .cursor/hooks.json .cursor/rules/a.mdc .config/opencode/opencode.json .aider.conf.yml
        .continue/config.yaml .copilot/mcp-config.json .config/goose/config.yaml .config/amp/settings.json
        .factory/mcp.json .kiro/settings/mcp.json .codeium/windsurf/mcp_config.json .config/crush/crush.json
        .aws/amazonq/mcp.json .config/Claude/claude_desktop_config.json AGENTS.md CLAUDE.md .config/stet/policy.yaml""",
    "programs": "bin/ls .local/bin/git .local/bin/sh bin/python3",
}

NOTHING = """.cache/tool/x .local/share/tool/data .config/tool/state.json .local/state/x .local/bin/a-name-of-its-own
    notes.txt Documents/a.md .npm/_cacache/x .cargo/registry/x .claude/projects/p/s.jsonl .claude/todos/1.json
    .codex/sessions/s.jsonl .gemini/tmp/x .config/Code/User/globalStorage/state.vscdb .python_history
    .viminfo other/src/a.c .gradle/caches/x .m2/repository/x .vscode-server/data/logs/x bin/own-tool
    .config/gh/state.yml .local/share/opencode/log/x .rustup/toolchains/x go/pkg/mod/x"""


def write(stet, home, work, paths):
    script = "import os, sys\nfor p in sys.argv[1:]:\n os.makedirs(os.path.dirname(p), exist_ok=True)\n" \
             " open(p, 'w').write('x')\n"
    stet.run("python3", "-c", script, *[home / p for p in paths], cwd=work).ok()
    risks = stet("status", "--json", cwd=work).ok().json().get("risks", [])
    return {os.path.relpath(r["path"], home): r["what"] for r in risks}


@pytest.mark.parametrize("kind", LOOK)
def test_deserves_a_look(stet, home, work, kind):
    paths = LOOK[kind].split()
    for i in range(0, len(paths), 15):
        part = paths[i:i + 15]
        found = write(stet, home, work, part)
        assert sorted(set(part) - set(found)) == []
        r = stet("commit", "--json", cwd=work).ok(2).json()
        assert r["error"]["kind"] == "denied" and "--accept-risky" in r["error"]["hint"], r
        assert not os.path.exists(home / part[0])
        stet("rollback", cwd=work).ok()


def test_nothing_to_see(stet, home, work):
    assert write(stet, home, work, NOTHING.split()) == {}
    stet("commit", cwd=work).ok()


def test_a_program_that_is_another_one(stet, home, work):
    make_tree(home, {".cargo": {"bin": {"x": "1"}}, "own": {"x": "1"}})
    assert list(write(stet, home, work, [".cargo/bin/x", ".cargo/bin/new", "own/x"])) == [".cargo/bin/x"]


def test_a_directory_of_the_path(stet, home, work):
    """Wherever it lies: a login or an .envrc may have put it there."""
    path = {"PATH": f"{home}/tools:/usr/bin:/bin"}
    stet.run("sh", "-c", f"mkdir ~/tools; echo x > ~/tools/ls; echo x > ~/tools/mine; ln -s x ~/tools/cat",
             cwd=work).ok()
    risks = stet("status", "--json", cwd=work, env=path).ok().json()["risks"]
    assert sorted(os.path.basename(r["path"]) for r in risks) == ["cat", "ls"]
    assert all(r["what"].startswith("diff.shadows") for r in risks)
    stet("commit", cwd=work, env=path).ok(2)


def test_the_workspace_is_not_outside(stet, home, work):
    found = write(stet, home, work, [f"work/{p}" for p in (".vimrc", ".gdbinit", "bin/ls", "usercustomize.py")])
    assert found == {}


def test_the_home_of_another(stet, home, work):
    if os.geteuid() != 0:
        return  # it is root's alone to change
    other = f"/home/stet-look-{os.getpid()}"
    os.mkdir(other)
    try:
        stet.run("sh", "-c", f"echo x > {other}/.vimrc; echo x > {other}/notes", cwd=work).ok()
        risks = stet("status", "--json", cwd=work).ok().json()["risks"]
        assert [r["path"] for r in risks] == [f"{other}/.vimrc"]
    finally:
        os.rmdir(other)
