# SPDX-License-Identifier: Apache-2.0
"""Who the tests run as: ourselves and, if we are root, an ordinary user made for it."""
import contextlib
import fcntl
import grp
import os
import pwd
import subprocess

USER = "stet-test"
EXTRA_GROUP = "stet-test-extra"  # a supplementary group, for files with a foreign group
LOCK = "/run/lock/stet-test.lock"


class Identity:
    def __init__(self, name, label):
        p = pwd.getpwnam(name)
        self.name, self.label = name, label
        self.uid, self.gid, self.home = p.pw_uid, p.pw_gid, p.pw_dir
        self.groups = os.getgrouplist(name, p.pw_gid)

    def popen(self):
        """Arguments for subprocess.Popen that make the child this user."""
        if os.geteuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups}

    def become(self):
        """Turns this process into the user, for good."""
        if os.geteuid() != self.uid:
            os.setgroups(self.groups)
            os.setresgid(self.gid, self.gid, self.gid)
            os.setresuid(self.uid, self.uid, self.uid)


def exists(name, lookup):
    try:
        lookup(name)
    except KeyError:
        return False
    return True


def make_user():
    """Creates what is missing; True if the user is new."""
    if not exists(EXTRA_GROUP, grp.getgrnam):
        subprocess.run(["groupadd", "--system", EXTRA_GROUP], check=True)
    if exists(USER, pwd.getpwnam):
        return False
    subprocess.run(["useradd", "-m", "-s", "/bin/bash", "-G", EXTRA_GROUP, USER], check=True)
    return True


@contextlib.contextmanager
def identities(alone=False):
    """Yields the people. The user we made goes again when its last tests are done. With `alone`
    there is nobody but ourselves, and no user is made."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() != 0 or alone:
        yield [Identity(me, "user" if os.geteuid() else "root")]
        return
    with open(LOCK, "a+", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        while not exists(USER, pwd.getpwnam):
            fcntl.flock(lock, fcntl.LOCK_EX)
            if make_user():
                lock.truncate(0)
                lock.write("made\n")
                lock.flush()
            fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield [Identity(me, "root"), Identity(USER, "user")]
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lock.seek(0)
                if lock.read() == "made\n":
                    lock.truncate(0)
                    gone = subprocess.run(["userdel", "-r", USER], check=False,
                                          stderr=subprocess.DEVNULL)
                    # One who stays, since somebody still works as him, keeps his group.
                    if gone.returncode == 0:
                        subprocess.run(["groupdel", EXTRA_GROUP], check=False,
                                       stderr=subprocess.DEVNULL)
