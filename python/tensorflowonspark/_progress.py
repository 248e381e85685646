"""What the driver shows of a cluster: who is there, how fast rows go in and out, which side waits."""

import sys
import threading
import time

from tensorflowonspark import _about, _wire

_EVERY = 5  # seconds between two lines about the feed


def _say(text):
    print(f"crema: {text}", file=sys.stderr, flush=True)


def _waiting(nodes, before, seconds):
    """Which side waited for how much of the time, over all nodes."""
    idle = sum(n.get("idle", 0) - before.get(i, {}).get("idle", 0) for i, n in nodes.items())
    full = sum(n.get("full", 0) - before.get(i, {}).get("full", 0) for i, n in nodes.items())
    share = max(idle, full) / (seconds * max(1, len(nodes)))
    if share < 0.1:
        return ""
    side = "the program waits for rows" if idle > full else "the feed waits for the program"
    return f"; {side} {min(share, 1):.0%} of the time"


class Progress:
    """Takes the coordinator's events.

    Args:
      count: nodes.
    """

    def __init__(self, count):
        self.count = count
        self._lock = threading.Lock()
        self._expected = {}  # (kind, serial): list of answers
        self._nodes, self._before = {}, {}
        self._time = time.monotonic()

    def expect(self, kind, serial, answers):
        with self._lock:
            self._expected[kind, serial] = answers

    def take(self, event):
        if "joined" in event:
            joined = event["joined"]
            meta = _about.meta_of(joined.get("about", b""))
            role = f"{meta['job_name']}:{meta['task_index']}" if "job_name" in meta else "a client"
            _say(
                f"node {meta.get('executor_id', '?')} ({role}) is there ({joined['have']} of {joined['want']}, "
                f"host {joined.get('host', '?')})"
            )
        if "note" in event:
            self._note(event["note"].get("member", -1), _wire.decode("NodeNote", event["note"].get("text", b"")))

    def _note(self, member, note):
        with self._lock:
            for kind in ("drained", "replayed"):
                if kind in note and (kind, note[kind].get("serial")) in self._expected:
                    self._expected[kind, note[kind]["serial"]].append(note[kind])
            if "fed" in note:
                self._nodes[member] = note["fed"]
                self._show(False)

    def _show(self, last):
        now = time.monotonic()
        if not self._nodes or (now - self._time < _EVERY and not last):
            return
        put, taken = (sum(n.get(k, 0) for n in self._nodes.values()) for k in ("rows", "taken"))
        were = sum(n.get("taken", 0) for n in self._before.values())
        seconds = max(now - self._time, 0.001)
        rate = "" if last else f", {(taken - were) / seconds:.0f} rows/s{_waiting(self._nodes, self._before, seconds)}"
        _say(f"fed {put} rows, {taken} taken{rate}")
        self._before, self._time = dict(self._nodes), now

    def end(self):
        with self._lock:
            if self._nodes != self._before:
                self._show(True)
