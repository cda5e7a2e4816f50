# SPDX-License-Identifier: Apache-2.0
"""The ways to run a command that are compared."""
import os

from measure import quiet

class Variant:
    """prepare() and finish() are not timed. layered: the tree below stays as it was."""

    name = title = ""
    layered = False

    def __init__(self, place):
        self.place, self.env = place, place.env()

    def make(self, tree):
        """Directories that every run needs anew."""

    def prepare(self, tree):
        """Everything up to the command itself; gives the directory to run in."""
        self.make(tree)
        return tree

    def command(self, tree, argv):
        return argv

    def start_up(self, tree):
        """The empty command: what it costs to have the sandbox at all."""
        return self.command(tree, ["true"])

    def finish(self, tree):
        pass

    def finish_start_up(self, tree):
        self.finish(tree)


class Native(Variant):
    name, title = "native", "native"


class Overlay(Variant):
    """One volatile kernel overlay and nothing else: the limit of the design."""

    name, title, layered = "overlay", "bare overlay", True

    def __init__(self, place):
        super().__init__(place)
        self.top = f"{place.scratch}/{self.name}"

    def make(self, tree):
        for d in ("up", "wk", "mnt"):
            os.makedirs(f"{self.top}/{d}")

    def command(self, tree, argv):
        return ["ovl", tree, f"{self.top}/up", f"{self.top}/wk", *argv]

    def finish(self, tree):
        self.place.throw(self.top)


class Stet(Variant):
    name, title, layered = "stet", "stet", True

    def command(self, tree, argv):
        return ["stet", "run", "--quiet", "--on-success", "keep", "--on-failure", "keep",
                "--", *argv]

    def start_up(self, tree):
        # As a person types it: a command that changes nothing leaves nothing to decide on.
        return ["stet", "run", "--quiet", "--", "true"]

    def finish(self, tree):
        # Not pruned: see Place.throw().
        quiet(["stet", "rollback"], tree, self.env)

    def finish_start_up(self, tree):
        pass


class Bwrap(Variant):
    name, title = "bwrap", "bwrap"

    def command(self, tree, argv):
        # With a /dev, which work needs; the network as all others have it.
        return ["bwrap", "--unshare-all", "--share-net", "--bind", "/", "/", "--dev", "/dev",
                "--proc", "/proc", *argv]

    def start_up(self, tree):
        return ["bwrap", "--unshare-all", "--bind", "/", "/", "true"]


class Firejail(Variant):
    name, title = "firejail", "firejail"

    def command(self, tree, argv):
        return ["firejail", "--noprofile", "--quiet", "--", *argv]


class FuseOverlay(Overlay):
    """In rows of work its mount is made beforehand: not timed, in its favour."""

    name, title = "fuse", "fuse-overlayfs"

    def options(self, tree):
        return f"lowerdir={tree},upperdir={self.top}/up,workdir={self.top}/wk"

    def prepare(self, tree):
        self.make(tree)
        quiet(["fuse-overlayfs", "-o", self.options(tree), f"{self.top}/mnt"], tree, self.env)
        return f"{self.top}/mnt"

    def command(self, tree, argv):
        return argv

    def start_up(self, tree):
        mnt = f"{self.top}/mnt"
        return ["sh", "-c", 'fuse-overlayfs -o "$1" "$2" && true && fusermount3 -u "$2"',
                "sh", self.options(tree), mnt]

    def finish(self, tree):
        quiet(["fusermount3", "-u", "-z", f"{self.top}/mnt"], "/", self.env, check=False)
        super().finish(tree)


def all_variants(place):
    return {c.name: c(place) for c in (Native, Overlay, Stet, Bwrap, Firejail, FuseOverlay)}
