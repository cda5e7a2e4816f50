# SPDX-License-Identifier: Apache-2.0
"""Where the benchmark happens and as whom: an ordinary user, a directory in his home."""
import contextlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USER = "stet-bench"
BTRFS_MIB = 4096
OWN_MIB = 32768  # sparse: a filesystem for the whole benchmark, if one is asked for


class Place:
    """base: everything; bin: our programs; home: the user's home; btrfs: a mount or None."""

    def __init__(self, base, stet):
        self.base, self.bin = base, f"{base}/bin"
        self.home, self.trees, self.scratch = (f"{base}/home", f"{base}/home/trees",
                                               f"{base}/scratch")
        self.trash, self.thrown = f"{base}/trash", 0
        self.btrfs = None
        self.kind = None  # of filesystem, if it was made for this
        self.stet = f"{self.bin}/stet"
        for d in (self.bin, self.home, self.trees, self.scratch, self.trash):
            os.makedirs(d)
        for program in ("stet", "stet-text"):
            shutil.copy2(os.path.join(os.path.dirname(stet), program), self.bin)
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
        """Out of the way, but not deleted before the end: without a journal ext4 looks long for
        free inodes where many were deleted within minutes, and the next reading would pay."""
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
def mounted(kind, image, where, mib, options):
    """A filesystem in a file, mounted; only root can."""
    with open(image, "wb") as f:
        f.truncate(mib << 20)
    os.makedirs(where, exist_ok=True)
    subprocess.run([f"mkfs.{kind}", "-q", image], check=True)
    subprocess.run(["mount", "-t", kind, "-o", options, image, where], check=True)
    try:
        yield where
    finally:
        # Lazily: a daemon that is still going down may be in there.
        subprocess.run(["umount", "-l", where], check=False)


@contextlib.contextmanager
def btrfs(place, who):
    """A directory of the user's on a btrfs, for the row that takes snapshots, or None.

    The mount itself is not his: a sandbox would have to overlay it in every other row.
    """
    with contextlib.ExitStack() as stack:
        try:
            where = stack.enter_context(
                mounted("btrfs", f"{place.base}/btrfs.img", f"{place.base}/btrfs", BTRFS_MIB,
                        "loop,user_subvol_rm_allowed")) + "/own"
            os.mkdir(where)
            os.chown(where, who.pw_uid, who.pw_gid)
        except (OSError, subprocess.CalledProcessError):
            where = None
        yield where


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
def anyfuse(place):
    """/dev/fuse for everybody, as most machines have it: fuse-overlayfs needs it."""
    node = f"{place.base}/fuse"
    if not os.path.exists("/dev/fuse") or os.stat("/dev/fuse").st_mode & 0o006 == 0o006:
        yield
        return
    os.mknod(node, 0o600 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    os.chmod(node, 0o666)
    subprocess.run(["mount", "--bind", node, "/dev/fuse"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", "/dev/fuse"], check=False)


def mounts_of_firejail():
    with open("/proc/self/mounts", encoding="utf-8") as f:
        return [line.split()[1] for line in f if line.split()[1].startswith("/run/firejail")]


@contextlib.contextmanager
def no_leftovers():
    """firejail leaves mounts on the host, which the next sandbox would have to show."""
    before = mounts_of_firejail()
    try:
        yield
    finally:
        for where in reversed(mounts_of_firejail()):
            if where not in before:
                subprocess.run(["umount", "-l", where], check=False)


@contextlib.contextmanager
def ground(who, fs):
    """An empty directory for it all: on the user's disk, or on a filesystem of its own."""
    home = who.pw_dir if who else os.path.expanduser("~")
    base = tempfile.mkdtemp(prefix="stet-bench-", dir=os.environ.get("BENCH_DIR", home))
    try:
        os.chmod(base, 0o755)
        if not fs:
            yield base
            return
        with mounted(fs, f"{base}/image", f"{base}/fs", OWN_MIB, "loop") as where:
            os.mkdir(f"{where}/b")
            yield f"{where}/b"
    finally:
        remove(base)


@contextlib.contextmanager
def place(stet, fs):
    """Yields (Place, user to become or None); nothing is left afterwards."""
    with contextlib.ExitStack() as stack:
        who = stack.enter_context(user())
        p = Place(stack.enter_context(ground(who, fs)), stet)
        p.kind = fs
        if who:
            stack.enter_context(no_leftovers())
            p.own(who.pw_uid, who.pw_gid)
            stack.enter_context(anyfuse(p))
            p.btrfs = stack.enter_context(btrfs(p, who))
        yield p, who
