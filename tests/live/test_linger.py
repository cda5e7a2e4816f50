# SPDX-License-Identifier: Apache-2.0
"""The mount of a layer goes after its run has ended; nobody mounts the layer again before that."""
import fcntl
import glob
import os

from stetlib import wait_until


def layers(stet):
    """{inode: a descriptor} of the directories of all overlay layers."""
    dirs = glob.glob(f"{stet.home}/.local/state/stet/tx/*/l*/up")
    fds = [os.open(os.path.dirname(d), os.O_RDONLY) for d in dirs]
    return {os.fstat(fd).st_ino: fd for fd in fds}


def is_waited_for(inodes):
    with open("/proc/locks", encoding="ascii") as f:
        return any("->" in line and "FLOCK" in line and
                   int(line.split()[6].split(":")[2]) in inodes for line in f)


def test_who_mounts_it_again_waits(stet, work):
    stet.sh("echo x > f", cwd=work).ok()
    held = layers(stet)
    for fd in held.values():
        # Whoever lets go of a real mount may be about to end.
        fcntl.flock(fd, fcntl.LOCK_SH)
    p = stet.popen("explore", "-q", "--", "cat", "f", cwd=work, stdin=-3, stdout=-1, stderr=-1)
    wait_until(lambda: is_waited_for(held))
    assert p.poll() is None
    for fd in held.values():
        os.close(fd)
    assert p.communicate(timeout=60) == (b"x\n", b"")
    assert p.returncode == 0


def test_what_only_reads_or_ends_it_does_not(stet, work):
    stet.sh("echo x > f; mkdir d; echo y > d/g", cwd=work).ok()
    held = layers(stet)
    for fd in held.values():
        fcntl.flock(fd, fcntl.LOCK_SH)
    assert sorted(stet.changes(cwd=work, below=work)) == [b"d", b"d/g", b"f"]
    stet("commit", "f", cwd=work).ok()
    stet("rollback", cwd=work).ok()
    assert (work / "f").read_text() == "x\n"
    for fd in held.values():
        os.close(fd)


def test_one_after_the_other_sees_what_the_last_one_left(stet, work):
    """Each looks at much, so that its mount takes a while to go; the next comes at once."""
    for i in range(300):
        (work / f"f{i}").write_text(f"{i}\n")
    stet.sh("for f in f*; do echo more >> $f; done; sleep 0.01", cwd=work).ok()
    for n in range(2, 6):
        stet("explore", "-q", "--", "sh", "-c", "for f in f*; do echo more >> $f; done",
             cwd=work).ok()
        assert stet("explore", "-q", "--", "sh", "-c", "cat f* | grep -c more",
                    cwd=work).ok().out == f"{300 * n}\n"
