"""The process `crema coordinator`, a child of the driver."""

import contextlib
import queue
import subprocess
import threading

from tensorflowonspark import _executable, _wire


class Coordinator:
    """Starts it and listens to it, in one thread, as the kernel ends it with the thread that has started it. It has a
    session of its own: Ctrl-C, and a notebook's interrupt, are the driver's to answer.

    Args:
      listener: a socket that listens, which it inherits.
      job: the fields of Job (proto/wire.proto).
      take: called with each Event.
      ended: called behind the last one, with the exit code.
    """

    def __init__(self, listener, job, take, ended):
        self._listener, self._take, self._ended = listener, take, ended
        self._command, begun = [_executable.local(), "coordinator", "-job", "-"], queue.SimpleQueue()
        threading.Thread(target=self._run, args=(begun,), name="reservation server", daemon=True).start()
        failed = begun.get(timeout=60)
        if failed is not None:
            raise failed
        self.say(Job=job)

    def _run(self, begun):
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[self._listener.fileno()],
                start_new_session=True,
            )
        except Exception as e:
            begun.put(e)
            return
        begun.put(None)
        while True:
            try:
                event = _wire.read_delimited("Event", self._process.stdout)
            except (OSError, ValueError):
                event = None
            if event is None:
                break
            self._take(event)
        self._ended(self._process.wait())

    def say(self, **messages):
        """Messages by their types: their fields."""
        try:
            for message, fields in messages.items():
                self._process.stdin.write(_wire.delimited(message, fields))
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # its last event says how it ended

    def running(self):
        return self._process.poll() is None

    def stop(self):
        """Ends it; nodes that are still there end with it."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
