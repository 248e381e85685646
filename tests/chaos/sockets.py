"""What can happen to the TCP connections of processes that this one has started, without help from them: pidfd_getfd
(Linux 5.6) gives a second descriptor of another process's socket, and what is done to one is done to the connection.
Against a proxy: a worker tells the others the address at which it listens, so none can stand between two workers, and
what a proxy delays or loses follows from its own buffers. Against network namespaces, which machines.py has: one
connection of many is meant here, and nobody has to be root.

A descriptor here keeps a connection open whose process has ended. So each is closed at once; only Severed keeps them.
"""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import signal
import socket
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438  # on every architecture
SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_MAX_PACING_RATE = 26, 27, 47
NO_LIMIT = 2**64 - 1
LISTENS, ESTABLISHED = "0A", "01"


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


DROP_ALL = Instruction(0x06, 0, 0, 0)  # return 0: of the packet no byte is kept


@dataclasses.dataclass(frozen=True)
class End:
    """One end of a connection, or a listening socket, as long as the process has it."""

    pid: int
    inode: str
    local: str
    remote: str
    state: str

    @contextlib.contextmanager
    def held(self):
        """The socket, or None when it is gone."""
        own = duplicate(self.pid, self.inode)
        try:
            yield own
        finally:
            if own:
                own.close()

    def port(self):
        return int(self.local.split(":")[1], 16)


def descriptors(pid):
    """The descriptors of a process that are sockets, by inode."""
    found = {}
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                to = os.readlink(f"/proc/{pid}/fd/{fd}")
                if to.startswith("socket:"):
                    found[to[8:-1]] = int(fd)
    return found


def duplicate(pid, inode):
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        own = LIBC.syscall(PIDFD_GETFD, process, descriptors(pid).get(inode, -1), 0)
    finally:
        os.close(process)
    if own < 0:
        return None
    if os.readlink(f"/proc/self/fd/{own}") != f"socket:[{inode}]":  # the number has another file by now
        os.close(own)
        return None
    return socket.socket(fileno=own)


def ends(pid):
    """The TCP sockets of a process."""
    own, found = descriptors(pid), []
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, state, _, _, _, _, _, inode, *_ = line.split()
            if inode in own:
                found.append(End(pid, inode, local, remote, state))
    return found


def ports(pid):
    """The TCP ports at which a process listens."""
    return [e.port() for e in ends(pid) if e.state == LISTENS]


def connections(pid, coordinator, others):
    """(the worker's end, the other end) of its connections: the one to the coordinator, those to other workers."""
    doors = {e.local.split(":")[1] for e in ends(coordinator) if e.state == LISTENS}
    far = {(e.remote, e.local): e for p in {coordinator, *others} - {pid} for e in ends(p) if e.state == ESTABLISHED}
    pairs = [(e, far.get((e.local, e.remote))) for e in ends(pid) if e.state == ESTABLISHED]
    to_it = [p for p in pairs if p[0].remote.split(":")[1] in doors]
    return to_it, [p for p in pairs if p not in to_it and p[1]]


def possible():
    """Why sockets of other processes cannot be had here; "" when they can."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            with End(child, str(os.fstat(one.fileno()).st_ino), "", "", LISTENS).held() as own:
                return "" if own else "the system refuses pidfd_getfd (Linux 5.6 has it, ptrace must be allowed)"
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def cut(end):
    """Ends the connection at once: the other end gets a reset, this one an error at its next call."""
    with end.held() as own:
        if own:
            LIBC.connect(own.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)


def half_close(end):
    """The other end reads its end; what it sends still arrives."""
    with end.held() as own, contextlib.suppress(OSError):
        if own:
            own.shutdown(socket.SHUT_WR)


def black_hole(own):
    """Packets to this socket vanish: no data, no acknowledgement, no end of the connection, no new connection."""
    own.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HxxxxxxQ", 1, ctypes.addressof(DROP_ALL)))


def heal(end):
    with end.held() as own, contextlib.suppress(OSError):
        if own:
            own.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def slow(end, rate=NO_LIMIT):
    """What this end sends leaves it at so many bytes a second."""
    with end.held() as own:
        if own:
            own.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("Q", rate))


class Severed:
    """The machine of a process without power: it is killed, and no connection ends, until close()."""

    def __init__(self, pid):
        self.sockets = [s for s in (duplicate(pid, e.inode) for e in ends(pid)) if s]
        for own in self.sockets:
            black_hole(own)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def close(self):
        for own in self.sockets:
            own.close()
