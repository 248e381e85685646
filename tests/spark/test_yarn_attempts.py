"""YARN's cluster mode, where main runs in the ApplicationMaster: errors become the application's diagnostics, and a
failed application is tried again only where that may help.
"""

import os
import re
import signal
import subprocess
import time

import pytest

from conftest import LONG, make_lmdb, sha256, wait_until
from disturbed_jobs import marked_processes
from spark_jobs import (
    FILES,
    TRAIN,
    command,
    job,  # noqa: F401  a fixture
    submit,
)
from test_daemons import (
    TWO,
    cat_rows,
    expect_all_rows,
    fetched_hash,
    local_hash,  # noqa: F401  a fixture
    output_and_logs,
    point,
    stored,  # noqa: F401  a fixture
)

CLUSTER = (*TWO, "spark.submit.deployMode=cluster")


def rewrite(file, *changes):
    text = file.read_text()
    for pattern, new in changes:
        text, found = re.subn(pattern, new, text, flags=re.M)
        assert found, pattern
    file.write_text(text)


def application(bed, text):
    """What spark-submit shows: the diagnostics that YARN gave its client; and how many attempts have left
    containers.
    """
    name = re.search(r"application_\d+_\d+", text).group()
    diagnostics = re.search(r"Application diagnostics message: (.*?)\n(?=\d{4}-|Exception)", text, re.S)
    attempts = {re.search(r"container_\d+_\d+_(\d+)_", str(p)).group(1) for p in bed.container_logs(name)}
    return name, diagnostics.group(1) if diagnostics else "", len(attempts)


def refused(bed, done, *sentences):
    """Asserts that the diagnostics contain the sentences, that the submitting console shows nothing else, and that
    there was one attempt. Returns its containers.
    """
    name, diagnostics, attempts = application(bed, done.stderr)
    assert done.returncode == 1, output_and_logs(done, bed)
    for sentence in (*sentences, f"yarn logs -applicationId {name}", f"/cluster/app/{name}"):
        assert sentence in diagnostics, (sentence, output_and_logs(done, bed))
    assert diagnostics.startswith("crema: error: ") and len(diagnostics.splitlines()) <= 7, diagnostics
    assert attempts == 1
    return bed.container_logs(name)


def test_a_wrong_solver_is_told_before_executors_are_asked_for(job, hadoop):
    rewrite(job / FILES[0], (r"solver_mode: CPU", "solver_mode: GPU"))
    start = time.monotonic()
    done = submit(
        job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=CLUSTER, model=f"{hadoop.url('hdfs')}/gpu.model"
    )
    print(f"{time.monotonic() - start:.1f} s")
    assert len(refused(hadoop, done, "solver_mode", "GPU")) == 1  # the ApplicationMaster's container


def test_too_little_data_is_told_by_one_attempt(job, hadoop, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    make_lmdb(few, "train", 1)
    rewrite(
        job / FILES[1],
        (r'source: "\S*/train_lmdb"', f'source: "file:{few}/train_lmdb"'),
        (r'source: "(/\S*/test_lmdb)"', r'source: "file:\1"'),
    )
    done = submit(
        job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=CLUSTER, model=f"{hadoop.url('hdfs')}/few.model"
    )
    refused(hadoop, done, "Insufficient training data", "every rank, clusterSize x devices, needs one")


class Submitted:
    """Starts a job and yields it while its logs can be read."""

    def __init__(self, job, bed, *flags, conf=(), **places):
        self.job, self.bed = job, bed
        with open(job / "client.log", "w") as log:
            self.process = subprocess.Popen(
                command(job, "yarn", *flags, conf=(*CLUSTER, *conf), **places),
                cwd=job,
                env=bed.environment("hdfs"),
                stdout=log,
                stderr=log,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(20)

    @property
    def said(self):
        """The output of all attempts' containers."""
        found = re.search(r"application_\d+_\d+", (self.job / "client.log").read_text())
        return "".join(self.bed.container_logs(found.group()).values()) if found else ""

    def wait_for(self, words, seconds=120):
        wait_until(lambda: words in self.said or self.process.poll() is not None, seconds, words)

    def ended_well(self, attempts):
        code = self.process.wait(120)
        text = (self.job / "client.log").read_text()
        assert code == 0 and application(self.bed, text)[2] == attempts, text[-1500:] + self.said[-4000:]
        return self.said


@pytest.fixture(scope="module")
def undisturbed():
    """of(job, bed): the model that the solver and net in `job` give without failures; computed once, as it is the
    same in all tests.
    """
    known = []

    def of(job, bed):
        if not known:
            done = submit(
                job,
                "local[2]",
                "-train",
                "-clusterSize",
                2,
                env=bed.environment("hdfs"),
                model=f"file:{job}/undisturbed",
            )
            assert done.returncode == 0, done.stderr[-3000:]
            known.append(sha256(job / "undisturbed"))
        return known[0]

    return of


@pytest.mark.parametrize("killed", [pytest.param("worker", marks=LONG), "master"])
def test_a_second_attempt_goes_on_from_the_first_ones_snapshot_to_the_same_model(
    job, hadoop, stored, undisturbed, killed
):
    point(job, stored(hadoop, "hdfs"))
    rewrite(
        job / FILES[0],
        (r"^max_iter: .*", "max_iter: 600"),
        (r"^snapshot: .*", "snapshot: 200"),
        (r"^test_interval: .*", "test_interval: 0"),
        (r"^test_iter: .*", "test_iter: 0"),
    )
    model = f"{hadoop.url('hdfs')}/attempts/after a lost {killed}/m.model"
    expected = undisturbed(job, hadoop)
    with Submitted(job, hadoop, "-train", model=model, conf=("spark.crema.replacement=fail",)) as run:
        run.wait_for("iteration 200: snapshot")
        os.kill(
            master_processes(hadoop)[0] if killed == "master" else marked_processes(hadoop, "/crema worker")[0],
            signal.SIGKILL,
        )
        if killed == "master":  # as a process does that was stopped, and publishes a snapshot for the second time
            hadoop.fs("hdfs", "-touch", f"{os.path.dirname(model)}/*_iter_*")
        said = run.ended_well(attempts=2)
    if killed == "worker":
        assert re.search(r"crema: error: worker \d \(rank \d, host .*pid \d+\) was lost", said) and re.search(
            r"worker \d was in executor \d on host \S+, container container_\d+_\d+_01_\d+", said
        )
        assert re.search(r"the last snapshot is of iteration \d+: hdfs://.*_iter_\d+\.solverstate", said)
    assert re.search(
        r"attempt 2 of this application: the one before has failed; training goes on from its snapshot of iteration "
        r"(200|400), hdfs://",
        said,
    ), said[-4000:]
    assert fetched_hash(hadoop, "hdfs", model, job) == expected


def master_processes(bed):
    return [
        p
        for p in marked_processes(bed, "org.apache.spark.deploy.yarn.ApplicationMaster")
        if os.path.basename(os.readlink(f"/proc/{p}/exe")) == "java"
    ]


def test_a_place_that_cannot_be_written_just_now_is_tried_again(job, hadoop, stored, local_hash):
    """The model's folder cannot be written when the first attempt tries, and can when the second one does."""
    point(job, stored(hadoop, "hdfs"))
    folder = f"{hadoop.url('hdfs')}/full_for_a_while"
    hadoop.fs("hdfs", "-mkdir", folder)
    hadoop.space_quota("/full_for_a_while", 1)
    with Submitted(job, hadoop, "-train", model=f"{folder}/m.model") as run:
        run.wait_for("has failed; YARN starts attempt 2")
        hadoop.space_quota("/full_for_a_while", -1)
        said = run.ended_well(attempts=2)
    assert re.search(
        r"crema: error: -model hdfs://\S+ cannot be written: .*quota.*mend that or name another place \(nothing was "
        r"started\)",
        said,
    ), said[-4000:]
    assert "left no snapshot: training begins again at iteration 0" in said
    assert fetched_hash(hadoop, "hdfs", f"{folder}/m.model", job) == local_hash(job, hadoop, "hdfs")


def test_a_second_attempt_takes_the_trained_model_and_writes_the_rows_anew(job, hadoop, stored):
    """The rows cannot be written at first; then the model, and the rows' folder, exist already."""
    point(job, stored(hadoop, "hdfs"))
    out = f"{hadoop.url('hdfs')}/rows_late"
    hadoop.fs("hdfs", "-mkdir", "-p", f"{out}/full")
    hadoop.space_quota("/rows_late/full", 1)
    with Submitted(job, hadoop, *TRAIN, model=f"{out}/m.model", output=f"{out}/full/rows") as run:
        run.wait_for("has failed; YARN starts attempt 2")
        hadoop.space_quota("/rows_late/full", -1)
        said = run.ended_well(attempts=2)
    assert (
        f"attempt 2 of this application: the one before has trained the model at {out}/m.model, which is taken" in said
    ), said[-4000:]
    assert f"the one before had begun to write {out}/full/rows, which is written anew" in said
    assert said.count("crema: the model is at") == 1 and re.search(r"crema: error: .*quota", said), said[-4000:]
    expect_all_rows(cat_rows(hadoop, "hdfs", f"{out}/full/rows"))
