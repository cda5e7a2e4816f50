# SPDX-License-Identifier: Apache-2.0
"""Where the benchmark happens and as whom: an ordinary user, a directory in his home."""
import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USER = "stet-bench"
BTRFS_MIB = 4096


class Place:
    """base: everything; bin: our programs; home: the user's home; btrfs: a mount or None."""

    def __init__(self, base, stet):
        self.base, self.bin = base, f"{base}/bin"
        self.home, self.trees, self.scratch = (f"{base}/home", f"{base}/home/trees",
                                               f"{base}/scratch")
        self.trash, self.thrown = f"{base}/trash", 0
        self.btrfs = None
        self.stet = f"{self.bin}/stet"
        for d in (self.bin, self.home, self.trees, self.scratch, self.trash):
            os.makedirs(d)
        shutil.copy2(stet, self.stet)
        for name in ("ovl", "work"):
            subprocess.run(["gcc", "-O2", "-Wall", "-D_GNU_SOURCE", "-o", f"{self.bin}/{name}",
                            f"{ROOT}/bench/{name}.c"], check=True)
        shutil.copytree(f"{ROOT}/src", f"{base}/src")

    def env(self):
        return {"HOME": self.home, "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8", "USER": USER, "LOGNAME": USER, "TERM": "dumb",
                "SHELL": "/bin/sh", "TMPDIR": "/tmp", "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_AUTHOR_NAME": "b", "GIT_AUTHOR_EMAIL": "b@localhost",
                "GIT_COMMITTER_NAME": "b", "GIT_COMMITTER_EMAIL": "b@localhost"}

    def throw(self, path):
        """Out of the way, but not deleted before the end: ext4 looks long for free inodes
        where many were deleted within the last minutes, and the next reading would pay."""
        if os.path.lexists(path):
            self.thrown += 1
            os.rename(path, f"{self.trash}/{self.thrown}")

    def own(self, uid, gid):
        for where, dirs, names in os.walk(self.base):
            for name in dirs + names + ["."]:
                os.chown(os.path.join(where, name), uid, gid, follow_symlinks=False)


def remove(path):
    """rm -rf, through directories that nobody may enter."""
    if os.path.lexists(path):
        subprocess.run(["chmod", "-R", "u+rwX", path], check=False,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", path], check=True)


@contextlib.contextmanager
def btrfs(place):
    """A btrfs of our own in a file; only root can mount one."""
    image, where = f"{place.base}/btrfs.img", f"{place.base}/btrfs"
    try:
        with open(image, "wb") as f:
            f.truncate(BTRFS_MIB << 20)
        os.mkdir(where)
        subprocess.run(["mkfs.btrfs", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop,user_subvol_rm_allowed", image, where],
                       check=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        yield where
    finally:
        subprocess.run(["umount", where], check=False)


@contextlib.contextmanager
def user():
    """The user (None if we are no root), created and removed again if he does not exist."""
    if os.geteuid() != 0:
        yield None
        return
    try:
        yield pwd.getpwnam(USER)
        return
    except KeyError:
        pass
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", USER], check=True)
    try:
        yield pwd.getpwnam(USER)
    finally:
        subprocess.run(["userdel", "-r", USER], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def place(stet):
    """Yields (Place, user to become or None); nothing is left afterwards."""
    with user() as who:
        home = who.pw_dir if who else os.path.expanduser("~")
        where = os.environ.get("BENCH_DIR", home)
        base = tempfile.mkdtemp(prefix="stet-bench-", dir=where)
        try:
            os.chmod(base, 0o755)
            p = Place(base, stet)
            if not who:
                yield p, None
                return
            with btrfs(p) as mounted:
                p.btrfs = mounted
                p.own(who.pw_uid, who.pw_gid)
                yield p, who
        finally:
            remove(base)
