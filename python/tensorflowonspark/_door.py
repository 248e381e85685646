"""Connections to the ports of `crema`: both ends prove that they hold the token (engine/base/handshake.h), and nothing
is said before. Then frames of messages, with descriptors on a Unix socket. To another machine the executable carries
them (`crema relay`): it sums or seals what travels, and Python's library has no cipher.
"""

import hashlib
import hmac
import os
import random
import socket
import struct
import subprocess
import time

from tensorflowonspark import _executable, _wire

_MAGIC, _UNPROTECTED = b"CREMA002", b"0"  # within a machine nothing protects what is said
_PART = 1 << 20  # bytes of a file that are sent at once
_GRACE = 5  # seconds more than it was given, for a relay
_LONGEST = 1e6  # seconds; Python's sockets take no more than about ten days to wait


_REFUSALS = 10  # after our proof: of a crowd of clients somebody with the right token is not sent away that often


class Refused(ConnectionError):
    """The other end has closed the connection before it proved the token.

    Args:
      proved: our proof had been sent.
    """

    def __init__(self, proved=False, why="the connection was closed"):
        super().__init__(why)
        self.proved = proved


def _mac(token, role, purpose, nonces):
    text = role + b"\0" + purpose + b"\0" + nonces
    return hmac.new(hashlib.sha256(token).digest(), text, hashlib.sha256).digest()


def _exactly(sock, size):
    parts = []
    while size:
        part = sock.recv(size)
        if not part:
            raise Refused
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _prove(sock, token, purpose):
    hello = _exactly(sock, len(_MAGIC) + 1 + 32)
    if not hello.startswith(_MAGIC + _UNPROTECTED):
        raise ConnectionError("the other end does not speak this protocol; are all parts of one version?")
    mine = os.urandom(32)
    nonces = hello[len(_MAGIC) :] + mine
    try:
        sock.sendall(mine + _mac(token, b"client", purpose, nonces))
        answer = _exactly(sock, 32)
    except (Refused, ConnectionResetError, BrokenPipeError):
        raise Refused(proved=True) from None
    if not hmac.compare_digest(answer, _mac(token, b"server", purpose, nonces)):
        raise ConnectionError("the other end does not hold the token of this cluster")


def _connected(name, timeout):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect("\0" + name)
    except BaseException:
        sock.close()
        raise
    return sock


class _Relay:
    """A process that carries what is said on `socket` to an address, and back."""

    def __init__(self, address, purpose, timeout):
        host, port = address
        host = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        command = [_executable.local(), "relay", "-to", to, "-purpose", purpose, "-timeout", str(timeout)]
        self.socket, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(command, stdin=its, stdout=subprocess.DEVNULL, start_new_session=True)
        self.socket.settimeout(timeout + _GRACE)

    def prove(self, token):
        self.socket.sendall(struct.pack("<I", len(token)) + token)
        if _exactly(self.socket, 1) == b"+":
            return
        why = _exactly(self.socket, struct.unpack("<I", _exactly(self.socket, 4))[0]).decode()
        if "cannot connect" in why:
            raise ConnectionRefusedError(why)
        raise Refused(proved=True, why=why)

    def end(self):
        try:
            self._process.wait(_GRACE)  # it ends with the socket
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Connection:
    """An authenticated connection. One thread at a time.

    Args:
      address: (host, port), or the name of a socket in the abstract namespace.
      token: bytes; purpose: "control" for a coordinator, "node" for a node.
      timeout: seconds to connect, and for each message afterwards that is not said to take longer.
    """

    def __init__(self, address, token, purpose, timeout=60):
        self.timeout, self.local = timeout, isinstance(address, str)
        self.socket = self._relay = None
        deadline, pause, refusals = time.monotonic() + timeout, 0.05, 0
        while True:
            try:
                self._open(address, token, purpose, max(0.1, deadline - time.monotonic()))
                return
            except (Refused, ConnectionResetError, BrokenPipeError, socket.timeout) as e:
                # Of very many clients at once some are sent away before they could prove anything.
                pause = min(pause * 2, 1) * random.uniform(0.5, 1)
                refusals += getattr(e, "proved", False)
                if refusals == _REFUSALS or time.monotonic() + pause > deadline:
                    raise ConnectionError(
                        f"cannot prove the token of this cluster at {address}: {e}; a wrong token looks like this"
                    ) from None
                time.sleep(pause)

    def _open(self, address, token, purpose, timeout):
        try:
            if self.local:
                self.socket = _connected(address, timeout)
                _prove(self.socket, token, purpose.encode())
            else:
                self._relay = _Relay(address, purpose, timeout)
                self.socket = self._relay.socket
                self._relay.prove(token)
        except BaseException:
            self.close()
            raise

    def send(self, message, fields, descriptor=None):
        frame = _wire.framed(message, fields)
        self.socket.settimeout(self.timeout)
        if descriptor is None:
            self.socket.sendall(frame)
            return
        sent = socket.send_fds(self.socket, [frame], [descriptor])
        self.socket.sendall(frame[sent:])

    def send_file(self, fd, size, timeout):
        """The first bytes of a file behind a message, whose reader may take them up to `timeout` seconds later."""
        self.socket.settimeout(min(timeout + self.timeout, _LONGEST))
        at = 0
        while at < size:
            part = os.pread(fd, min(_PART, size - at), at)
            if not part:
                raise OSError(f"a block of {size} bytes has {at}")
            self.socket.sendall(part)
            at += len(part)

    def receive(self, message, timeout=None):
        """(fields, descriptor or None) of the next message. TimeoutError after `timeout` seconds."""
        self.socket.settimeout(self.timeout if timeout is None else max(timeout, 0.001))
        descriptor = None
        head = b""
        while len(head) < 4:
            part, descriptors, _, _ = socket.recv_fds(self.socket, 4 - len(head), 4)
            for fd in descriptors:
                if descriptor is not None:
                    os.close(descriptor)
                descriptor = fd
            if not part:
                raise ConnectionError("the connection was closed")
            head += part
        self.socket.settimeout(self.timeout)
        return _wire.decode(message, _exactly(self.socket, struct.unpack("<I", head)[0])), descriptor

    def close(self):
        if self.socket is not None:
            self.socket.close()
        if self._relay is not None:
            self._relay.end()
