# SPDX-License-Identifier: Apache-2.0
"""usage: mounts.py BASE USER "NEED..." COMMAND...

Run by root in a mount namespace of its own: makes the file systems and objects a test
file asks for (NEEDS = "..." in it), tells where they are in STET_TEST_FS_DIR
("ext4=/path:xfs=/path"), turns into USER and executes COMMAND. All of it vanishes with
the namespace.

  ext4 xfs btrfs    fresh file systems on loop devices, owned by USER
  tmpfs             the same in memory
  small             an ext4 of a few megabytes, to be filled
  nojournal         an ext4 without a journal
  strict            a tmpfs mounted noexec,nosuid,nodev
  readonly          a read-only mount with a file in it
  alias             the root file system once more, bound at another place
  stacked           an overlay over all of BASE, where the test's home and stores are; read-only
  stackedrw         the same with an upper of its own
  mirror            BASE through a file system in user space
  foreign           objects of other owners that USER may write
  shared            a directory of USER, with one of root's in it that holds a mount of root's and
                    one of USER, a large file and a directory of USER
  subvol            a btrfs of root's, `top`, with user_subvol_rm_allowed, in which USER has a subvolume
                    `nested`, and `stores` with the stores of two others; two more of it mounted by
                    themselves: `mine`, USER's, and `roots`
  mounted           a btrfs subvolume `ws` of USER with mounts below: a tmpfs of USER at x/deep/m, and the
                    kernel's own at c/deep/proc, c/sys and p
  fuse              a file system in user space that lacks RENAME_EXCHANGE and _NOREPLACE
  dead              one in user space whose server is gone
  cgroup            a cgroup of version 2 that belongs to USER, in which COMMAND runs: a file
                    `path` in it names the one above, which has a second one, `other`
  anyfuse           /dev/fuse for everybody, as most machines have it
  fixed             a tmpfs that is read-only altogether, with a FIFO in it and sockets that are listened at
  huge              a hugetlbfs of USER
  single            mounts on single files: a file, a socket that is listened at, a FIFO, a device
  devices           another mount of the machine's devtmpfs
"""
import os
import shutil
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from identity import EXTRA_GROUP, Identity  # noqa: E402

MIB = 1 << 20
MKFS = {
    "ext4": (256 * MIB, ["mkfs.ext4", "-q", "-F", "-E", "root_owner={uid}:{gid}"]),
    "nojournal": (256 * MIB, ["mkfs.ext4", "-q", "-F", "-O", "^has_journal",
                              "-E", "root_owner={uid}:{gid}"]),
    "small": (16 * MIB, ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "root_owner={uid}:{gid}"]),
    "xfs": (320 * MIB, ["mkfs.xfs", "-q", "-f"]),
    "btrfs": (256 * MIB, ["mkfs.btrfs", "-q", "-f"]),
}


def command(*argv):
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False)
    if r.returncode != 0:
        sys.exit(f"{' '.join(argv)}: {r.stdout.decode(errors='replace')}")


def make_loop(need, where, who, images):
    size, mkfs = MKFS[need]
    image = f"{images}/{need}.img"
    with open(image, "wb") as f:
        f.truncate(size)
    command(*[a.format(uid=who.uid, gid=who.gid) for a in mkfs], image)
    command("mount", "-o", "loop", image, where)
    # The mount keeps it; nothing is left to be cleaned up later.
    os.unlink(image)
    os.chown(where, who.uid, who.gid)
    if os.path.isdir(f"{where}/lost+found"):
        os.rmdir(f"{where}/lost+found")


def make_foreign(where, who):
    """What other people own and USER may write all the same."""
    os.chown(where, who.uid, who.gid)
    with open(f"{where}/root-0666", "w", encoding="ascii") as f:
        f.write("root's\n")
    os.chmod(f"{where}/root-0666", 0o666)
    os.mkdir(f"{where}/root-1777")
    os.chmod(f"{where}/root-1777", 0o1777)
    os.mkdir(f"{where}/group-2775")
    shutil.chown(f"{where}/group-2775", 0, EXTRA_GROUP)
    os.chmod(f"{where}/group-2775", 0o2775)
    for name in ("own-file", "group-2775/file"):
        with open(f"{where}/{name}", "w", encoding="ascii") as f:
            f.write("text\n")
        shutil.chown(f"{where}/{name}", who.uid, EXTRA_GROUP)
        os.chmod(f"{where}/{name}", 0o664)
    os.mkdir(f"{where}/own-dir")
    shutil.chown(f"{where}/own-dir", who.uid, EXTRA_GROUP)
    # Far down, behind much that is the user's own.
    os.makedirs(f"{where}/much/deep")
    for i in range(300):
        with open(f"{where}/much/{i}", "w", encoding="ascii"):
            os.chown(f"{where}/much/{i}", who.uid, who.gid)
    shutil.copytree(f"{where}/group-2775", f"{where}/much/deep/shared")
    for name in ("much", "much/deep", "much/deep/shared", "much/deep/shared/file"):
        shutil.chown(f"{where}/{name}", who.uid, EXTRA_GROUP if "shared" in name else who.gid)
    os.mkdir(f"{where}/root-0755")
    with open(f"{where}/root-0755/file", "w", encoding="ascii") as f:
        f.write("root's\n")
    os.chmod(f"{where}/root-0755/file", 0o644)
    # Directories of the user's in directories that he cannot write, or that have another group.
    for name in ("in-group", "in-group/own", "in-root", "in-root/deep", "in-root/deep/own"):
        os.mkdir(f"{where}/{name}", 0o755)
    for name, gid in (("in-group", 0), ("in-group/own", who.gid), ("in-root/deep/own", who.gid)):
        os.chown(f"{where}/{name}", who.uid, gid)
    os.mkdir(f"{where}/large", 0o755)
    os.chown(f"{where}/large", who.uid, who.gid)
    with open(f"{where}/large/file", "wb") as f:
        f.truncate(65 * MIB)
    shutil.chown(f"{where}/large/file", who.uid, EXTRA_GROUP)


def make_shared(where, who):
    os.chown(where, who.uid, who.gid)
    for name in ("roots", "roots/mount", "roots/mine", "roots/own"):
        os.mkdir(f"{where}/{name}", 0o755)
    os.chown(f"{where}/roots/own", who.uid, who.gid)
    with open(f"{where}/roots/image", "wb") as f:
        f.truncate(1 << 30)
    command("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", f"{where}/roots/mount")
    command("mount", "-t", "tmpfs", "-o", f"size=1m,uid={who.uid},gid={who.gid}", "tmpfs",
            f"{where}/roots/mine")
    with open(f"{where}/roots/mount/file", "w", encoding="ascii") as f:
        f.write("root's\n")


def make_subvol(where, who, images):
    """Subvolumes as a machine's administrator gives them out."""
    image = f"{images}/subvol.img"
    with open(image, "wb") as f:
        f.truncate(256 * MIB)
    command("mkfs.btrfs", "-q", "-f", image)
    for name in ("top", "mine", "roots"):
        os.mkdir(f"{where}/{name}", 0o755)
    command("mount", "-o", "loop,user_subvol_rm_allowed", image, f"{where}/top")
    os.unlink(image)
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        (device,) = [x.split()[-2] for x in f if x.split()[4] == f"{where}/top"]
    for name, at in (("nested", None), ("stores", None), ("@mine", "mine"), ("@roots", "roots")):
        command("btrfs", "-q", "subvolume", "create", f"{where}/top/{name}")
        if at != "roots":
            os.chown(f"{where}/top/{name}", who.uid, who.gid)
        else:
            os.chmod(f"{where}/top/{name}", 0o777)
        if at:
            command("mount", "-o", f"subvol={name}", device, f"{where}/{at}")
    for uid in (0, 1):
        store = f"{where}/top/stores/.stet-{uid}"
        os.mkdir(store, 0o700)
        with open(f"{store}/f", "w", encoding="ascii") as f:
            f.write("another's\n")
        os.chown(store, uid, uid)


def make_mounted(where, who, images):
    """A workspace in which a machine's administrator has mounted something, as in a chroot."""
    make_loop("btrfs", where, who, images)
    ws = f"{where}/ws"
    command("btrfs", "-q", "subvolume", "create", ws)
    for name in ("", "x", "x/deep", "x/deep/m", "c", "c/deep", "c/deep/proc", "c/sys", "p"):
        os.makedirs(f"{ws}/{name}", exist_ok=True)
        os.chown(f"{ws}/{name}", who.uid, who.gid)
    command("mount", "-t", "tmpfs", "-o", f"size=1m,mode=755,uid={who.uid},gid={who.gid}", "tmpfs",
            f"{ws}/x/deep/m")
    for kind, at in (("proc", "c/deep/proc"), ("sysfs", "c/sys"), ("proc", "p")):
        command("mount", "-t", kind, kind, f"{ws}/{at}")


def make_dead(where, who, images):
    """What the server has answered once is believed for an hour."""
    os.mkdir(f"{images}/dead", 0o755)
    os.chown(f"{images}/dead", who.uid, who.gid)
    before = os.stat(where).st_dev
    with subprocess.Popen(["bindfs", "-f", "-o", "allow_other,attr_timeout=3600",
                           f"{images}/dead", where]) as server:
        while server.poll() is None and os.stat(where).st_dev == before:
            time.sleep(0.01)
        server.kill()


def make_anyfuse(images):
    if os.path.exists("/dev/fuse"):
        node = f"{images}/device"
        os.mknod(node, 0o600 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
        os.chmod(node, 0o666)
        command("mount", "--bind", node, "/dev/fuse")


def make_cgroup(where, who):
    """Leaves none but its own; the next one takes that away."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        tops = [line.split()[4] for line in f if " - cgroup2 " in line]
    if not tops or not os.access(tops[0], os.W_OK):
        return
    for old in os.listdir(tops[0]):
        if old.startswith("tests-of-stet-") and not os.path.exists(f"/proc/{old.split('-')[3]}"):
            for sub in ("/own", "/other", ""):
                subprocess.run(["rmdir", f"{tops[0]}/{old}{sub}"], stderr=subprocess.DEVNULL,
                               check=False)
    top = f"{tops[0]}/tests-of-stet-{os.getpid()}"
    for path in (top, f"{top}/own", f"{top}/other"):
        os.mkdir(path)
        for name in ("", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"):
            os.chown(path + name, who.uid, who.gid)
    with open(f"{top}/own/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))
    with open(f"{where}/path", "w", encoding="utf-8") as f:
        f.write(top)


def make_stacked(need, where, images):
    base = os.path.dirname(os.path.dirname(images))
    side = f"{images}/side-{need}"
    os.mkdir(side, 0o755)
    command("mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", side)
    for name in ("upper", "work"):
        os.mkdir(f"{side}/{name}", 0o755)
    options = f"lowerdir={base}"
    options += f":{side}/upper" if need == "stacked" else (f",upperdir={side}/upper,"
                                                          f"workdir={side}/work")
    command("mount", "-t", "overlay", "-o", options, "overlay", where)


def make_sockets(where):
    """Sockets of each kind, which COMMAND keeps, as it inherits them."""
    for i, kind in enumerate((socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)):
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(f"{where}/s{i}")
        os.chmod(f"{where}/s{i}", 0o777)
        if kind != socket.SOCK_DGRAM:
            s.listen(100)
        os.set_inheritable(s.detach(), True)


def make_fifo(path):
    os.mkfifo(path)
    os.chmod(path, 0o666)


def make_single(where, images):
    source = f"{images}/single"
    os.mkdir(source, 0o755)
    make_sockets(source)
    make_fifo(f"{source}/fifo")
    os.mknod(f"{source}/device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    with open(f"{source}/file", "w", encoding="ascii") as f:
        f.write("text\n")
    for name in sorted(os.listdir(source)):
        with open(f"{where}/{name}", "w", encoding="ascii"):
            pass
        command("mount", "--bind", f"{source}/{name}", f"{where}/{name}")


def make(need, where, who, images):
    if need in MKFS:
        make_loop(need, where, who, images)
    elif need == "tmpfs":
        command("mount", "-t", "tmpfs", "-o",
                f"size=256m,mode=755,uid={who.uid},gid={who.gid}", "tmpfs", where)
    elif need == "strict":
        command("mount", "-t", "tmpfs", "-o",
                f"size=16m,mode=755,noexec,nosuid,nodev,uid={who.uid},gid={who.gid}",
                "tmpfs", where)
    elif need == "readonly":
        os.chown(where, who.uid, who.gid)
        with open(f"{where}/file", "w", encoding="ascii") as f:
            f.write("kept\n")
        os.chown(f"{where}/file", who.uid, who.gid)
        command("mount", "--bind", where, where)
        command("mount", "-o", "remount,bind,ro", where)
    elif need == "alias":
        command("mount", "--bind", "/", where)
    elif need == "fuse":
        if os.path.exists("/dev/fuse"):
            os.mkdir(f"{images}/fuse", 0o755)
            os.chown(f"{images}/fuse", who.uid, who.gid)
            command("bindfs", "-o", "allow_other", f"{images}/fuse", where)
    elif need == "dead":
        if os.path.exists("/dev/fuse"):
            make_dead(where, who, images)
    elif need in ("stacked", "stackedrw"):
        make_stacked(need, where, images)
    elif need == "mirror":
        if os.path.exists("/dev/fuse"):
            command("bindfs", "-o", "allow_other", os.path.dirname(os.path.dirname(images)), where)
    elif need == "cgroup":
        make_cgroup(where, who)
    elif need == "anyfuse":
        make_anyfuse(images)
    elif need == "fixed":
        command("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", where)
        make_sockets(where)
        make_fifo(f"{where}/fifo")
        command("mount", "-o", "remount,ro", where)
    elif need == "huge":
        command("mount", "-t", "hugetlbfs", "-o", f"uid={who.uid},gid={who.gid},mode=755",
                "hugetlbfs", where)
    elif need == "single":
        make_single(where, images)
    elif need == "devices":
        command("mount", "-t", "devtmpfs", "devtmpfs", where)
    elif need == "mounted":
        make_mounted(where, who, images)
    elif need == "shared":
        make_shared(where, who)
    elif need == "subvol":
        make_subvol(where, who, images)
    elif need == "foreign":
        make_foreign(where, who)
    else:
        sys.exit(f"mounts.py: what is {need}?")


def main(argv):
    base, name, needs, rest = argv[0], argv[1], argv[2].split(), argv[3:]
    who = Identity(name, "")
    fs = f"{base}/fs"
    os.mkdir(fs, 0o755)
    os.mkdir(f"{fs}/images", 0o700)
    for need in needs:
        os.mkdir(f"{fs}/{need}", 0o755)
        make(need, f"{fs}/{need}", who, f"{fs}/images")
    os.environ["STET_TEST_FS_DIR"] = ":".join(f"{n}={fs}/{n}" for n in needs)
    who.become()
    os.execv(rest[0], rest)


main(sys.argv[1:])
