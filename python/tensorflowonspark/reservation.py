"""Who is here: the driver's Server, which is a process `crema coordinator`, and its clients.

The nodes of a cluster are members that stay: the coordinator watches over them (cluster/coordinator.h). A Client only
reserves a place and asks. All of them prove the token of the run first; nothing is pickled.
"""

import os
import socket
import threading
import time

from tensorflowonspark import _coordinator, _door, _wire, _yarn, util
from tensorflowonspark._about import about, meta_of

TFOS_SERVER_PORT, TFOS_SERVER_HOST = "TFOS_SERVER_PORT", "TFOS_SERVER_HOST"
BUFSIZE, MAX_RETRIES = 1024, 3
TOKEN = "CREMA_TOKEN"  # environment: the run's secret in hexadecimal, for a Client in another process than the Server's

_FOREVER = 1e8
_tokens = {}  # address of a Server of this process: its token


def token_of(cluster_meta=None, server_addr=None):
    """The secret of a run: of its cluster_meta, else of a Server of this process (at server_addr, or the last one),
    else of the environment (CREMA_TOKEN). Exception, with what to pass, when there is none.
    """
    meta = cluster_meta or {}
    address = server_addr or meta.get("server_addr")
    token = meta.get("token") or _tokens.get(tuple(address) if address else next(reversed(_tokens), None))
    if token is None and TOKEN in os.environ:
        try:
            token = bytes.fromhex(os.environ[TOKEN])
        except ValueError:
            raise Exception(f"{TOKEN} is not hexadecimal: set it to cluster_meta['token'].hex() of the run") from None
    if token is None:
        raise Exception(f"there is no token for the cluster at {address}: pass cluster_meta['token'], or set {TOKEN}")
    return token


class Reservations:
    """What was reserved of `required` places. Thread-safe."""

    def __init__(self, required):
        self.required = required
        self._lock = threading.Condition()
        self._all = []

    def add(self, meta):
        with self._lock:
            self._all.append(meta)
            self._lock.notify_all()

    def remove(self, meta):
        """One that was added, if it is there."""
        with self._lock:
            if meta in self._all:
                self._all.remove(meta)
            self._lock.notify_all()

    def done(self):
        return self.remaining() <= 0

    def get(self):
        with self._lock:
            return list(self._all)

    def remaining(self):
        return self.required - len(self.get())


class Server:
    """The driver's end.

    Args:
      count: how many nodes there will be.
      timeout: seconds for all of them to come; then the run fails, at both ends.
      say: called with each Event (a dict, proto/wire.proto) from a thread of the server's; raises nothing.
      encrypted: what its clients and it say to each other is sealed.
    """

    def __init__(self, count, timeout=_FOREVER, say=None, encrypted=False):
        assert count > 0, "Expected number of reservations should be greater than zero"
        self.reservations, self.done = Reservations(count), False
        self.error = self.late = None  # why the run has failed; what is called while nodes are awaited
        self.reported = False  # the error of the run, by an exception
        self.token = os.urandom(32)
        self._count, self._timeout, self._say, self._encrypted = count, timeout, say, encrypted
        self._changed = threading.Condition()
        self._started = self._over = self._too_few = False
        self._places = {}  # by the coordinator's number of a place: who has it
        self._coordinator = self._socket = None

    def get_server_ip(self):
        """TFOS_SERVER_HOST, or this machine's address."""
        return os.environ.get(TFOS_SERVER_HOST) or util.get_ip_address()

    def get_server_ports(self):
        """The ports that TFOS_SERVER_PORT allows, `N` or `A-B`; [0] when it is not set."""
        text = os.environ.get(TFOS_SERVER_PORT, "0")
        try:
            ends = [int(p) for p in text.split("-")]
            if len(ends) > 2 or not 0 <= ends[0] <= ends[-1] <= 65535:
                raise ValueError
        except ValueError:
            raise Exception(f"Invalid TFOS_SERVER_PORT: {text}") from None
        return list(range(ends[0], ends[-1] + 1))

    def start_listening_socket(self):
        """A socket that listens on the first of the ports that is free."""
        ports = self.get_server_ports()
        for port in ports:
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("", port))
                sock.listen(1024)
            except OSError:
                sock.close()
                continue
            self._socket = sock
            return sock
        raise Exception(f"Reservation server unable to bind to any ports, port_list = {ports}")

    def start(self):
        """Starts the coordinator; returns its (host, port)."""
        sock = self.start_listening_socket()
        job = {
            "workers": self._count,
            "host": "0.0.0.0",
            "token": self.token,
            "encrypted": self._encrypted,
            "join_timeout": self._timeout,
            "step_timeout": 60,
            "node": {"listener": sock.fileno()},
        }
        address = (self.get_server_ip(), sock.getsockname()[1])
        try:
            self._coordinator = _coordinator.Coordinator(sock, job, self._take, self._ended)
        finally:
            sock.close()
            self._socket = None
        _tokens[address] = self.token
        return address

    def _ended(self, code):
        with self._changed:
            if not self._over and self.error is None:
                self.error = f"`crema coordinator` has ended with code {code}; its lines stand in this driver's stderr"
            self._over = True
            self._changed.notify_all()

    def _take(self, event):
        with self._changed:
            if "joined" in event:
                meta = meta_of(event["joined"].get("about", b""))
                self.reservations.add(meta)
                self._places[event["joined"].get("worker", 0)] = meta
            if "lost" in event:  # while others are awaited: its next attempt will join
                self.reservations.remove(self._places.pop(event["lost"].get("worker", 0), None))
            if "started" in event:
                self._started = True
            if "failed" in event:
                self.error = event["failed"].get("story", "the run has failed")
                self._too_few = not self._started and event["failed"].get("kind") == "timeout"
                if event["failed"].get("kind") == "data":
                    _yarn.failed(self.error)
            if "done" in event:
                self._over = True
            if "note" in event:
                note = _wire.decode("NodeNote", event["note"].get("text", b""))
                if "stop" in note or note.get("state", {}).get("state") == '"terminating"':
                    self.done = True
            self._changed.notify_all()
        if self._say:
            self._say(event)

    def wait(self, condition, timeout=None, status=None, meanwhile=None):
        """Until condition() holds, the run has failed, or `timeout` seconds are over; false in that last case.
        Exception with the run's error, or status["error"]. meanwhile: called about once a second.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not condition():
                error = self.error or (status or {}).get("error")
                if error:
                    raise self.failure(error)
                if self._over:
                    raise Exception("the run is over")
                left = 1 if deadline is None else min(1, deadline - time.monotonic())
                if left <= 0:
                    return False
                self._changed.wait(left)
                if meanwhile:
                    meanwhile()
        return True

    def failure(self, error=None):
        """The exception for an error of the run, which is reported with it."""
        self.reported = True
        return Exception(error or self.error)

    def await_reservations(self, sc=None, status=None, timeout=600):
        """What all nodes say about themselves, when all are there. Exception when they are not after `timeout` seconds,
        or when status["error"] is set, or when the run fails.
        """
        late = "timed out waiting for reservations to complete"
        try:
            if not self.wait(lambda: self._started, timeout, status, self.late):
                here = self._count - self.reservations.remaining()
                raise Exception(
                    f"{late}: {here} of {self._count} nodes are here after {timeout:g} s; free that many executor "
                    "slots, ask for fewer, or raise reservation_timeout"
                )
        except Exception as e:
            if self._too_few:  # the coordinator's clock was faster
                raise Exception(f"{late}: {e}") from None
            raise
        return self.reservations.get()

    def note(self, **fields):
        """Says a NodeNote to all nodes."""
        text = _wire.encode("NodeNote", fields)
        self._coordinator.say(Input={"note": {"text": text}})

    def finish(self, timeout, failed=None):
        """Asks all nodes to end, and waits for it. Exception with the run's error; false after `timeout` seconds.
        failed: why the feed is not complete, which programs that wait for rows get as an error.
        """
        self.note(end={"failed": failed})
        self._coordinator.say(Input={"wish": {"stop": True}})
        return self.wait(lambda: self._over and self.error is None, timeout)

    def stuck(self, why):
        """Has programs ended that have not ended by themselves. Exception with where they stood."""
        self.note(stuck={"story": why})
        self.wait(lambda: False, 10)
        raise Exception(f"a program {why}, and its node does not answer; it has been ended")

    def stop(self):
        """Ends the coordinator; nodes that are still there end with it."""
        self.done = True
        if self._socket:
            self._socket.close()
        if self._coordinator is None:
            return
        with self._changed:
            self._over = True
        self._coordinator.stop()


class Client:
    """Reserves and asks at a Server.

    Args:
      server_addr: its (host, port).
      token: the run's secret; by default that of a Server of this process, or of the environment (CREMA_TOKEN).
    """

    def __init__(self, server_addr, token=None):
        server_addr = tuple(server_addr)
        self.server_addr = server_addr
        self._door = _door.Connection(server_addr, token or token_of(server_addr=server_addr), "control")

    def _members(self, wait=False, brief=False):
        """What the members say; brief: nothing, as this only waits until what was sent is done."""
        self._door.send("ToCoordinator", {"query": {"wait": wait, "brief": brief}})
        while True:
            message, _ = self._door.receive("ToMember", _FOREVER if wait else None)
            if "abort" in message:
                raise Exception(message["abort"].get("story", "the run has failed"))
            if "members" in message:
                return [meta_of(a) for a in message["members"].get("about", [])]

    def register(self, reservation):
        """Reserves a place for a dict of numbers, str, bytes, lists and dicts; returns 'OK'."""
        from tensorflowonspark import __version__

        who = {"version": __version__, "host": socket.gethostname(), "pid": os.getpid(), "about": about(reservation)}
        hello = {**who, "member": -1, "brief": True}
        self._door.send("ToCoordinator", {"hello": hello})
        self._members(brief=True)
        return "OK"

    def get_reservations(self):
        """What has been reserved so far."""
        return self._members()

    def await_reservations(self):
        """What has been reserved, when all places are."""
        return self._members(wait=True)

    def request_stop(self):
        """Asks for the end of a stream (Server.done)."""
        note = {"text": _wire.encode("NodeNote", {"stop": {}})}
        self._door.send("ToCoordinator", {"report": {"note": note}})
        self._members(brief=True)

    def close(self):
        self._door.close()
