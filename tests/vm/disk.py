# SPDX-License-Identifier: Apache-2.0
"""The disk and the initramfs of the virtual machine, from this machine's own packages."""
import collections
import glob
import hashlib
import os
import re
import shutil
import stat
import subprocess

from identity import EXTRA_GROUP

GIB = 1 << 30
# Of what the tests need, these build stet or look at its sources: that is not done in there.
BUILDERS = {"clang", "clang-format-14", "libclang-rt-14-dev", "libcmocka-dev", "libfuse3-dev",
            "shellcheck"}
MORE = ("gcc", "kmod", "libc6-dev", "libcmocka0", "libgit2-1.5")
UNREAD = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/",
          "/boot", "/lib/modules/", "/usr/lib/modules/", "/sys", "/proc", "/dev", "/run", "/tmp")
# What no package lists: links of the merged /usr, and what was made when they were installed.
MADE = ("/bin", "/sbin", "/lib", "/lib64", "/etc/mtab", "/etc/ld.so.cache", "/etc/nsswitch.conf",
        "/etc/localtime", "/etc/shells", "/var/mail", "/var/local",
        "/srv", "/opt", "/mnt", "/media", "/usr/local", "/usr/local/bin")
# In the order in which the initramfs loads them, and those the kernel asks for later.
FIRST = ("virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4")
LATER = ("overlay", "fuse", "loop", "xfs", "btrfs", "crc32c_intel", "xxhash_generic",
         "blake2b_generic", "sha256_generic", "binfmt_misc", "tun")


def command(*argv, **kw):
    """Runs to the end; its output. One that fails ends us."""
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False, text=True, **kw)
    if r.returncode != 0:
        raise SystemExit(f"vm: {' '.join(argv[:4])}: {r.stdout.strip()}")
    return r.stdout


def installed():
    """{package: (name for dpkg, version, essential, what it depends on)}; who provides what."""
    packages, providers = {}, collections.defaultdict(set)
    form = ("${Package}\t${binary:Package}\t${Version}\t${Essential}\t${db:Status-Status}\t"
            "${Depends},${Pre-Depends}\t${Provides}\n")
    for line in command("dpkg-query", "-W", "-f", form).splitlines():
        name, full, version, essential, status, depends, provides = line.split("\t")
        if status != "installed" or (name in packages and not full.endswith(":amd64")):
            continue
        words = [re.split(r"[ :(]", w.strip())[0] for w in re.split(r"[,|]", depends)]
        packages[name] = (full, version, essential == "yes", [w for w in words if w])
        for word in filter(None, re.split(r",\s*", provides)):
            providers[word.split()[0]].add(name)
    return packages, providers


def closure(root):
    """{package: version} of what the tests need, with all that it depends on."""
    packages, providers = installed()
    todo = [n for n, p in packages.items() if p[2]] + list(MORE)
    with open(f"{root}/build-aux/packages", encoding="utf-8") as f:
        todo += [w[1] for w in map(str.split, f) if w and w[0] == "test"]
    found = {}
    while todo:
        name = todo.pop()
        if name not in packages:
            todo += providers[name] - set(found)
        elif name not in found and name not in BUILDERS:
            found[name] = packages[name]
            todo += packages[name][3]
    return {full: version for full, version, *_ in found.values()}


def straight(path):
    """The same without links on the way: half of the packages still say /bin."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def file_list(packages):
    """All paths that go onto the disk."""
    found = set(MADE)
    for path in command("dpkg-query", "-L", *packages).splitlines():
        if path.startswith("/") and path != "/." and not path.startswith(UNREAD):
            found.add(path)
    for where in {os.path.dirname(p) for p in found if p.endswith(".py")}:
        found.update(glob.glob(f"{where}/__pycache__") + glob.glob(f"{where}/__pycache__/*"))
    found.update(glob.glob("/etc/alternatives/*"))
    # It replaces itself where somebody has told it to: then no package knows its files.
    for where, _, names in os.walk("/usr/lib/node_modules/npm"):
        found.update([where, *(os.path.join(where, n) for n in names)])
    for where in ("/usr/bin", "/usr/sbin"):
        for e in os.scandir(where):
            if e.is_symlink() and os.readlink(e.path).startswith("/etc/alternatives/"):
                found.add(e.path)
    return sorted({straight(p) for p in found if os.path.lexists(p)})


def people(top):
    """The accounts of the system alone: whoever else is at home here is not at home there."""
    for names, secrets in (("passwd", "shadow"), ("group", "gshadow")):
        system = set()
        with open(f"/etc/{names}", encoding="utf-8") as f:
            for line in f:
                name, _, number = line.split(":")[:3]
                if (int(number) < 1000 or int(number) == 65534) and name != EXTRA_GROUP:
                    system.add(name)
        for file in (names, secrets):
            with open(f"/etc/{file}", encoding="utf-8") as f, \
                    open(f"{top}/etc/{file}", "w", encoding="utf-8") as out:
                out.writelines(line for line in f if line.split(":")[0] in system)
            shutil.copystat(f"/etc/{file}", f"{top}/etc/{file}")
            st = os.stat(f"/etc/{file}")
            os.chown(f"{top}/etc/{file}", st.st_uid, st.st_gid)


def module_paths(modules):
    """{name: path} and {path: paths it needs}, as depmod found them."""
    names, needs = {}, {}
    with open(f"{modules}/modules.dep", encoding="utf-8") as f:
        for line in f:
            path, _, rest = line.partition(":")
            names[os.path.basename(path).split(".")[0].replace("-", "_")] = path
            needs[path] = rest.split()
    return names, needs


def in_order(wanted, names, needs):
    """Paths of modules, each after what it needs. One that is built in has none."""
    found = []

    def add(path):
        for other in needs[path]:
            add(other)
        if path not in found:
            found.append(path)

    for name in wanted:
        if name in names:
            add(names[name])
    return found


class Kernel:
    """Debian's kernel as build-aux/kernel unpacked it."""

    def __init__(self, top):
        self.image = glob.glob(f"{top}/boot/vmlinuz-*")[0]
        self.version = os.path.basename(self.image).partition("-")[2]
        self.modules = f"{top}/lib/modules/{self.version}"
        self.names, self.needs = module_paths(self.modules)

    def install(self, top):
        """The modules that the tests come to need, where modprobe finds them."""
        where = f"{top}/usr/lib/modules/{self.version}"
        for path in in_order(FIRST + LATER, self.names, self.needs):
            os.makedirs(os.path.dirname(f"{where}/{path}"), exist_ok=True)
            shutil.copy2(f"{self.modules}/{path}", f"{where}/{path}")
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            shutil.copy2(f"{self.modules}/{name}", where)
        command("depmod", "-b", top, self.version)

    def initramfs(self, init, path):
        """Writes an archive (cpio, newc) with PID 1 and the first modules."""
        with open(path, "wb") as out:
            paths = in_order(FIRST, self.names, self.needs)
            with open(init, "rb") as f:
                entry(out, "init", f.read(), 0o755)
            entry(out, "modules", None)
            # Standard error of the first process.
            entry(out, "dev", None)
            entry(out, "dev/console", b"", stat.S_IFCHR | 0o600, (5, 1))
            for p in paths:
                with open(f"{self.modules}/{p}", "rb") as f:
                    entry(out, f"modules/{os.path.basename(p)}", f.read())
            text = "".join(f"{os.path.basename(p)}\n" for p in paths)
            entry(out, "modules/list", text.encode())
            entry(out, "TRAILER!!!", b"")


def entry(out, name, data, mode=0o644, device=(0, 0)):
    """One file of a cpio archive; data None: a directory."""
    if not stat.S_IFMT(mode):
        mode |= stat.S_IFREG
    if data is None:
        mode, data = stat.S_IFDIR | 0o755, b""
    text = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(text), 0)
    head = b"070701" + b"".join(b"%08X" % n for n in fields) + text
    out.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


def make(root, kernel, scratch):
    """The disk's path. It is made anew when the packages have changed, or how it is made."""
    packages = closure(root)
    with open(__file__, "rb") as f:
        key = hashlib.sha256(f.read())
    key.update(repr((sorted(packages.items()), kernel.version)).encode())
    image = f"{scratch}/disk-{key.hexdigest()[:16]}"
    if os.path.exists(image):
        return image
    for old in glob.glob(f"{scratch}/disk-*"):
        os.unlink(old)
    top = f"{scratch}/tree"
    shutil.rmtree(top, ignore_errors=True)
    os.mkdir(top, 0o755)
    paths = "\0".join(p[1:] for p in file_list(packages)) + "\0"
    with subprocess.Popen(["tar", "-C", "/", "-c", "--xattrs", "--no-recursion", "--null",
                           "--files-from=-"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as pack, \
            subprocess.Popen(["tar", "-C", top, "-xp", "--xattrs", "--xattrs-include=*",
                              "--keep-directory-symlink"], stdin=pack.stdout) as unpack:
        pack.stdin.write(os.fsencode(paths))
        pack.stdin.close()
        if unpack.wait() or pack.wait():
            raise SystemExit("vm: the machine's files could not be copied")
    for name, mode in (("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755),
                       ("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o700), ("home", 0o755)):
        os.makedirs(f"{top}/{name}", exist_ok=True)
        os.chmod(f"{top}/{name}", mode)
    people(top)
    with open(f"{top}/etc/hostname", "w", encoding="ascii") as f:
        f.write("vm\n")
    with open(f"{top}/etc/hosts", "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost vm\n::1 localhost\n")
    kernel.install(top)
    command("mke2fs", "-q", "-t", "ext4", "-m", "0", "-d", top, f"{image}.new",
            str(8 * GIB // 1024))
    shutil.rmtree(top)
    os.chmod(f"{image}.new", 0o600)
    os.rename(f"{image}.new", image)
    return image
