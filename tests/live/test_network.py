# SPDX-License-Identifier: Apache-2.0
"""The network is the host's, and said to be beyond undo; with --no-network there is none."""
import socket
import uuid

import pytest

# Says what it could reach, one a line; of a datagram only the receiver knows.
CLIENT = r"""
import socket, sys
tcp, udp, name = int(sys.argv[1]), int(sys.argv[2]), "\0" + sys.argv[3]
def attempt(what, kind, address):
    try:
        with socket.socket(*kind) as s:
            s.settimeout(5)
            s.connect(address)
            s.send(b"out")
            print(what)
    except OSError:
        pass
attempt("tcp", (socket.AF_INET, socket.SOCK_STREAM), ("127.0.0.1", tcp))
attempt("", (socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", udp))
attempt("abstract", (socket.AF_UNIX, socket.SOCK_STREAM), name)
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    s.listen()
    attempt("own", (socket.AF_INET, socket.SOCK_STREAM), s.getsockname())
"""


class Outside:
    """What listens on the host, and whether anything came."""

    def __init__(self):
        self.tcp, self.udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        for s in (self.tcp, self.udp):
            s.bind(("127.0.0.1", 0))
            s.setblocking(False)
        self.tcp.listen()
        self.unix, self.name = socket.socket(socket.AF_UNIX), f"stet-{uuid.uuid4()}"
        self.unix.bind("\0" + self.name)
        self.unix.setblocking(False)
        self.unix.listen()

    def client(self):
        return ("python3", "-c", CLIENT, str(self.tcp.getsockname()[1]),
                str(self.udp.getsockname()[1]), self.name)

    def heard(self):
        """Of all that listens, what has heard something since the last time."""
        found = []
        for what, s, listen in (("tcp", self.tcp, lambda s: s.accept()[0].close()),
                                ("udp", self.udp, lambda s: s.recv(10)),
                                ("abstract", self.unix, lambda s: s.accept()[0].close())):
            try:
                listen(s)
                found.append(what)
            except BlockingIOError:
                pass
        return found

    def close(self):
        for s in (self.tcp, self.udp, self.unix):
            s.close()


@pytest.fixture(name="outside")
def fixture_outside():
    o = Outside()
    yield o
    o.close()


def effects(stet, work):
    return [e["kind"] for e in stet("status", "--json", cwd=work).ok().json()["txn"]["not_undoable"]]


def test_shared(stet, work, outside):
    r = stet.run(*outside.client(), cwd=work, opts=("--on-success", "keep")).ok()
    assert {"tcp", "own"} <= set(r.out.split())
    assert {"tcp", "udp"} <= set(outside.heard())
    assert effects(stet, work) == ["network"]


def test_none(stet, work, outside):
    """Nothing gets out, its own loopback works, and no effect of that kind is claimed."""
    r = stet.run(*outside.client(), cwd=work,
                 opts=("--no-network", "--on-success", "keep")).ok()
    assert r.out.split() == ["own"]
    assert effects(stet, work) == []
    # Nor does whoever goes in later, or goes on from there.
    assert stet("explore", "-q", "--", *outside.client(), cwd=work).ok().out.split() == ["own"]
    stet("checkpoint", cwd=work).ok()
    r = stet("fork", "--at", "0", "-q", "--", *outside.client(), cwd=work).ok()
    assert r.out.split() == ["own"]
    assert outside.heard() == []


def test_none_for_a_call(stet, work, outside):
    r = stet("exec", "--json", "--no-network", "--", *outside.client(), cwd=work).ok().json()
    assert r["stdout"].split() == ["own"]
    # Its checks are in there, too.
    check = " ".join(f"'{w}'" for w in outside.client())
    stet("exec", "--no-network", "--check", f"{check} | grep -qx own", "--", "true", cwd=work).ok()
    assert outside.heard() == []


def test_its_interfaces_are_not_the_insides(stet, work):
    """Nobody inside can join what he has to what the host has, not even root."""
    stet.sh("test $(grep -c : /proc/net/dev) = 1 && ! ip link set lo down 2>/dev/null && "
            "! nsenter -t 1 -n true 2>/dev/null", cwd=work, opts=("--no-network", "--no-policy")).ok()
