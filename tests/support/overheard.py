"""What processes of this machine say to each other."""

import contextlib
import socket
import threading

import pytest


class Overheard:
    """All that passes the loopback device while it is open."""

    def __enter__(self):
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
            self.socket.bind(("lo", 0))
        except (OSError, AttributeError) as e:
            pytest.skip(f"only root may listen to what others say: {e}")
        self.socket.settimeout(0.2)
        self.parts, self.over = [], False
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()
        return self

    def _listen(self):
        while not self.over:
            with contextlib.suppress(socket.timeout):
                self.parts.append(self.socket.recv(1 << 17))

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.socket.close()

    def text(self):
        return b"".join(self.parts)
