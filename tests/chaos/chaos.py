#!/usr/bin/env python3
"""Disturbed runs, each compared with the undisturbed one: chaos.py [-n RUNS] [-s FIRST_SEED] [-k KIND...] [-c]

Every run ends with the model, the snapshots and the outputs of tests that the undisturbed run has, and never goes back
to an earlier step. Where the schedule hits all of its workers that have a state, or the coordinator, or fills the disk,
it may end with an error, within the deadline and two seconds, and with whole snapshots, from which `-resume auto` goes
on to that model.
No process and no temporary file is left. A seed repeats its schedule; what the machine makes of it may differ.
test_judge.py has runs that must not pass.

Disturbed are connections where the system gives other processes' sockets (sockets.py), wall clocks where it gives their
memory (clocks.py), the disk where it gives a namespace of mounts (disk.py); elsewhere this is said.
"""

import argparse
import collections
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import clocks  # noqa: E402
import disk  # noqa: E402
import sockets  # noqa: E402
from disturbances import Schedule  # noqa: E402
from nets import KINDS, RANKS, SNAPSHOT, write  # noqa: E402

from conftest import CREMA, children, make_lmdb, running, wait_until  # noqa: E402
from support import judge  # noqa: E402

DEADLINE = 2.0  # seconds of silence


class Home:
    """The folder of a run, whose snapshots and model go to `disk` in it: that of its own, or a small one."""

    def __init__(self, folder, small=None):
        self.folder, self.small = folder, small
        self.disk = small.path if small else folder / "disk"

    def empty(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.small:
            self.small.clear()
            (self.folder / "disk").symlink_to(self.small.point)
        else:
            self.disk.mkdir()

    def start(self, log, *arguments):
        command = [CREMA, *map(str, arguments)]
        return self.launch(log, self.small.command(self.folder, *command) if self.small else command)

    def launch(self, log, command):
        with open(self.folder / log, "w") as out:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


class Outcome:
    """logs: the first is of the process whose exit code counts, which says who is lost. at: when it had ended; over:
    when all workers had.
    """

    def __init__(self, home, code, at, logs=("run.log",)):
        self.at, self.over = at, time.monotonic()
        self.code, self.logs = code, [(home.folder / log).read_text(errors="replace") for log in logs]
        self.log = self.logs[0]
        there = list(home.disk.iterdir())
        files = [f for f in there if f.name == "model" or f.name.startswith("snap_iter_")]
        self.files = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
        self.began = set(re.findall(r"Iteration (\d+), Testing net", "".join(self.logs)))
        self.tests = set().union(*map(judge.outputs, self.logs))
        self.left = [
            f.name
            for f in [*home.folder.iterdir(), *there]
            if ".crema-tmp-" in f.name or f.name.startswith("crema-rows-")
        ]


def run(home, *flags, disturb=None, limit=90):
    own = f"train -solver solver.prototxt -ranks {RANKS} -threads 1 -model disk/model".split()
    process, workers = home.start("run.log", *own, *flags), set()

    def seen():
        now = children(process.pid)
        workers.update(now)
        return now

    try:
        if disturb:
            disturb(process, seen)
        seen()
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        code = f"still running {limit} s after the last disturbance"
    finally:  # also of one that is interrupted
        process.kill()
        process.wait()
    at = time.monotonic()
    end = at + DEADLINE + 3
    while any(running(p) for p in workers) and time.monotonic() < end:
        time.sleep(0.01)
    outcome = Outcome(home, code, at)
    outcome.left += [f"process {p}" for p in workers if running(p)]
    return outcome


def run_apart(home, schedule, limit=90):
    """Coordinator and workers as a scheduler starts them; only one that computes is disturbed."""
    folder = home.folder
    (folder / "token").write_bytes(os.urandom(32))
    flags = f"-solver solver.prototxt -token_file token -ranks {RANKS} -workers {schedule.workers}".split()
    flags += schedule.flags
    logs = ["run.log"]  # and those of the workers that came

    def said(pattern):
        return re.search(pattern, (folder / "run.log").read_text(errors="replace"))

    processes = [home.start("run.log", "coordinator", *flags)]
    coordinator, left, at = processes[0], [], 0.0
    try:
        wait_until(lambda: said(r"Listening on (\S+)\n"), 30, "the coordinator's address")
        own = ["-threads", 1, "-model", "disk/model", "-coordinator", said(r"Listening on (\S+)\n").group(1)]

        def start(w):
            processes.append(home.start(f"worker{w}.log", "worker", *flags, *own, "-worker", w))
            logs.append(f"worker{w}.log")

        for w in range(schedule.first):
            start(w)
        wait_until(lambda: said("Iteration ") or coordinator.poll() is not None, 60, "the first step")
        schedule.run(coordinator, lambda: [w.pid for w in processes[1:] if w.poll() is None], home.small, start)
        coordinator.wait(limit)
        at = time.monotonic()
        for process in processes:
            process.wait(limit)
    except subprocess.TimeoutExpired:
        left = [f"process {p.args[-1]} {p.pid}" for p in processes if p.poll() is None]
    finally:  # also of one that is interrupted
        for process in processes:
            process.kill()
            process.wait()
    outcome = Outcome(home, coordinator.returncode, at, logs)
    outcome.left += left
    return outcome


class Kind:
    """A net with its undisturbed run. small: the disk of its snapshots and models, or None for the folder's own."""

    def __init__(self, folder, records, name, small=None, long=False):
        self.home, self.records, self.name, self.long = Home(folder, small), records, name, long
        begin = time.monotonic()
        self.calm = run(self.fresh(), "-workers", "3")
        self.seconds = time.monotonic() - begin
        assert self.calm.code == 0 and not self.calm.left, self.calm.log[-2000:]
        assert "model" in self.calm.files and len(self.calm.files) > 5, self.calm.files

    def fresh(self):
        self.home.empty()
        write(self.home.folder, self.records, self.name)
        return self.home

    def disturbed(self, seed, coordinator=False):
        """Returns what is wrong, "" for nothing, whether the run ended with an error, and how often it met each kind of
        disturbance. coordinator: as Schedule has it.
        """
        schedule = Schedule(seed, self.seconds, DEADLINE, self.long, coordinator)
        if schedule.apart:
            got = run_apart(self.fresh(), schedule)
        else:
            flags = ["-workers", str(schedule.workers), *schedule.flags]
            got = run(self.fresh(), *flags, disturb=lambda *of: schedule.run(*of, self.home.small))
        lost = got.code == 1 and re.search(r"crema: error: worker \d+ .*(was lost|silent|told to end)", got.log)
        full = got.code == 1 and schedule.filled and judge.ended_by_full_disk(got.log)
        led = schedule.led and got.code in (1, -signal.SIGKILL)
        early = bool(lost or full or led)
        wrong = self.after_end(got, schedule, full or led) if early else self.differences(got, schedule)
        if not schedule.led or got.code == 0:  # what a coordinator says that wakes, and ends, is of before its sleep
            wrong += judge.went_back(got.log)
        wrong += [f"iteration {i}: the output of a test is {o}" for i, o in sorted(got.tests - self.calm.tests)]
        logs = "".join(log[-3000:] for log in got.logs)
        return (f"{self.name}, {schedule}\n  {wrong}\n{logs}" if wrong else ""), early, +schedule.met

    def after_end(self, got, schedule, excused):
        """excused: it may have ended although workers could go on."""
        left = [] if excused else judge.survivors(got.log, schedule.first, schedule.hit, schedule.killed)
        wrong = [f"it ended although workers {left} could go on; hit were {sorted(schedule.hit)}"] if left else []
        wrong += [f"{f} differs" for f in got.files if self.calm.files.get(f, got.files[f]) != got.files[f]] + got.left
        quiet = all(name in ("term", "end", "garbage", "slow", "join", "jump") for _, name, *_ in schedule.events)
        if schedule.ended and quiet and not excused and "go on from there with -snapshot" not in got.log:
            wrong.append("no snapshot is named, although all workers were told to end")
        whole_links = not any(name in ("slow", "hole") for _, name, *_ in schedule.events)
        # A worker that is started by hand when the coordinator is gone may be there before it.
        joins = any(re.search("cannot connect to .*\n.*while joining", log) for log in got.logs[1:])
        if schedule.led and not joins and got.over - schedule.led > DEADLINE + 2:
            wrong.append(f"workers ended {got.over - schedule.led:.1f} s after the coordinator")
        if not excused and whole_links and got.at - schedule.last_hit > DEADLINE + 2:
            wrong.append(f"it ended {got.at - schedule.last_hit:.1f} s after the last worker was hit")
        if not schedule.apart:  # SIGTERM makes snapshots at any step, which resuming checks
            wrong += self.extra(got)
        again = run(self.home, "-workers", "2", "-resume", "auto")
        same = again.files.get("model") == self.calm.files["model"] or self.name == "sequences"
        if again.code != 0 or not same:  # of sequences a snapshot holds no state
            wrong.append(f"-resume auto: exit code {again.code}, another model: {again.log[-500:]}")
        return wrong

    def extra(self, got):
        """What is wrong with files that the undisturbed run has not: only snapshots that a new leader took beside due
        ones are right, and from these comes the same model; of sequences a snapshot holds no state.
        """
        wrong, extra = [], [f for f in got.files if f not in self.calm.files]
        beside = judge.taken(judge.late(got.log, got.files, SNAPSHOT))
        for file in extra:
            if file not in beside:
                wrong.append(f"{file} should not be there")
            elif file.endswith(".solverstate") and self.name != "sequences" and not self.leads_to_model(file):
                wrong.append(f"from {file} comes another model, or none")
        return wrong

    def leads_to_model(self, state):
        (self.home.disk / "model").unlink(missing_ok=True)
        again = run(self.home, "-workers", "2", "-snapshot", f"disk/{state}")
        return again.code == 0 and again.files.get("model") == self.calm.files["model"]

    def differences(self, got, schedule):
        if got.code != 0:
            return [f"exit code {got.code}"]
        wrong = [f"{f} is missing or differs" for f, h in self.calm.files.items() if got.files.get(f) != h]
        if not any(name in ("term", "end") for _, name, *_ in schedule.events):  # which make snapshots at any step
            wrong += self.extra(got)
        if got.began != self.calm.began:
            wrong.append(f"tests at {sorted(got.began, key=int)} and not {sorted(self.calm.began, key=int)}")
        return wrong + got.left


@contextlib.contextmanager
def small_disk(folder):
    """The disk of the runs, or None; says what cannot be disturbed here."""
    for what, why in (("connections are not disturbed", sockets.possible()), ("no clock jumps", clocks.possible())):
        if why:
            print(f"SKIPPED PART: {what}: {why}", flush=True)
    try:
        small = disk.Disk(folder / "small")
    except OSError as e:
        print(f"SKIPPED PART: no disk is filled: {e}", flush=True)
        yield None
        return
    with small:
        yield small


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, help="runs (100)")
    parser.add_argument("-s", type=int, default=1, help="the first seed (1)")
    parser.add_argument("-k", nargs="*", choices=KINDS, default=KINDS, help="nets")
    parser.add_argument("-c", action="store_true", help="in every run the coordinator is disturbed as well")
    options = parser.parse_args()
    failures = lost = done = 0
    met = collections.Counter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that cleans up
    with contextlib.ExitStack() as rest:
        folder = pathlib.Path(rest.enter_context(tempfile.TemporaryDirectory()))
        make_lmdb(folder, "train", 1003, seed=1), make_lmdb(folder, "test", 200, seed=2)
        small = rest.enter_context(small_disk(folder))
        kinds = [Kind(folder / name, folder, name, small, long=True) for name in options.k]
        begin = time.monotonic()
        for seed in range(options.s, options.s + 2 * options.n):
            wrong, all_lost, seen = kinds[seed % len(kinds)].disturbed(seed, options.c)
            lost += all_lost
            done += bool(seen)  # what came when all was over disturbed nothing, and such a run counts for nothing
            met += seen
            if wrong:
                failures += 1
                print(wrong, flush=True)
            if seen and done % 50 == 0:
                print(f"{done} runs, {failures} wrong, {lost} ended early", flush=True)
            if done == options.n:
                break
    print(
        f"{done} disturbed runs (seeds {options.s} to {seed}), {time.monotonic() - begin:.0f} s: {failures} wrong, the "
        f"others with the undisturbed run's files ({lost} by -resume auto, after the loss of all workers or the "
        f"coordinator or a full disk); disturbances: {', '.join(f'{k} {n}' for k, n in met.most_common())}"
    )
    return 1 if failures or done < options.n else 0


if __name__ == "__main__":
    sys.exit(main())
