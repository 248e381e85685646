#!/usr/bin/env python3
"""Disturbed jobs on a real cluster, each compared with the undisturbed one:

    on_spark.py [-n RUNS] [-s FIRST_SEED] [-m MASTER...] [-v VARIANT...]

Jobs of three workers on a standalone master and on YARN, in turn, whose executors (with their children, as a container
that is killed, or alone) and worker processes are killed or stopped at seeded moments, and whose executors' wall clocks
jump. A seed draws the variant: on a database, on rows of a data frame that each worker has its part of, on a database
and growing from one worker to three under dynamic allocation, and on a database or rows with connections that are
encrypted. Each ends with the model and the snapshots of the undisturbed job. Where the worker that had written a
snapshot was lost before it was known to be published, another takes it some steps later, and from that the model comes
out, too; a job that loses all its workers at once may end with an error and exit code 1, and `-resume auto` goes on to
that model. No process and no file of the job is left, but one for each executor that is killed while it publishes.
tests/support/judge.py says what is wrong.
"""

import argparse
import collections
import contextlib
import dataclasses
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
import clocks  # noqa: E402
from disturbances import JUMPS, signalled  # noqa: E402

from conftest import make_lmdb, sha256, wait_until  # noqa: E402
from disturbed_jobs import (  # noqa: E402
    FRAMES,
    SNAPSHOT,
    descendants,
    files_of,
    frames_job,
    longer,
    marked_executors,
    marked_processes,
)
from spark_jobs import DATA_FILES, ENVIRONMENT, SPARK, command, write_job  # noqa: E402
from support import judge  # noqa: E402
from testbed.bed import Bed  # noqa: E402
from testbed.fixtures import CACHE, VERSION, fetched  # noqa: E402
from testbed.processes import MARK  # noqa: E402
from testbed.standalone import Standalone  # noqa: E402

WORKERS = 3
# The solver and net, and iterations: of a job that grows enough for newcomers to be there before its end.
DATA = {"database": (DATA_FILES, 1500), "long database": (DATA_FILES, 6000), "rows": (FRAMES, 1500)}
STEP_TIMEOUT = 5.0  # seconds
WEIGHTS = {"container": 4, "executor": 3, "worker": 4, "stop": 2, "freeze": 2, "jump": 2}
CONF = (
    "spark.executor.cores=1",
    "spark.executor.memory=600m",
    f"spark.crema.stepTimeout={STEP_TIMEOUT:g}s",
)
DYNAMIC = {"enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": 1, "maxExecutors": WORKERS}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A job's data and how it runs; three ranks in any case, so that those of the same data have one model."""

    data: str = "database"
    first: int = WORKERS  # workers with which it begins
    conf: tuple = (f"spark.executor.instances={WORKERS}",)
    seconds: int = 240  # within which it ends behind its last disturbance

    @property
    def flags(self):
        return "-clusterSize", self.first

    @property
    def devices(self):
        return WORKERS // self.first


ENCRYPTED = "spark.crema.encrypt=true"
VARIANTS = {
    "database": Variant(),
    "rows": Variant("rows", seconds=400),
    "growing": Variant("long database", 1, tuple(f"spark.dynamicAllocation.{k}={v}" for k, v in DYNAMIC.items())),
    "encrypted": Variant(conf=(*Variant.conf, ENCRYPTED)),
    "encrypted rows": Variant("rows", conf=(*Variant.conf, ENCRYPTED), seconds=400),
}


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

    def __init__(self, seed, seconds, variants):
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
        self.name = draw.choice(variants)
        self.variant = VARIANTS[self.name]

    def __str__(self):
        what = ", ".join(f"{at:.1f} s: {name} {which} ({lasts:.1f} s)" for at, name, which, lasts in self.events)
        return f"seed {self.seed}, {self.name}: {what}"

    def run(self, cluster, going):
        """Until the job ends or all is over."""
        begin = time.monotonic()
        for at, name, which, lasts in self.events:
            while time.monotonic() - begin < at and going():
                time.sleep(0.01)
            executors, workers = marked_executors(cluster.bed), marked_processes(cluster.bed, "/crema worker")
            targets = sorted(executors if name in ("container", "executor", "freeze", "jump") else workers)
            if not going() or not targets:
                continue
            pid = targets[which % len(targets)]
            if name == "jump":
                self.met += not clocks.possible() and clocks.jump(pid, JUMPS[(which + self.seed) % len(JUMPS)])
                continue
            self.met += 1
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
    """A job on each kind of data, whose files lie in a folder of their own, and the undisturbed ones' files: `calm`."""

    def __init__(self, folder, records):
        self.folder, self.templates, self.calm = folder, folder.with_name("templates"), {}
        for data, (files, iterations) in DATA.items():
            template = self.templates / data
            template.mkdir(parents=True)
            write_job(f"file:{records}", template)
            frames_job(template, self.templates)
            longer(template, files[0], iterations)
            started = time.monotonic()
            code, log, self.calm[data] = self.run("local[2]", ENVIRONMENT, Variant(data))
            assert code == 0 and len(self.calm[data]) == 1 + 2 * -(-iterations // SNAPSHOT), log[-3000:]
            self.seconds = time.monotonic() - started

    def run(self, master, environment, variant, *flags, disturb=None, anew=True):
        """Exit code, log, files."""
        if anew:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(self.templates / variant.data, self.folder)
        model, log = self.folder / "model", self.folder / "driver.log"
        how = {"files": DATA[variant.data][0], "devices": variant.devices, "model": f"file:{model}"}
        words = command(self.folder, master, "-train", *variant.flags, *flags, conf=(*CONF, *variant.conf), **how)
        with open(log, "w") as out:
            process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=out, stderr=out)
        try:
            if disturb:
                begun = "training  iteration" if variant.first == WORKERS else "(new: "
                wait_until(lambda: begun in log.read_text() or process.poll() is not None, 120, begun)
                disturb(lambda: process.poll() is None)
            code = process.wait(variant.seconds)
        finally:
            process.kill()
            process.wait()
        files = files_of(self.folder) | ({"model": sha256(model)} if model.exists() else {})
        return code, log.read_text(errors="replace"), files

    def disturbed(self, cluster, schedule):
        """What is wrong, "" for nothing; whether all was lost."""
        variant = schedule.variant
        calm, still = self.calm[variant.data], Variant(variant.data)
        where = cluster.master, cluster.environment, variant
        code, log, files = self.run(*where, disturb=lambda going: schedule.run(cluster, going))
        wrong, lost = judge.went_back(log), judge.lost_all(code, log)
        if lost:
            if left := judge.survivors(log, variant.first, schedule.hit, schedule.killed):
                wrong.append(f"it ended although workers {left} could go on; hit were {sorted(schedule.hit)}")
            code, again, files = self.run(*where, "-resume", "auto", anew=False)
            log += f"\n--- -resume auto\n{again}"
        if code != 0:
            wrong.append(f"exit code {code}")
        late = judge.late(log, files, SNAPSHOT)
        wrong += judge.differences(calm, files, late)
        for state in {f for f in judge.taken(late) if f.endswith("solverstate")}:
            snapshot = self.folder / state
            flags = f"-snapshot {snapshot} -weights {snapshot.with_suffix('.caffemodel')}".split()
            code, again, after = self.run("local[2]", ENVIRONMENT, still, *flags, anew=False)
            if code != 0 or after["model"] != calm["model"]:
                wrong.append(f"from {state} comes another model")
                log += f"\n--- from {state}\n{again}"
        names = [f.name for f in self.folder.iterdir()]
        wrong += [f"{name} is left" for name in judge.leftovers(names, schedule.executors)]
        end = time.monotonic() + 20
        while (left := cluster.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        wrong += [f"process {p} is left" for p in left]
        return (f"{cluster.name}, {schedule}\n  {wrong}\n{log[-6000:]}" if wrong else ""), lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=50, help="runs (50)")
    parser.add_argument("-s", type=int, default=1, help="the first seed (1)")
    masters = ("standalone", "yarn")
    parser.add_argument("-m", nargs="+", choices=masters, default=masters, help="masters (both)")
    parser.add_argument("-v", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="variants (all)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that cleans up
    counts = collections.Counter()
    if why := clocks.possible():
        print(f"SKIPPED PART: clocks do not jump: {why}", flush=True)
    with contextlib.ExitStack() as rest:
        folder = pathlib.Path(rest.enter_context(tempfile.TemporaryDirectory()))
        make_lmdb(folder, "train", 1003, seed=1), make_lmdb(folder, "test", 200, seed=2)
        job = Job(folder / "job", folder)
        clusters = [Cluster(name, folder, rest) for name in options.m]
        begin = time.monotonic()
        for seed in range(options.s, options.s + options.n):
            cluster = clusters[seed % len(clusters)]
            schedule = Schedule(seed, job.seconds / 2, options.v)
            wrong, lost = job.disturbed(cluster, schedule)
            counts.update(
                {cluster.name: 1, schedule.name: 1, "wrong": bool(wrong), "lost": lost, "events": schedule.met}
            )
            said = f"{cluster.name}, {schedule.name}, seed {seed}: {schedule.met} event(s)"
            print(wrong or f"{said}{', all lost' if lost else ''}", flush=True)
    on = ", ".join(f"{counts[m]} {m}" for m in (*options.m, *options.v))
    seconds = time.monotonic() - begin
    print(f"{options.n} disturbed jobs ({on}) in {seconds:.0f} s, {counts['events']} events, {counts['wrong']} wrong")
    print(f"{counts['lost']} of them lost all workers and went on by -resume auto")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
