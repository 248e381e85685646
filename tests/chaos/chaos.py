#!/usr/bin/env python3
"""Disturbed runs, each compared with the undisturbed one: chaos.py [-n RUNS] [-s FIRST_SEED] [-k KIND...]

Every run ends with the model, the snapshots and the outputs of tests that the undisturbed run has, and never goes back
to an earlier step. Where the schedule hits all of its workers that have a state, it may end with an error and whole
snapshots instead, from which `-resume auto` goes on to that model. No process and no temporary file is left. A seed
repeats its schedule; what the machine makes of it may differ. test_judge.py has runs that must not pass.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judge  # noqa: E402
from disturbances import Schedule  # noqa: E402
from nets import KINDS, RANKS, write  # noqa: E402

from conftest import CREMA, children, make_lmdb, running, wait_until  # noqa: E402

DEADLINE = 2.0  # seconds of silence
REBALANCE = ("-rebalance", "0.2")  # ranks move as well, wherever speeds differ


class Outcome:
    """logs: the first is of the process whose exit code counts, which says who is lost."""

    def __init__(self, folder, code, logs=("run.log",)):
        self.code, self.logs = code, [(folder / log).read_text(errors="replace") for log in logs]
        self.log = self.logs[0]
        files = [*folder.glob("snap_iter_*"), folder / "model"]
        self.files = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.exists()}
        self.began = set(re.findall(r"Iteration (\d+), Testing net", "".join(self.logs)))
        self.tests = set().union(*map(judge.outputs, self.logs))
        self.left = [f.name for f in folder.iterdir() if ".crema-tmp-" in f.name or f.name.startswith("crema-rows-")]


def run(folder, *flags, disturb=None, limit=90):
    with open(folder / "run.log", "w") as log:
        command = [
            CREMA,
            "train",
            "-solver",
            "solver.prototxt",
            "-ranks",
            str(RANKS),
            "-threads",
            "1",
            "-model",
            "model",
        ]
        process = subprocess.Popen([*command, *flags], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if disturb:
            disturb.run(process, lambda: children(process.pid))
        workers = children(process.pid)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = f"still running {limit} s after the last disturbance"
    end = time.monotonic() + 3
    while any(running(p) for p in workers) and time.monotonic() < end:
        time.sleep(0.01)
    outcome = Outcome(folder, code)
    outcome.left += [f"process {p}" for p in workers if running(p)]
    return outcome


def run_apart(folder, schedule, limit=90):
    """Coordinator and workers as a scheduler starts them; only one that computes is disturbed."""
    (folder / "token").write_bytes(os.urandom(32))
    flags = (
        f"-solver solver.prototxt -token_file token -ranks {RANKS} -workers {schedule.workers} -step_timeout {DEADLINE}"
    )
    flags = [*flags.split(), "-replacement", schedule.replacement, *REBALANCE]
    logs = ["run.log", *(f"worker{w}.log" for w in range(schedule.workers))]

    def start(log, *more):
        with open(folder / log, "w") as out:
            return subprocess.Popen(
                [CREMA, *map(str, more)], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def said(pattern):
        return re.search(pattern, (folder / "run.log").read_text(errors="replace"))

    coordinator = start("run.log", "coordinator", *flags)
    wait_until(lambda: said(r"Listening on (\S+)\n"), 30, "the coordinator's address")
    own = ["-threads", 1, "-model", "model", "-coordinator", said(r"Listening on (\S+)\n").group(1)]
    workers = [start(logs[w + 1], "worker", *flags, *own, "-worker", w) for w in range(schedule.workers)]
    processes = [coordinator, *workers]
    try:
        wait_until(lambda: said("Iteration ") or coordinator.poll() is not None, 60, "the first step")
        schedule.run(coordinator, lambda: [w.pid for w in workers if w.poll() is None])
        for process in processes:
            process.wait(limit)
    except subprocess.TimeoutExpired:
        pass
    left = [f"process {p.args[1]} {p.pid}" for p in processes if p.poll() is None]
    for process in processes:
        process.kill()
        process.wait()
    outcome = Outcome(folder, coordinator.returncode, logs)
    outcome.left += left
    return outcome


class Kind:
    """A net with its undisturbed run."""

    def __init__(self, folder, records, name):
        self.folder, self.records, self.name = folder, records, name
        begin = time.monotonic()
        self.calm = run(self.fresh(), "-workers", "3")
        self.seconds = time.monotonic() - begin
        assert self.calm.code == 0 and not self.calm.left, self.calm.log[-2000:]

    def fresh(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write(self.folder, self.records, self.name)
        return self.folder

    def disturbed(self, seed):
        """Returns what is wrong, "" for nothing, and whether the run lost all its workers."""
        schedule = Schedule(seed, self.seconds, DEADLINE)
        flags = f"-workers {schedule.workers} -step_timeout {DEADLINE} -replacement {schedule.replacement}"
        if schedule.apart:
            got = run_apart(self.fresh(), schedule)
        else:
            got = run(self.fresh(), *flags.split(), *REBALANCE, disturb=schedule)
        lost = got.code == 1 and re.search(r"crema: error: worker \d+ .*(was lost|silent|told to end)", got.log)
        wrong = self.after_loss(got, schedule) if lost else self.differences(got)
        wrong += judge.went_back(got.log)
        wrong += [f"iteration {i}: the output of a test is {o}" for i, o in sorted(got.tests - self.calm.tests)]
        logs = "".join(log[-3000:] for log in got.logs)
        return (f"{self.name}, {schedule}\n  {wrong}\n{logs}" if wrong else ""), bool(lost)

    def after_loss(self, got, schedule):
        left = judge.survivors(got.log, schedule.workers, schedule.hit, schedule.killed)
        wrong = [f"it ended although workers {left} could go on; hit were {sorted(schedule.hit)}"] if left else []
        wrong += [f"{f} differs" for f in got.files if self.calm.files.get(f, got.files[f]) != got.files[f]] + got.left
        quiet = not any(name in ("kill", "stop") for _, name, _, _ in schedule.events)
        if schedule.ended and quiet and "go on from there with -snapshot" not in got.log:
            wrong.append("no snapshot is named, although all workers were told to end")
        strange = [f for f in got.files if f not in self.calm.files]
        if strange and not schedule.apart:  # SIGTERM makes snapshots at any step, which resuming checks
            wrong.append(f"{strange} should not be there")
        again = run(self.folder, "-workers", "2", "-resume", "auto")
        same = again.files.get("model") == self.calm.files["model"] or self.name == "sequences"
        if again.code != 0 or not same:  # of sequences a snapshot holds no state
            wrong.append(f"-resume auto: exit code {again.code}, another model: {again.log[-500:]}")
        return wrong

    def differences(self, got):
        if got.code != 0:
            return [f"exit code {got.code}"]
        wrong = [f"{f} is missing or differs" for f, h in self.calm.files.items() if got.files.get(f) != h]
        if got.began != self.calm.began:
            wrong.append(f"tests at {sorted(got.began, key=int)} and not {sorted(self.calm.began, key=int)}")
        return wrong + got.left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, help="runs (100)")
    parser.add_argument("-s", type=int, default=1, help="the first seed (1)")
    parser.add_argument("-k", nargs="*", choices=KINDS, default=KINDS, help="nets")
    options = parser.parse_args()
    failures = lost = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_lmdb(folder, "train", 1003, seed=1), make_lmdb(folder, "test", 200, seed=2)
        kinds = [Kind(folder / name, folder, name) for name in options.k]
        begin = time.monotonic()
        for seed in range(options.s, options.s + options.n):
            wrong, all_lost = kinds[seed % len(kinds)].disturbed(seed)
            lost += all_lost
            if wrong:
                failures += 1
                print(wrong, flush=True)
            if (seed - options.s + 1) % 50 == 0:
                print(f"{seed - options.s + 1} runs, {failures} wrong, {lost} lost all", flush=True)
    print(
        f"{options.n} disturbed runs in {time.monotonic() - begin:.0f} s: {options.n - failures} with the undisturbed "
        f"run's files ({lost} of them by -resume auto, after the loss of all workers), {failures} wrong"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
