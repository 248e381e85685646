"""What can happen to the workers of a run and to its coordinator, drawn by a seed: (second, what, which worker, for how
long, how). That one comes later is among it.
"""

import collections
import contextlib
import os
import pathlib
import random
import signal
import socket
import time

import clocks
import sockets
from sockets import ports

# What, and how often among the others. SIGTERM reaches only workers that are processes of their own: those of
# `crema train` ignore it.
WEIGHTS = dict(kill=6, stop=3, garbage=2, cut=3, half=2, hole=3, slow=2, power=2, full=2, jump=2)
WEIGHTS_APART = {**WEIGHTS, "term": 4, "end": 3}
DAY = 86_400  # seconds
JUMPS = [3600, -3600, -DAY, 3653 * DAY]  # of a wall clock
RATES = [20_000, 200_000, 2_000_000]  # bytes a second of a slow link
MESH_TIMEOUTS = 12  # deadlines after which workers between which packets vanish meet again (cluster/patience.h)


class Schedule:
    """seconds: how long the undisturbed run takes; deadline: after how much silence a worker is given up. apart:
    workers are processes of their own, which nobody starts again. coordinator: it is disturbed in any case.
    """

    def __init__(self, seed, seconds, deadline, long=False, coordinator=False):
        draw = random.Random(seed)
        self.seed, self.workers, self.deadline = seed, draw.randint(2, 8), deadline
        self.replacement = draw.choice(["continue", "continue", "wait"])
        self.apart = draw.random() < 0.25
        if self.apart:
            self.workers, self.replacement = min(self.workers, 4), "continue"
        self.hit, self.killed = set(), set()  # processes that may be given up; those that have ended at once
        self.last_hit = 0.0  # when the last one of them was
        self.met = collections.Counter()  # what has happened of the events, by their words
        self.ended = self.filled = False  # all got SIGTERM; the disk was full
        weights = WEIGHTS_APART if self.apart else WEIGHTS
        self.events = sorted(
            (
                draw.uniform(0, 1.2 * seconds),
                draw.choices(list(weights), weights.values())[0],
                draw.randrange(64),
                draw.choice([0.01, 0.1, 0.5 * deadline, 0.95 * deadline, 1.1 * deadline, 1.5 * deadline]),
                draw.randrange(12),
            )
            for _ in range(draw.choice([1, 1, 2, 2, 3, 5]))
        )
        if long and draw.random() < 0.04:
            # Workers between which packets vanish: each run takes half a minute.
            self.events = [
                (0.5 * seconds, "hole", draw.randrange(64), (MESH_TIMEOUTS + 2) * deadline, draw.choice([1, 4, 7]))
            ]

        self.flags = ["-step_timeout", str(deadline), "-replacement", self.replacement]
        self.flags += ["-rebalance", "0.2"]  # seconds: ranks move as well, wherever speeds differ
        self.flags += ["-encrypt"] * (draw.random() < 0.2)
        self.first = self.workers  # with how many it begins
        if self.apart and draw.random() < 0.5:
            self.first = draw.randint(1, self.workers - 1)
            self.flags += ["-first_workers", str(self.first), "-join_timeout", "20"]
            late = range(self.first, self.workers)
            self.events = sorted(self.events + [(draw.uniform(0, seconds), "join", w, 0, 0) for w in late])
        self.led = 0.0  # when the coordinator was killed, or went on after a stop that workers notice
        if coordinator or draw.random() < 0.15:
            self.events = sorted([*self.events, self.coordinators(draw, seconds)])

    def coordinators(self, draw, seconds):
        """Of the process that has the coordinator: of `crema train` the parent of all workers."""
        kind = draw.choice(["crash", "freeze"])
        lasts = draw.choice([0.1, *(n * self.deadline for n in (0.95, 1.5, 2.5))])
        return draw.uniform(0, seconds), kind, 0, lasts, 0

    def __str__(self):
        what = ", ".join(f"{at:.2f} s: {name} {who} ({t:.2f} s, {how})" for at, name, who, t, how in self.events)
        where = "workers apart" if self.apart else "workers"
        return f"seed {self.seed}: {self.workers} {where} {' '.join(self.flags)}; {what}"

    def run(self, process, workers_of, disk=None, start=None):
        """Disturbs the workers of this process, which workers_of() lists, until it ends or all is done and over.
        start(worker): of those that come later.
        """
        begin, over = time.monotonic(), []  # (second, what ends a disturbance)
        todo = list(self.events)
        try:
            while process.poll() is None and (todo or over):
                now = time.monotonic() - begin
                for at, end in [o for o in over if o[0] <= now]:
                    over.remove((at, end))
                    end()
                if todo and todo[0][0] <= now:
                    _, name, who, lasts, how = todo.pop(0)
                    if name == "join":
                        start(who)
                    elif end := self.disturb(process.pid, workers_of(), disk, name, who, lasts, how):
                        over.append((now + lasts, end))
                time.sleep(0.002)
        finally:
            for _, end in over:
                end()

    def disturb(self, coordinator, workers, disk, name, who, lasts, how):
        """Returns what ends it, or None."""
        if name in ("crash", "freeze"):
            self.met[name] += 1
            return getattr(self, name)(coordinator, lasts)
        workers = [w for w in workers if begun(w)]
        if not workers:
            return None
        before, disturber = len(self.hit), Disturber(self, coordinator, workers, disk)
        end = getattr(disturber, name)(workers[who % len(workers)], who, lasts, how)
        self.met[name] += disturber.met
        if len(self.hit) > before:
            self.last_hit = time.monotonic()
        return end

    def crash(self, coordinator, _):
        self.led = time.monotonic()
        signalled(coordinator, signal.SIGKILL)

    def freeze(self, coordinator, lasts):
        signalled(coordinator, signal.SIGSTOP)

        def end():
            signalled(coordinator, signal.SIGCONT)
            if lasts > 0.4 * self.deadline:
                self.led = time.monotonic()

        return end


class Disturber:
    """A function for each word of WEIGHTS; what it returns ends the disturbance."""

    def __init__(self, schedule, coordinator, workers, disk):
        self.schedule, self.coordinator, self.workers, self.disk = schedule, coordinator, workers, disk
        self.met = True  # whether there was something to disturb

    def silent(self, pid, lasts):
        if lasts > 0.4 * self.schedule.deadline:
            self.schedule.hit.add(pid)

    def ends_at_once(self, pid):
        self.schedule.hit.add(pid)
        self.schedule.killed.add(pid)

    def kill(self, pid, *_):
        self.ends_at_once(pid)
        signalled(pid, signal.SIGKILL)

    def power(self, pid, *_):
        self.ends_at_once(pid)
        return sockets.Severed(pid).close

    def term(self, pid, *_):
        self.schedule.hit.add(pid)
        signalled(pid, signal.SIGTERM)

    def end(self, *_):
        self.schedule.ended = True
        self.schedule.hit.update(self.workers)
        for each in self.workers:
            signalled(each, signal.SIGTERM)

    def stop(self, pid, _, lasts, __):
        self.silent(pid, lasts)
        signalled(pid, signal.SIGSTOP)
        return lambda: signalled(pid, signal.SIGCONT)

    def garbage(self, pid, who, *_):
        for port in ports(pid) + ports(self.coordinator):
            visit(port, who)

    def jump(self, pid, who, _, how):
        """The wall clock of a worker or of the coordinator, who are as well as before."""
        pid = self.coordinator if who % (len(self.workers) + 1) == 0 else pid
        self.met = not clocks.possible() and clocks.jump(pid, JUMPS[how % len(JUMPS)])

    def full(self, *_):
        self.met = bool(self.disk)
        if self.disk:
            self.schedule.filled = True
            self.disk.fill()
            return self.disk.free

    def links(self, pid, who, how):
        """By how: the worker's connection to the coordinator, one to another worker, or all that it has."""
        control, mesh = sockets.connections(pid, self.coordinator, self.workers)
        found = [control, mesh[who % len(mesh) :][:1] if mesh else [], control + mesh][how % 3]
        self.met = bool(found)
        return found

    def cut(self, pid, who, _, how):
        links = self.links(pid, who, how)
        if links and how % 3 != 1:
            self.ends_at_once(pid)
        for near, _ in links:
            sockets.cut(near)

    def half(self, pid, who, _, how):
        """Either end of it may be the one that closes."""
        links = self.links(pid, who, how)
        if links and how % 3 != 1:
            self.ends_at_once(pid)
        for near, far in links:
            sockets.half_close(far if far and how % 2 else near)

    def hole(self, pid, who, lasts, how):
        """In both directions or in one."""
        if how % 3 != 1:
            self.silent(pid, lasts)
        sides = [(0, 1), (0,), (1,), (0, 1)][how // 3]
        deaf = [pair[side] for pair in self.links(pid, who, how) for side in sides if pair[side]]
        for end in deaf:
            with end.held() as own:
                if own:
                    sockets.black_hole(own)
        return lambda: [sockets.heal(end) for end in deaf]

    def slow(self, pid, who, _, how):
        both = [end for pair in self.links(pid, who, how) for end in pair if end]
        for end in both:
            sockets.slow(end, RATES[how // 4])
        return lambda: [sockets.slow(end) for end in both]


def begun(pid):
    """Whether it runs the worker's program. Before, it is a copy of who starts it, and has that one's connections."""
    with contextlib.suppress(OSError):
        return b"\0worker\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def signalled(pid, sign):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def visit(port, seed):
    """An unauthenticated client's bytes: nothing, noise, or the beginning of another protocol."""
    noise = random.Random(seed).randbytes(seed * 97)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as s:
        s.sendall([b"", noise, b"GET / HTTP/1.1\r\n\r\n"][seed % 3])
