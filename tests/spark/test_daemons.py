"""Jobs on separate real daemons: YARN with two NodeManagers; sources, models, snapshots and rows on HDFS, Azure's blob store and S3."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import ROOT, sha256, wait_until
from spark_jobs import FILES, JAR, SPARK, TRAIN, command, job, submit  # noqa: F401 (job is a fixture)

TWO = ("spark.executor.instances=2",)
ARTICLE_DATA = "/projects/machine_learning/image_dataset"


@pytest.fixture(scope="module")
def stored(records):
    """store(bed, share): the records as a user has them on that file system, uploaded once; returns the folder."""
    done = {}

    def store(bed, share, folder="/data"):
        if share not in done:
            target = bed.url(share) + folder
            bed.fs(share, "-mkdir", "-p", target)
            bed.fs(share, "-put", records / "train_lmdb", records / "test_lmdb", target)
            done[share] = target
        return done[share]

    return store


def point(job, where):
    """Lets the net read from `where` instead of the local records."""
    net = job / FILES[1]
    net.write_text(re.sub(r'source: "\S*/((?:mnist_)?(?:train|test)_lmdb)"', rf'source: "{where}/\1"', net.read_text()))


@pytest.fixture(scope="module")
def local_hash():
    """Of the model that local[2] gives, by folder of sources; computed once for each."""
    known = {}

    def of(job, bed, share="hdfs"):
        text = (job / FILES[1]).read_text() + (job / FILES[0]).read_text()
        if text not in known:
            done = submit(job, "local[2]", "-train", "-clusterSize", 2, env=bed.environment(share), model=f"file:{job}/local_model")
            assert done.returncode == 0, done.stderr[-3000:]
            known[text] = sha256(job / "local_model")
        return known[text]

    return of


def fetched_hash(bed, share, path, job):
    file = job / f"fetched_{time.monotonic_ns()}"
    bed.fs(share, "-get", path, file)
    return sha256(file)


def cat_rows(bed, share, folder):
    return [json.loads(line) for line in bed.fs(share, "-cat", f"{folder}/part-*").splitlines()]


def expect_all_rows(rows, count=200):
    assert sorted(r["SampleID"] for r in rows) == [f"{i:08d}" for i in range(count)]
    assert all(set(r) == {"SampleID", "accuracy", "loss", "label"} and 0 <= r["accuracy"][0] <= 1 and r["loss"][0] >= 0 for r in rows)


def told(done, bed):
    """What a failed or finished job says: spark-submit's own words and the containers' logs."""
    text = done.stdout + done.stderr
    for application in set(re.findall(r"application_\d+_\d+", text)):
        text += "".join(f"\n--- {p.parent.name}\n{log[-2500:]}" for p, log in bed.container_logs(application).items())
    return text


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_yarn_with_everything_on_hdfs_gives_the_model_of_one_machine(job, hadoop, stored, local_hash, mode):
    point(job, stored(hadoop, "hdfs"))
    out = f"{hadoop.url('hdfs')}/{mode}"
    done = submit(job, "yarn", *TRAIN, env=hadoop.environment("hdfs"), conf=(*TWO, f"spark.submit.deployMode={mode}"), model=f"{out}/m.model", output=f"{out}/rows")
    assert done.returncode == 0, told(done, hadoop)
    expect_all_rows(cat_rows(hadoop, "hdfs", f"{out}/rows"))
    assert fetched_hash(hadoop, "hdfs", f"{out}/m.model", job) == local_hash(job, hadoop)
