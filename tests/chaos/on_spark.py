#!/usr/bin/env python3
"""Disturbed jobs on a real cluster, each compared with the undisturbed one:

    on_spark.py [-n RUNS] [-s FIRST_SEED] [-m MASTER...]

Jobs of three workers on a standalone master and on YARN, in turn, whose executors (with their children, as a container
that is killed, or alone) and worker processes are killed or stopped at seeded moments. Each ends with
the model and the snapshots of the undisturbed job. Where the worker that had written a snapshot was lost before it was
known to be published, another takes it some steps later, and from that the model comes out, too; a job that loses all
its workers at once may end with an error and exit code 1, and `-resume auto` goes on to that model. No process and no
file of the job is left, but one for each executor that is killed while it publishes. judge.py says what is wrong.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "spark")]
import judge  # noqa: E402
from disturbances import signalled  # noqa: E402

from conftest import make_lmdb, sha256, wait_until  # noqa: E402
from disturbed_jobs import descendants, files_of, longer, marked_executors, marked_processes  # noqa: E402
from spark_jobs import DATA_FILES, ENVIRONMENT, SPARK, command, write_job  # noqa: E402
from testbed.bed import Bed  # noqa: E402
from testbed.fixtures import CACHE, VERSION, fetched  # noqa: E402
from testbed.processes import MARK  # noqa: E402
from testbed.standalone import Standalone  # noqa: E402

WORKERS = 3
ITERATIONS, SNAPSHOT = 1500, 400  # every so many iterations, as longer() says
STEP_TIMEOUT = 5.0  # seconds
WEIGHTS = {"container": 4, "executor": 3, "worker": 4, "stop": 2, "freeze": 2}
CONF = (
    "spark.executor.cores=1",
    "spark.executor.memory=600m",
    f"spark.executor.instances={WORKERS}",
    f"spark.crema.stepTimeout={STEP_TIMEOUT:g}s",
)


class Cluster:
    """A standalone master with a worker daemon for each of ours, or YARN with HDFS."""

    def __init__(self, name, folder, rest):
        self.name = name
        if name == "standalone":
            self.bed = Standalone(folder / name, SPARK, ENVIRONMENT)
            rest.callback(self.bed.down)
            self.bed.up(workers=WORKERS, memory="1g")
            self.master, self.environment = self.bed.url, {**self.bed.environment, MARK: str(self.bed.folder)}
        else:
            fetched("hadoop")
            self.bed = Bed(folder / name, CACHE, SPARK, VERSION)
            rest.callback(self.bed.down)
            self.bed.up("hadoop")
            self.master, self.environment = "yarn", self.bed.environment("hdfs")

    def processes(self):
        return {p for what in ("/crema ", "SparkSubmit") for p in marked_processes(self.bed, what)} | set(
            marked_executors(self.bed)
        )


class Schedule:
    """When, what, to which, and for how long."""

    def __init__(self, seed, seconds):
        draw = random.Random(seed)
        self.seed, self.met = seed, 0  # how many events met a process
        self.hit, self.killed = set(), set()  # workers that may be given up; those that have ended at once
        self.executors = 0  # that were killed
        self.events = sorted(
            (
                draw.uniform(0, seconds),
                draw.choices(list(WEIGHTS), WEIGHTS.values())[0],
                draw.randrange(WORKERS),
                draw.choice([0.5, 0.8, 1.5]) * STEP_TIMEOUT,
            )
            for _ in range(draw.choice([1, 1, 2, 3]))
        )

    def __str__(self):
        what = ", ".join(f"{at:.1f} s: {name} {which} ({lasts:.1f} s)" for at, name, which, lasts in self.events)
        return f"seed {self.seed}: {what}"

    def run(self, cluster, going):
        """Until the job ends or all is over."""
        begin = time.monotonic()
        for at, name, which, lasts in self.events:
            while time.monotonic() - begin < at and going():
                time.sleep(0.01)
            executors, workers = marked_executors(cluster.bed), marked_processes(cluster.bed, "/crema worker")
            targets = sorted(executors if name in ("container", "executor", "freeze") else workers)
            if not going() or not targets:
                continue
            self.met += 1
            pid = targets[which % len(targets)]
            if name in ("stop", "freeze"):
                self.hit |= {pid} & set(workers)
                signalled(pid, signal.SIGSTOP)
                time.sleep(lasts)
                signalled(pid, signal.SIGCONT)
                continue
            below = descendants(pid)
            ended = {pid, *below} & set(workers)  # an executor's child ends with it
            self.hit |= ended
            self.killed |= ended
            self.executors += pid in executors
            for victim in [pid, *(below if name == "container" else [])]:
                signalled(victim, signal.SIGKILL)


class Job:
    """A job whose files lie in a folder of their own, and the undisturbed one's model and snapshots."""

    def __init__(self, folder, records):
        self.folder, self.records = folder, records
        started = time.monotonic()
        code, log, self.files = self.run("local[2]", ENVIRONMENT, "-clusterSize", WORKERS)
        assert code == 0 and len(self.files) == 9, log[-3000:]
        self.seconds = time.monotonic() - started

    def write(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        write_job(f"file:{self.records}", self.folder)
        longer(self.folder, DATA_FILES[0], ITERATIONS)

    def run(self, master, environment, *flags, disturb=None, anew=True):
        """Exit code, log, files."""
        if anew:
            self.write()
        model, log = self.folder / "model", self.folder / "driver.log"
        words = command(self.folder, master, "-train", *flags, files=DATA_FILES, conf=CONF, model=f"file:{model}")
        with open(log, "w") as out:
            process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=out, stderr=out)
        try:
            if disturb:
                wait_until(
                    lambda: "training  iteration" in log.read_text() or process.poll() is not None, 120, "a step"
                )
                disturb(lambda: process.poll() is None)
            code = process.wait(240)
        finally:
            process.kill()
            process.wait()
        files = files_of(self.folder) | ({"model": sha256(model)} if model.exists() else {})
        return code, log.read_text(errors="replace"), files

    def disturbed(self, cluster, seed):
        """What is wrong, "" for nothing; whether all was lost; how many events met a process."""
        schedule = Schedule(seed, self.seconds / 2)
        where = cluster.master, cluster.environment, "-clusterSize", WORKERS
        code, log, files = self.run(*where, disturb=lambda going: schedule.run(cluster, going))
        wrong, lost = judge.went_back(log), judge.lost_all(code, log)
        if lost:
            if left := judge.survivors(log, WORKERS, schedule.hit, schedule.killed):
                wrong.append(f"it ended although workers {left} could go on; hit were {sorted(schedule.hit)}")
            code, again, files = self.run(*where, "-resume", "auto", anew=False)
            log += f"\n--- -resume auto\n{again}"
        if code != 0:
            wrong.append(f"exit code {code}")
        late = judge.late(log, files, SNAPSHOT)
        wrong += judge.differences(self.files, files, late)
        for state in {f for f in late.values() if f.endswith("solverstate")}:
            snapshot = self.folder / state
            code, again, after = self.run(
                "local[2]",
                ENVIRONMENT,
                *f"-clusterSize {WORKERS} -snapshot {snapshot} -weights {snapshot.with_suffix('.caffemodel')}".split(),
                anew=False,
            )
            if code != 0 or after["model"] != self.files["model"]:
                wrong.append(f"from {state} comes another model")
                log += f"\n--- from {state}\n{again}"
        names = [f.name for f in self.folder.iterdir()]
        wrong += [f"{name} is left" for name in judge.leftovers(names, schedule.executors)]
        end = time.monotonic() + 20
        while (left := cluster.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        wrong += [f"process {p} is left" for p in left]
        return (f"{cluster.name}, {schedule}\n  {wrong}\n{log[-6000:]}" if wrong else ""), lost, schedule.met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=50, help="runs (50)")
    parser.add_argument("-s", type=int, default=1, help="the first seed (1)")
    masters = ("standalone", "yarn")
    parser.add_argument("-m", nargs="+", choices=masters, default=masters, help="masters (both)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that cleans up
    counts = collections.Counter()
    with contextlib.ExitStack() as rest:
        folder = pathlib.Path(rest.enter_context(tempfile.TemporaryDirectory()))
        make_lmdb(folder, "train", 1003, seed=1), make_lmdb(folder, "test", 200, seed=2)
        job = Job(folder / "job", folder)
        clusters = [Cluster(name, folder, rest) for name in options.m]
        begin = time.monotonic()
        for seed in range(options.s, options.s + options.n):
            cluster = clusters[seed % len(clusters)]
            wrong, lost, met = job.disturbed(cluster, seed)
            counts.update({cluster.name: 1, "wrong": bool(wrong), "lost": lost, "events": met})
            print(wrong or f"{cluster.name}, seed {seed}: {met} event(s){', all lost' if lost else ''}", flush=True)
    on = ", ".join(f"{counts[m]} {m}" for m in options.m)
    seconds = time.monotonic() - begin
    print(f"{options.n} disturbed jobs ({on}) in {seconds:.0f} s, {counts['events']} events, {counts['wrong']} wrong")
    print(f"{counts['lost']} of them lost all workers and went on by -resume auto")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
