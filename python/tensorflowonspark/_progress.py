"""What the driver shows of a cluster: who is there, how fast rows go in and out, which side waits, and what failed."""

import contextlib
import logging
import re
import sys
import threading
import time

from tensorflowonspark import _about, _story, _wire, util
from tensorflowonspark._columns import RowError

logger = logging.getLogger(__name__)

_ROW_ERROR = re.compile(
    r"^tensorflowonspark\._columns\.RowError: (.+)$", re.MULTILINE
)  # in a Python worker's traceback

_EVERY = 5  # seconds between two lines about the feed
_LATE = 10  # seconds between two lines about who is not there


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


def share_of_tasks(sc, epochs):
    """How much of a feed of so many epochs is over in its first one: by Spark's tasks that are done."""
    if util.is_connect(sc):
        return None
    stages = filter(None, map(sc.statusTracker().getStageInfo, sc.statusTracker().getActiveStageIds()))
    parts = [stage.numCompletedTasks / max(1, stage.numTasks) for stage in stages]
    return max(parts, default=0) / epochs


class Progress:
    """Takes the coordinator's events.

    Args:
      roles: {executor_id: "worker:0"} of the nodes.
    """

    def __init__(self, roles):
        self._missing, self._names = dict(roles), {}  # of members
        self._places = {}  # of members: executor_id and role
        self._left = set()  # members whose programs have ended before their rows
        self._asked = time.monotonic()  # when who is not there was last looked at
        self._lock = threading.Lock()
        self._expected = {}  # (kind, serial): list of answers
        self._nodes, self._before = {}, {}
        self._time = time.monotonic()
        self._feed = None  # (when it began, rows taken before, share()) of the feed that is on
        self._part = 0, 0.0  # how much of it was taken when that last changed, and how long that took for all of it

    def feed(self, share):
        """A feed begins, or has ended (None). share(rows): how much of it has been taken, 0 to 1, when the program has
        taken so many rows of it; None when that is not known.
        """
        with self._lock:
            taken = sum(n.get("taken", 0) for n in self._nodes.values())
            self._feed = share and (time.monotonic(), taken, share)
            self._part = 0, 0.0

    def _remaining(self, taken):
        """ ", 40 s left", when that can be known. A share that changes seldom, as that of tasks which are done, gives
        an estimate of the whole when it does, from which the time since then is taken away.
        """
        if self._feed is None:
            return ""
        began, before, share = self._feed
        part, passed = min(share(taken - before) or 0, 1), time.monotonic() - began
        if part != self._part[0]:
            self._part = part, passed / part if part else 0.0
        seconds = self._part[1] - passed
        if seconds <= 0:
            return ""
        return f", {seconds / 60:.0f} min left" if seconds > 100 else f", {seconds:.0f} s left"

    def late(self):
        """Says, a few times a minute, which nodes are not there."""
        with self._lock:
            if not self._missing or time.monotonic() - self._asked < _LATE:
                return
            self._asked = time.monotonic()
            names = ", ".join(list(self._missing.values())[:8]) + (", ..." if len(self._missing) > 8 else "")
            _say(f"waiting for {len(self._missing)} node(s): {names}; each takes a free task slot of an executor")

    def expect(self, kind, serial, answers):
        with self._lock:
            self._expected[kind, serial] = answers

    def take(self, event):
        """One event. A line that cannot be shown ends nothing: who calls this reads what the nodes say."""
        try:
            self._take(event)
        except Exception as e:
            logger.warning("a line about the nodes cannot be shown: %s", e)

    def _take(self, event):
        if "joined" in event:
            joined = event["joined"]
            meta = _about.meta_of(joined.get("about", b""))
            role = f"{meta['job_name']}:{meta['task_index']}" if "job_name" in meta else "a client"
            name = f"node {meta.get('executor_id', '?')} ({role})"
            with self._lock:
                self._missing.pop(meta.get("executor_id"), None)
                self._names[joined.get("worker", 0)] = name
                self._places[joined.get("worker", 0)] = meta.get("executor_id"), role
            _say(f"{name} is there ({joined['have']} of {joined['want']}, host {joined.get('host', '?')})")
        if "lost" in event:
            with self._lock:
                number, role = self._places.get(event["lost"].get("worker", 0), (None, ""))
                if number is not None:
                    self._missing[number] = role
            _say(f"{event['lost'].get('story', 'a node was lost')}; the next attempt of its task takes its place")
        if "note" in event:
            self._note(event["note"].get("member", -1), _wire.decode("NodeNote", event["note"].get("text", b"")))

    def _note(self, member, note):
        with self._lock:
            for kind in ("counted", "drained", "replayed"):
                if kind in note and (kind, note[kind].get("serial")) in self._expected:
                    self._expected[kind, note[kind]["serial"]].append(note[kind])
            if "fed" in note:
                self._nodes[member] = note["fed"]
                if note["fed"].get("left") and member not in self._left:
                    self._left.add(member)
                    _say(
                        f"the program of {self._names.get(member, 'a node')} has ended and left rows, and did not call "
                        "DataFeed.terminate(), which says that no more are wanted: all that it is fed is dropped"
                    )
                self._show(False)

    def _show(self, last):
        now = time.monotonic()
        if not self._nodes or (now - self._time < _EVERY and not last):
            return
        put, taken = (sum(n.get(k, 0) for n in self._nodes.values()) for k in ("rows", "taken"))
        were = sum(n.get("taken", 0) for n in self._before.values())
        seconds = max(now - self._time, 0.001)
        rate = "" if last else f", {(taken - were) / seconds:.0f} rows/s{_waiting(self._nodes, self._before, seconds)}"
        _say(f"fed {put} rows, {taken} taken{rate}{'' if last else self._remaining(taken)}")
        self._before, self._time = dict(self._nodes), now

    def end(self, failed):
        """A last line, unless the run has failed: what nodes said before does not count what they did last."""
        with self._lock:
            if not failed and self._nodes != self._before:
                self._show(True)


@contextlib.contextmanager
def explained(server):
    """In a `with`: the error of a node instead of that of the Spark tasks which it has ended, and of Spark's others a
    sentence behind its hundreds of lines.
    """
    try:
        yield
    except Exception as error:
        deadline = time.monotonic() + 2  # the coordinator's event may be a moment behind Spark's
        while server.error is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if server.error is not None:
            raise server.failure() from None
        refused = _ROW_ERROR.search(str(error))
        if refused:
            raise RowError(refused.group(1)) from None
        if not type(error).__module__.startswith(("py4j.", "pyspark.")):
            raise
        raise _story.JobError(_story.of_job(error)) from error
