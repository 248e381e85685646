"""Daemons that are found again and stopped: each has a file with pid and start time, a process group, and a mark in
the environment. The mark (CREMA_TESTBED=FOLDER) is inherited by everything a daemon starts, so that a YARN
container, which has a session of its own, is found even after its NodeManager has ended.
"""

import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import time

MARK = "CREMA_TESTBED"


class DaemonFailed(Exception):
    """A daemon did not start: which, why, and the end of its log."""


def start_time(pid):
    """The start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); None when there is no such
    process or it is a zombie.
    """
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def free_ports(count):
    """Free ports below the range of the kernel's ephemeral ports, so that none is taken before its daemon binds it."""
    found = set()
    while len(found) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                found.add(port)
            except OSError:
                pass
    return list(found)


class Processes:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).absolute()
        self.pids, self.logs = self.folder / "pids", self.folder / "logs"

    def start(self, name, command, environment):
        for folder in (self.pids, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        with open(self.logs / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [str(w) for w in command],
                cwd=self.folder,
                env={**environment, MARK: str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        (self.pids / name).write_text(f"{process.pid} {start_time(process.pid)}\n")

    def pid(self, name):
        """The pid of the daemon of this name, if that is still the process that was started; else None."""
        try:
            pid, born = (self.pids / name).read_text().split()
        except FileNotFoundError:
            return None
        now = start_time(pid)
        # Born is None when it ended before its start time could be read.
        return int(pid) if now is not None and str(now) == born else None

    def names(self):
        return sorted(p.name for p in self.pids.glob("*"))

    def log_end(self, name, lines=25):
        return "\n".join((self.logs / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def wait(self, names, ready, seconds, what):
        """Waits until ready() is true; raises early when one of the daemons has ended."""
        deadline = time.monotonic() + seconds
        while not ready():
            for name in names:
                if self.pid(name) is None:
                    raise DaemonFailed(
                        f"{name} ended before {what}; the end of {self.logs}/{name}.log:\n{self.log_end(name)}"
                    )
            if time.monotonic() > deadline:
                ends = "\n".join(f"--- the end of {self.logs}/{name}.log\n{self.log_end(name, 8)}" for name in names)
                raise DaemonFailed(f"waited {seconds} s for {what}\n{ends}")
            time.sleep(0.2)

    def marked(self):
        """All processes that carry this folder's mark."""
        mark, found = f"{MARK}={self.folder}".encode(), []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0") and start_time(entry.name) is not None:
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def stop(self, grace=5):
        """Asks all daemons to end, then kills all processes with the mark, in several rounds, as some may just be
        starting others.
        """
        for name in self.names():
            pid = self.pid(name)
            if pid is not None:
                signal_group(pid, signal.SIGTERM)
        wait_gone(self.marked, grace)
        for _ in range(5):
            for pid in self.marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if wait_gone(self.marked, 2):
                break
        for name in self.names():
            (self.pids / name).unlink()
        return not self.marked()

    def stop_only(self, names):
        """Kills these daemons with their process groups, and no others."""
        for name in names:
            pid = self.pid(name)
            if pid is not None:
                signal_group(pid, signal.SIGKILL)
                wait_gone(lambda name=name: self.pid(name), 5)
            (self.pids / name).unlink()


def signal_group(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def wait_gone(find, seconds):
    """Waits until no process is left; true when that is so. Zombies count as gone."""
    deadline = time.monotonic() + seconds
    while True:
        if not find():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
