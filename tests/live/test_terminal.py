# SPDX-License-Identifier: Apache-2.0
"""On a terminal: full-screen programs, signals, job control, and nothing left crooked."""
import os
import re
import signal
import termios

import pexpect
import pytest
from stetlib import wait_until


def spawn(stet, argv, cwd, rows=24, cols=80, env=None):
    child = pexpect.spawn(argv[0], argv[1:], cwd=str(cwd), dimensions=(rows, cols), timeout=20,
                          env=stet.environ(env), encoding="utf-8", codec_errors="replace")
    child.delaybeforesend = None
    return child


def run(stet, work, *argv, opts=("--on-success", "keep", "--on-failure", "keep"), **kw):
    return spawn(stet, [stet.path, "run", "--quiet", *opts, "--", *argv], work, **kw)


def ended(child, status=0):
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == status, (child.exitstatus, child.signalstatus, child.before)


def settings(child):
    return termios.tcgetattr(child.child_fd)


def test_it_is_a_terminal(stet, work):
    c = run(stet, work, "bash", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo yes; "
            "echo < /dev/tty | cat; exit 5")
    c.expect(r"/dev/pts/\d+")
    c.expect("yes")
    c.expect("")
    c.close()


def test_own_terminal_not_ours(stet, work):
    """Its device is not the one outside; TIOCSTI finds nothing to push into."""
    c = run(stet, work, "bash", "-c", "ls /dev/pts; echo END")
    c.expect("END")
    assert re.findall(r"\d+", c.before) == ["0"]
    ended(c)


def test_tiocsti_reaches_nobody(stet, work, probe):
    shell = spawn(stet, ["bash", "--norc"], work, env={"PS1": "outer> "})
    shell.expect("outer> ")
    shell.sendline(f"{stet.path} run --quiet -- {probe} tiocsti tiocsti=/dev/tty tioclinux")
    shell.expect("tioclinux: ")
    shell.expect("outer> ")
    seen = shell.before
    shell.sendline("echo typed:$((40+2))")
    shell.expect("typed:42")
    assert "tiocsti: ok" not in seen
    shell.sendline("exit")
    ended(shell)


def test_input_and_echo(stet, work):
    c = run(stet, work, "bash", "-c", "read -p 'name? ' x; echo got:$x")
    c.expect("name\\? ")
    c.sendline("someone")
    c.expect("got:someone")
    ended(c)


def test_end_of_input(stet, work):
    c = run(stet, work, "sh", "-c", "echo READY; exec cat")
    c.expect("READY\r\n")
    c.sendline("line")
    c.expect("line\r\nline")
    c.send("\x04")
    ended(c)


def test_window_size(stet, work):
    c = run(stet, work, "bash", "-c", "stty size; trap 'stty size; exit' WINCH; echo READY; "
            "while :; do sleep 0.05; done", rows=31, cols=97)
    c.expect("31 97")
    c.expect("READY")
    c.setwinsize(40, 120)
    c.expect("40 120")
    ended(c)


def test_interrupt(stet, work):
    c = run(stet, work, "bash", "-c", "trap 'echo INT; exit 9' INT; echo READY; "
            "while :; do sleep 0.05; done")
    c.expect("READY")
    c.send("\x03")
    c.expect("INT")
    ended(c, 9)


def test_interrupt_ends_a_plain_command(stet, work):
    c = run(stet, work, "bash", "-c", "echo READY; exec sleep 1000")
    c.expect("READY")
    c.send("\x03")
    ended(c, 130)


def test_quit(stet, work):
    # Not bash: that ignores SIGQUIT.
    c = run(stet, work, "sh", "-c", "ulimit -c 0; echo READY; exec sleep 1000")
    c.expect("READY")
    c.send("\x1c")
    ended(c, 131)


def test_interactive_shell_with_job_control(stet, work):
    c = run(stet, work, "bash", "--norc", "-i", env={"PS1": "inner> "})
    c.expect("inner> ")
    assert "no job control" not in c.before
    c.sendline("sh -c 'echo go:$((40+2)); exec sleep 1000'")
    c.expect("go:42")
    c.send("\x1a")
    c.expect("Stopped")
    c.expect("inner> ")
    # What wait says of a stopped job that dies meanwhile is not always its end.
    c.sendline("jobs; kill -KILL %1; while kill -0 %1 2>/dev/null; do wait %1; done; echo done:$?")
    c.expect(r"done:\d+")
    c.sendline("exit 3")
    ended(c, 3)


def test_stop_and_continue_from_the_outer_shell(stet, work):
    """Ctrl-Z stops the whole run, fg goes on with it."""
    shell = spawn(stet, ["bash", "--norc", "-i"], work, env={"PS1": "outer> "})
    shell.expect("outer> ")
    shell.sendline(f"{stet.path} run --quiet -- bash -c 'echo READY; read x; echo got:$x'")
    shell.expect("READY\r")
    shell.send("\x1a")
    shell.expect("Stopped")
    shell.expect("outer> ")
    shell.sendline("echo between:$((1+1))")
    shell.expect("between:2")
    shell.expect("outer> ")
    shell.sendline("fg")
    shell.expect("stet run")
    shell.sendline("again")
    shell.expect("got:again")
    shell.expect("outer> ")
    shell.sendline("stty -a | grep -o ' icanon'; echo status:$?")
    shell.expect("status:0")
    shell.sendline("exit")
    ended(shell)


def test_vim(stet, work):
    (work / "f").write_text("old text\n")
    c = run(stet, work, "vim", "-u", "NONE", "-N", "f")
    c.expect("old text")
    c.send("ggcwnew\x1b:wq\r")
    ended(c)
    assert (work / "f").read_text() == "old text\n"
    assert stet.changes(cwd=work, below=work)[b"f"] == "M"


def test_less(stet, work):
    (work / "f").write_text("".join(f"line {i}\n" for i in range(1, 500)))
    c = run(stet, work, "less", "f")
    c.expect("line 1\r")
    c.send("G")
    c.expect("line 499")
    c.send("q")
    ended(c)


def test_top(stet, work):
    c = run(stet, work, "top")
    c.expect("PID")
    c.expect("COMMAND")
    c.send("q")
    ended(c)


def test_tmux(stet, work):
    c = run(stet, work, "tmux", "-L", "t", "-f", "/dev/null", "new", "bash --norc")
    c.expect(r"[$#] ")
    c.send("echo in:$((2*21))\r")
    c.expect("in:42")
    c.send("exit\r")
    ended(c)


@pytest.mark.parametrize("how", ["exit", "kill inside", "TERM", "KILL", "vim killed"])
def test_terminal_is_restored(stet, work, how):
    """Raw mode set inside, or by us, is gone afterwards, however it ended."""
    shell = spawn(stet, ["bash", "--norc"], work, env={"PS1": "outer> "})
    shell.expect("outer> ")
    before = settings(shell)
    inner = {"exit": "stty raw -echo; exit 0", "kill inside": "stty raw -echo; kill -9 $$",
             "vim killed": "vim -u NONE -c 'call system(\"kill -9 $PPID\")'"}.get(
                 how, "stty raw -echo; echo READY; sleep 1000")
    shell.sendline(f"{stet.path} run --quiet -- bash -c \"{inner}\"; echo over:$?"
                   if how != "vim killed" else
                   f"{stet.path} run --quiet -- timeout -s KILL 1 vim -u NONE; echo over:$?")
    if how in ("TERM", "KILL"):
        shell.expect("READY\\s")
        wait_until(lambda: children(shell.pid))
        for pid in children(shell.pid):
            os.kill(pid, getattr(signal, f"SIG{how}"))
    shell.expect(r"over:\d+")
    shell.sendline("echo back:$((1+1))")
    shell.expect("back:2")
    shell.expect("outer> ")
    wait_until(lambda: settings(shell)[:4] == before[:4],
               message=lambda: f"{before[:4]} -> {settings(shell)[:4]}")
    shell.sendline("exit")
    shell.close()


def test_terminal_is_restored_for_a_script(stet, work):
    """Nobody but us puts it back there, and we are killed."""
    inner = "printf '\\033[?1049h\\033[?25l'; echo READY; sleep 1000"
    c = spawn(stet, ["sh", "-c", f'{stet.path} run --quiet -- sh -c "{inner}"; read x'], work)
    before = settings(c)
    c.expect("READY")
    wait_until(lambda: settings(c)[:4] != before[:4])
    pid = next(p for p in descendants(c.pid) if os.readlink(f"/proc/{p}/exe") == stet.path)
    os.kill(pid, signal.SIGKILL)
    c.expect_exact("\x1b[?1049l")
    c.expect_exact("\x1b[?25h")
    wait_until(lambda: settings(c)[:4] == before[:4],
               message=lambda: f"{before[:4]} -> {settings(c)[:4]}")
    wait_until(lambda: not stet.background())
    c.close()


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def children(pid):
    """Processes that this shell started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def test_hangup(stet, work):
    """The terminal goes away: so does the run."""
    c = run(stet, work, "bash", "-c", "echo READY; sleep 1000")
    c.expect("READY")
    c.close(force=False)
    wait_until(lambda: stet.transactions()[0]["state"] in ("pending", "interrupted"))


def test_question_at_the_end(stet, work):
    """Diff, then keep; the choices are named."""
    c = spawn(stet, [stet.path, "run", "--", "bash", "-c", "echo new > f"], work,
              env={"PAGER": "cat", "STET_PAGER": "cat"})
    for choice in (r"\[c\]ommit", r"\[d\]iff", r"\[k\]eep", r"\[r\]oll back"):
        c.expect(choice)
    c.sendline("d")
    c.expect(r"\+new")
    c.sendline("k")
    c.expect(pexpect.EOF)
    c.close()
    assert c.exitstatus == 0
    assert stet.transactions()[0]["state"] == "pending"
    assert not (work / "f").exists()


def test_question_commit(stet, work):
    c = spawn(stet, [stet.path, "run", "--", "bash", "-c", "echo new > f"], work)
    c.expect(r"\[c\]ommit")
    c.sendline("c")
    c.expect(pexpect.EOF)
    c.close()
    assert c.exitstatus == 0
    assert stet.transactions()[0]["state"] == "committed"
    assert (work / "f").read_text() == "new\n"


def test_question_roll_back(stet, work):
    c = spawn(stet, [stet.path, "run", "--", "bash", "-c", "echo new > f"], work)
    c.expect(r"\[r\]oll back")
    c.sendline("r")
    c.expect(pexpect.EOF)
    c.close()
    assert c.exitstatus == 0
    assert stet.transactions()[0]["state"] == "rolled back"


def test_half_a_terminal(stet, work):
    """Output in a pipe, input from the terminal: pipes inside, no pty."""
    c = spawn(stet, ["bash", "-c", f"{stet.path} run --quiet -- bash -c "
                     "'test -t 1 || echo pipe; read x; echo got:$x' | cat"], work)
    c.expect("pipe")
    c.sendline("hello")
    c.expect("got:hello")
    ended(c)


def test_no_terminal_means_no_controlling_terminal(stet, work):
    assert stet.sh(": < /dev/tty", cwd=work).rc != 0


def test_what_is_asked_about_is_quoted(stet, work):
    """One word with a space in it is not two."""
    c = run(stet, work, "git", "push", "--force", "a b", "it's\x1b[2J")
    c.expect_exact(r"may this run?  git push --force 'a b' 'it'\''s\033[2J'" + "\r\n")
    c.expect_exact("? ")
    c.send("n\r")
    ended(c, 126)
