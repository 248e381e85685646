"""The queues and the state of a node, which its feeding tasks, its program and its shutdown share.

They live in a process of `crema node`; a TFManager is a client of it. (The original kept them in a Python process,
which every row passed three times.)
"""

import contextlib
import json
import os
import socket
import threading
import time
from queue import Empty

from tensorflowonspark import _block, _door, _node, _wire, marker

_FOREVER = 1e8


class NodeError(Exception):
    """The node has failed, or it refuses a request; the message says why."""


class _Value:
    """A value of the state, which prints as the original's proxies do: repr() of it."""

    def __init__(self, value):
        self._value = value

    def _getvalue(self):
        return self._value

    def __repr__(self):
        return repr(self._value)

    def __eq__(self, other):
        return self._value == (other._value if isinstance(other, _Value) else other)

    __hash__ = None


class TFManager:
    """A client of a node.

    Args:
      address: the name of the node's private socket, or (host, port) of a node of another machine.
      authkey: the run's token, bytes.
    """

    def __init__(self, address, authkey, process=None):
        self.address, self._authkey, self._process = address, authkey, process
        self._lock = threading.Lock()
        self._door = None

    def _opened(self):
        return _door.Connection(self.address, self._authkey, "node")

    def _ask(self, fields, timeout=None):
        """The answer to a request, and its descriptor or None. NodeError when it is refused."""
        with self._lock:
            if self._door is None:
                self._door = self._opened()
            try:
                return _ask(self._door, fields, timeout)
            except OSError:  # its answer may come later, and would be taken for that of another request
                self._door.close()
                self._door = None
                raise

    def get_queue(self, qname):
        """The queue of that name. NodeError, with the names there are, at the first use of one that there is not."""
        return Queue(self, qname)

    def get(self, key):
        """A value of the state; KeyError when there is none. `str()` of it is its repr(), as in the original."""
        answer, _ = self._ask({"look": {"key": str(key)}})
        if not answer.get("taken"):
            raise KeyError(key)
        return _Value(json.loads(answer.get("value", b"null")))

    def set(self, key, value):
        """Sets a value, of what JSON can hold, for all clients of the node."""
        self._ask({"set": {"key": str(key), "value": json.dumps(value).encode()}})

    def port(self):
        """A socket that is bound to the port which the node holds for the program; None when it holds none."""
        try:
            _, descriptor = self._ask({"port": {}})
        except NodeError:
            return None
        return socket.socket(fileno=descriptor)

    def release_port(self):
        """The node holds the port no longer."""
        self._ask({"release": {}})

    def fail(self, message):
        """Says that the program has failed, before its process ends: all waits of the node end with that."""
        self._ask({"fail": {"story": message}})

    def stuck(self, message, seconds):
        """Says that the program does nothing that a feeding task waits for: the node ends it, and shows its stack.
        False, and it does nothing, when the program took or answered rows in the last `seconds`.
        """
        answer, _ = self._ask({"stuck": {"story": message, "seconds": seconds}})
        return bool(answer.get("taken"))

    def shutdown(self):
        """Ends the process of start(); of connect(), closes the connection."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            self._process.close()

    def __reduce__(self):
        return TFManager, (self.address, self._authkey)


def _ask(door, fields, timeout=None):
    door.send("NodeRequest", fields)
    return _answer(door, timeout)


def _answer(door, timeout=None):
    """timeout: how long the node may take, beside what a message takes."""
    answer, descriptor = door.receive("NodeAnswer", None if timeout is None else timeout + door.timeout)
    if answer.get("failed"):
        raise NodeError(answer["failed"])
    return answer, descriptor


class Queue:
    """A queue of rows, with the methods of multiprocessing's JoinableQueue. One thread at a time.

    put() takes what _columns.py can hold, None for the end of the feed, and marks.
    """

    def __init__(self, manager, name):
        self.name, self._manager = name, manager
        self._door = None
        self._rows, self._at, self._open = [], 0, []  # of the block that get() is in; blocks that are not done
        self._connecting = threading.Lock()
        self._unread = 0  # answers of done()

    def ask(self, fields, timeout=None):
        if self._door is None:
            with self._connecting:
                self._door = self._door or self._manager._opened()
        self._door.send("NodeRequest", fields)
        return self._answer(timeout)

    def _answer(self, timeout=None):
        """The answer to the last request, behind those of done() before it."""
        while self._unread:
            self._unread -= 1
            _answer(self._door)
        return _answer(self._door, timeout)

    def put(self, item, block=True, timeout=None):
        seconds = _FOREVER if block and timeout is None else (timeout or 0)
        if item is None or isinstance(item, marker.EndPartition):
            mark = _wire.END_OF_FEED if item is None else _wire.END_OF_PARTITION
            self.ask({"put": {"queue": self.name, "mark": mark, "timeout": seconds}}, seconds)
            return
        self.put_rows([item], seconds)

    def put_rows(self, rows, seconds=_FOREVER, feed=None, keep=None):
        """One block of rows. False: the program wants no more."""
        with contextlib.closing(_block.of_rows(rows)) as block:
            self.send_block(block, len(rows), seconds, feed, keep)
            return self.sent(seconds)

    def send_block(self, block, rows, seconds=_FOREVER, feed=None, keep=None, place=None):
        """A block of _block.write(), without the answer, which sent() takes: the next one can be made meanwhile.

        place: of its first row, where rows are sharded (NodeRequest.Place).
        """
        if self._door is None:
            self._door = self._manager._opened()
        put = {"queue": self.name, "rows": rows, "bytes": block.size, "feed": feed, "keep": keep, "timeout": seconds}
        put["place"] = place
        if self._door.local:
            self._door.send("NodeRequest", {"put": put}, block.fd)
        else:
            self._door.send("NodeRequest", {"put": dict(put, follows=True)})
            self._door.send_file(block.fd, block.size, seconds)

    @property
    def local(self):
        """Whether blocks travel as descriptors, and not as bytes to another machine."""
        return self._door.local

    def sent(self, seconds=_FOREVER):
        return bool(self._answer(seconds)[0].get("taken"))

    def take(self, seconds=_FOREVER, feed=None):
        """The next (mark, block, first, count, bytes): a mark or a _block.Block, of which rows [first, first + count)
        are this client's; of END_OF_EPOCH `first` and `count` are the most and the least rows that any node had. None
        at the timeout. done() gives a block's bytes back.
        """
        request = {"get": {"queue": self.name, "feed": feed, "timeout": seconds}}
        answer, descriptor = self.ask(request, seconds)
        if not answer.get("taken"):
            return None
        if "block" in answer:
            descriptor = os.memfd_create("crema-rows", os.MFD_CLOEXEC)
            os.write(descriptor, answer["block"])
        if "epoch" in answer:
            return answer["mark"], None, answer["epoch"].get("most"), answer["epoch"].get("least"), 0
        block = _block.Block(descriptor) if descriptor is not None else None
        return answer.get("mark", 0), block, answer.get("first", 0), answer.get("count", 0), answer.get("bytes", 0)

    def done(self, size, count=1):
        """Of blocks of take(): `count` of them are done with, which join() waits for, and `size` bytes are given back,
        which make room for more. The answer is read before that of the next request: a program that takes block after
        block waits once for each.
        """
        self._door.send("NodeRequest", {"done": {"queue": self.name, "bytes": size, "count": count}})
        self._unread += 1

    def get(self, block=True, timeout=None):
        if self._at < len(self._rows):
            self._at += 1
            return self._rows[self._at - 1]
        seconds = _FOREVER if block and timeout is None else (timeout or 0)
        mark = _wire.END_OF_EPOCH
        while mark == _wire.END_OF_EPOCH:
            taken = self.take(seconds)
            if taken is None:
                raise Empty
            mark, memory, first, count, size = taken
            if mark == _wire.END_OF_EPOCH:
                self.done(0)
        if memory is None:
            self._open.append([0, 1])
            return None if mark == _wire.END_OF_FEED else marker.EndPartition()
        self._open.append([size, count])
        self._rows, self._at = memory.column.rows(first, first + count), 1
        return self._rows[0]

    def get_nowait(self):
        return self.get(False)

    def put_nowait(self, item):
        self.put(item, False)

    def task_done(self):
        """Of one row of get(). ValueError when it is called more often than that."""
        if not self._open:
            raise ValueError("task_done() called too many times")
        self._open[0][1] -= 1
        if self._open[0][1] == 0:
            self.done(self._open.pop(0)[0])

    def join(self, timeout=_FOREVER):
        """Until all that was put has been taken and is done. TimeoutError after `timeout` seconds."""
        answer, _ = self.ask({"join": {"queue": self.name, "timeout": timeout}}, timeout)
        if not answer.get("taken"):
            raise TimeoutError(f"queue '{self.name}' is not empty after {timeout:g} s")

    def qsize(self):
        """Blocks and marks that wait."""
        return self.ask({"count": {"queue": self.name}})[0].get("count", 0)

    def empty(self):
        return self._at >= len(self._rows) and self.qsize() == 0

    def drop(self):
        """Throws away what waits; returns how many rows that were."""
        self._rows, self._at, self._open = [], 0, []
        return self.ask({"drop": {"queue": self.name}})[0].get("count", 0)


def start(authkey, queues, mode="local"):
    """Starts a node without a cluster, which ends with this process, and returns a TFManager of it.

    Args:
      authkey: bytes that its clients must know.
      queues: names.
      mode: "local" or "remote"; both are the same here: clients are processes of this machine.
    """
    if mode not in ("local", "remote"):
        raise ValueError(f"mode must be 'local' or 'remote', not {mode!r}")
    token = bytes(authkey) if len(authkey) >= 16 else bytes(authkey) + b"." * (16 - len(authkey))
    process = _node.NodeProcess({"token": token, "node": {"queue": list(queues), "alone": True}})
    address, _, _ = process.ready(time.monotonic() + 60)
    return TFManager(address, token, process)


def connect(address, authkey):
    """A TFManager of the node whose private socket has that name. ConnectionError when there is none."""
    manager = TFManager(address, authkey)
    manager._ask({"look": {"key": "state"}})
    return manager
