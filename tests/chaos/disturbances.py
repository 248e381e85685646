"""What can happen to the workers of a run, drawn by a seed: a list of (second, what, which worker, for how long)."""

import contextlib
import os
import random
import signal
import socket
import time


class Schedule:
    """seconds: how long the undisturbed run takes; deadline: after how much silence a worker is given up. apart:
    workers are processes of their own, which nobody starts again and which get SIGTERM;
    those of `crema train` ignore it.
    """

    def __init__(self, seed, seconds, deadline):
        draw = random.Random(seed)
        self.seed, self.workers, self.deadline = seed, draw.randint(2, 8), deadline
        self.replacement = draw.choice(["continue", "continue", "wait"])
        self.apart = draw.random() < 0.25
        if self.apart:
            self.workers, self.replacement = min(self.workers, 4), "continue"
        self.hit, self.killed = set(), set()  # processes that may be given up; those that have ended at once
        self.ended = False  # all got SIGTERM
        weights = [6, 3, 2, 4, 3] if self.apart else [6, 3, 2, 0, 0]
        self.events = sorted(
            (
                draw.uniform(0, 1.2 * seconds),
                draw.choices(["kill", "stop", "garbage", "term", "end"], weights)[0],
                draw.randrange(64),
                draw.choice([0.01, 0.1, 0.5 * deadline, 0.95 * deadline, 1.1 * deadline, 1.5 * deadline]),
            )
            for _ in range(draw.choice([1, 1, 2, 2, 3, 5]))
        )

    def __str__(self):
        what = ", ".join(f"{at:.2f} s: {name} {who} ({t:.2f} s)" for at, name, who, t in self.events)
        where = "workers apart" if self.apart else "workers"
        return f"seed {self.seed}: {self.workers} {where}, replacement {self.replacement}; {what}"

    def run(self, process, workers_of):
        """Disturbs the workers of this process, which workers_of() lists, until it ends or all is done. Stopped ones
        are woken again.
        """
        begin, wake = time.monotonic(), []
        todo = list(self.events)
        while process.poll() is None and (todo or wake):
            now = time.monotonic() - begin
            for at, pid in [w for w in wake if w[0] <= now]:
                signalled(pid, signal.SIGCONT)
                wake.remove((at, pid))
            if todo and todo[0][0] <= now:
                _, name, who, lasts = todo.pop(0)
                workers = workers_of()
                if not workers:
                    continue
                pid = workers[who % len(workers)]
                if name in ("kill", "term") or (name == "stop" and lasts > 0.4 * self.deadline):
                    self.hit.add(pid)
                if name == "kill":
                    self.killed.add(pid)
                    signalled(pid, signal.SIGKILL)
                elif name == "term":
                    signalled(pid, signal.SIGTERM)
                elif name == "end":
                    self.ended = True
                    self.hit.update(workers)
                    for each in workers:
                        signalled(each, signal.SIGTERM)
                elif name == "stop":
                    signalled(pid, signal.SIGSTOP)
                    wake.append((now + lasts, pid))
                else:
                    for port in ports(pid) + ports(process.pid):
                        visit(port, who)
            time.sleep(0.002)
        for _, pid in wake:
            signalled(pid, signal.SIGCONT)


def signalled(pid, sign):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def ports(pid):
    """The TCP ports at which a process listens."""
    try:
        descriptors = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        lines = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
    except (FileNotFoundError, ProcessLookupError):
        return []
    sockets = {d[8:-1] for d in descriptors if d.startswith("socket:")}
    return [int(words[1].split(":")[1], 16) for words in lines if words[3] == "0A" and words[9] in sockets]


def visit(port, seed):
    """An unauthenticated client's bytes: nothing, noise, or the beginning of another protocol."""
    noise = random.Random(seed).randbytes(seed * 97)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as s:
        s.sendall([b"", noise, b"GET / HTTP/1.1\r\n\r\n"][seed % 3])
