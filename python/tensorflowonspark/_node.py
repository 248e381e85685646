"""The process `crema node`, as the task that starts it sees it."""

import os
import select
import subprocess
import time

from tensorflowonspark import _executable, _wire, util


def executor_pid():
    """The JVM that this Python worker belongs to; 0 when there is none."""
    pid = os.getpid()
    for _ in range(8):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                stat = f.read()
        except OSError:
            return 0
        name, rest = stat[stat.index(b"(") + 1 : stat.rindex(b")")], stat[stat.rindex(b")") + 2 :].split()
        if name == b"java":
            return pid
        pid = int(rest[1])
        if pid <= 1:
            return 0
    return 0


class NodeProcess:
    """Starts `crema node` and talks to it over its pipes.

    Args:
      job: the fields of Job (proto/wire.proto).
      lines: Lines of a program that runs in this process.
    """

    def __init__(self, job, lines=None):
        if lines is not None:
            job = {**job, "node": {**job["node"], "lines": lines.node.fileno()}}
        self._process = subprocess.Popen(
            [_executable.local(), "node"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[] if lines is None else [lines.node.fileno()],
            start_new_session=util.task_context() is None,  # on the driver, whose Ctrl-C is not for its servers
        )
        if lines is not None:
            lines.given()
        self._write(_wire.delimited("Job", job))

    def _write(self, data):
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended: its last event, or the end of its events, says why

    def say(self, **fields):
        """One NodeInput."""
        self._write(_wire.delimited("NodeInput", fields))

    def event(self, deadline):
        """The next NodeEvent. TimeoutError at the deadline (time.monotonic()); RuntimeError when the node has failed or
        is gone.
        """
        ready, _, _ = select.select([self._process.stdout], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError("the node's process says nothing")
        event = _wire.read_delimited("NodeEvent", self._process.stdout)
        if event is None:
            code = self._process.wait()
            raise RuntimeError(
                f"the process `crema node` has ended with {'signal' if code < 0 else 'code'} {abs(code)}; its lines "
                "stand in this executor's stderr"
            )
        if "failed" in event:
            raise RuntimeError(event["failed"].get("story", "the node has failed"))
        return event

    def ready(self, deadline):
        """(name of the private socket, port of the program or 0, host:port for other executors or "")"""
        ready = self.event(deadline)["ready"]
        return ready["address"], ready.get("port", 0), ready.get("feed", "")

    def started(self):
        """What all members say about themselves, when all are there. The coordinator's deadline ends the wait."""
        return [_wire.decode("NodeAbout", a) for a in self._next("started").get("about", [])]

    def _next(self, what):
        while True:
            try:
                event = self.event(time.monotonic() + 3600)
            except TimeoutError:
                continue
            if what in event:
                return event[what]

    def computing(self):
        """The pid of the program."""
        return self._next("computing")["pid"]

    def over(self):
        """Returns when the run is over for all."""
        self._next("over")

    def stuck(self):
        """Returns when the node wants to know where the program stands, which runs in this process."""
        self._next("stuck")

    def leave(self):
        """The node stays, and this process may go."""
        self.say(leave={})
        self._process.stdin.close()
        self._process.stdout.close()

    def close(self):
        """Ends a node that has no cluster."""
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
