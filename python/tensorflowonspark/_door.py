"""Connections to the ports of `crema`: both ends prove that they hold the token (engine/base/handshake.h), and nothing
is said before. Then frames of messages, with descriptors on a Unix socket.
"""

import hashlib
import hmac
import os
import random
import socket
import struct
import time

from tensorflowonspark import _wire

_MAGIC = b"CREMA001"
_PART = 1 << 20  # bytes of a file that are sent at once
_LONGEST = 1e6  # seconds; Python's sockets take no more than about ten days to wait


_REFUSALS = 10  # after our proof: of a crowd of clients somebody with the right token is not sent away that often


class Refused(ConnectionError):
    """The other end has closed the connection before it proved the token.

    Args:
      proved: our proof had been sent.
    """

    def __init__(self, proved=False):
        super().__init__("the connection was closed")
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
    hello = _exactly(sock, len(_MAGIC) + 32)
    if hello[: len(_MAGIC)] != _MAGIC:
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


class Connection:
    """An authenticated connection. One thread at a time.

    Args:
      address: (host, port), or the name of a socket in the abstract namespace.
      token: bytes; purpose: "control" for a coordinator, "node" for a node.
      timeout: seconds to connect, and for each message afterwards that is not said to take longer.
    """

    def __init__(self, address, token, purpose, timeout=60):
        self.timeout, self.local = timeout, isinstance(address, str)
        deadline, pause, refusals = time.monotonic() + timeout, 0.05, 0
        while True:
            try:
                self.socket = self._connected(address, max(0.1, deadline - time.monotonic()))
                try:
                    _prove(self.socket, token, purpose.encode())
                    return
                except BaseException:
                    self.socket.close()
                    raise
            except (Refused, ConnectionResetError, BrokenPipeError, socket.timeout) as e:
                # Of very many clients at once some are sent away before they could prove anything.
                pause = min(pause * 2, 1) * random.uniform(0.5, 1)
                refusals += getattr(e, "proved", False)
                if refusals == _REFUSALS or time.monotonic() + pause > deadline:
                    raise ConnectionError(
                        f"cannot prove the token of this cluster at {address}: {e}; a wrong token looks like this"
                    ) from None
                time.sleep(pause)

    @staticmethod
    def _connected(address, timeout):
        if not isinstance(address, str):
            sock = socket.create_connection(tuple(address), timeout=timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            sock.connect("\0" + address)
        except BaseException:
            sock.close()
            raise
        return sock

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
        self.socket.close()
