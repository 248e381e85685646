"""Jobs on separate real daemons: YARN with two NodeManagers; sources, models, snapshots and rows on HDFS, Azure's blob
store and S3.
"""

import json
import pathlib
import re
import shutil
import time

import pytest

from conftest import NOT_WHEN_SLOW, sha256
from spark_jobs import (
    FILES,
    JAR,
    TRAIN,
    job,  # noqa: F401  a fixture
    submit,
)
from testbed import article

TWO = ("spark.executor.instances=2",)


@pytest.fixture(scope="module")
def stored(records):
    """store(bed, share): uploads the records to that file system, once, and returns the folder."""
    done = {}

    def store(bed, share, folder="/data"):
        if share not in done:
            target = bed.url(share) + folder
            bed.fs(share, "-mkdir", "-p", target)
            bed.fs(share, "-put", "-f", records / "train_lmdb", records / "test_lmdb", target)
            done[share] = target
        return done[share]

    return store


def point(job, where):
    """Makes the net read from `where` instead of the local records."""
    net = job / FILES[1]
    net.write_text(re.sub(r'source: "\S*/((?:mnist_)?(?:train|test)_lmdb)"', rf'source: "{where}/\1"', net.read_text()))


@pytest.fixture(scope="module")
def local_hash():
    """of(job, bed, share, ranks): the hash of the model that local[2] trains from the same sources, as a model's
    file names them; computed once for each.
    """
    known = {}

    def of(job, bed, share, ranks=2):
        if (share, ranks) not in known:
            folder = job / "local"
            folder.mkdir()
            for name in FILES:
                shutil.copy(job / name, folder)
            done = submit(
                folder,
                "local[2]",
                "-train",
                "-clusterSize",
                ranks,
                env=bed.environment(share),
                model=f"file:{folder}/model",
            )
            assert done.returncode == 0, done.stderr[-3000:]
            known[share, ranks] = sha256(folder / "model")
        return known[share, ranks]

    return of


def fetched_hash(bed, share, path, job):
    file = job / f"fetched_{time.monotonic_ns()}"
    bed.fs(share, "-get", path, file)
    return sha256(file)


def cat_rows(bed, share, folder):
    return [json.loads(line) for line in bed.fs(share, "-cat", f"{folder}/part-*").splitlines()]


def expect_all_rows(rows, count=200):
    assert sorted(r["SampleID"] for r in rows) == [f"{i:08d}" for i in range(count)]
    assert all(
        set(r) == {"SampleID", "accuracy", "loss", "label"} and 0 <= r["accuracy"][0] <= 1 and r["loss"][0] >= 0
        for r in rows
    )


def output_and_logs(done, bed):
    """For error messages: spark-submit's output and the containers' logs."""
    text = done.stdout + done.stderr
    for application in set(re.findall(r"application_\d+_\d+", text)):
        text += "".join(f"\n--- {p.parent.name}\n{log[-2500:]}" for p, log in bed.container_logs(application).items())
    return text


def states(bed, share, folder):
    """The snapshots there, by the number after _iter_."""
    listed = [line.split()[-1] for line in bed.fs(share, "-ls", folder).splitlines() if "_iter_" in line]
    return {path.split("_iter_")[1]: path for path in listed}


def train_and_resume(job, bed, share, stored):
    """Sources, model, snapshots and rows on `share`; then one executor resumes training at step 20, to the same model,
    whose hash it returns.
    """
    point(job, stored(bed, share))
    out, environment = f"{bed.url(share)}/{share}_run", bed.environment(share)
    done = submit(job, "yarn", *TRAIN, env=environment, conf=TWO, model=f"{out}/m.model", output=f"{out}/rows")
    assert done.returncode == 0, output_and_logs(done, bed)
    expect_all_rows(cat_rows(bed, share, f"{out}/rows"))
    at = states(bed, share, out)
    assert sorted(at) == ["20.caffemodel", "20.solverstate", "30.caffemodel", "30.solverstate"]
    from_there = ("-snapshot", at["20.solverstate"], "-weights", at["20.caffemodel"], "-clusterSize", 2)
    again = submit(job, "local[2]", "-train", *from_there, env=environment, model=f"{out}/again")
    assert again.returncode == 0, output_and_logs(again, bed)
    model = fetched_hash(bed, share, f"{out}/m.model", job)
    assert fetched_hash(bed, share, f"{out}/again", job) == model
    return model


def test_yarn_client_mode_with_everything_on_hdfs(job, hadoop, stored, local_hash):
    model = train_and_resume(job, hadoop, "hdfs", stored)
    assert model == local_hash(job, hadoop, "hdfs")


@NOT_WHEN_SLOW
def test_yarn_client_mode_with_everything_on_s3(job, s3, stored):
    train_and_resume(job, s3, "s3a", stored)


def test_yarn_cluster_mode_with_everything_on_hdfs(job, hadoop, stored, local_hash):
    point(job, stored(hadoop, "hdfs"))
    out = f"{hadoop.url('hdfs')}/cluster"
    done = submit(
        job,
        "yarn",
        *TRAIN,
        env=hadoop.environment("hdfs"),
        conf=(*TWO, "spark.submit.deployMode=cluster"),
        model=f"{out}/m.model",
        output=f"{out}/rows",
    )
    assert done.returncode == 0, output_and_logs(done, hadoop)
    expect_all_rows(cat_rows(hadoop, "hdfs", f"{out}/rows"))
    assert fetched_hash(hadoop, "hdfs", f"{out}/m.model", job) == local_hash(job, hadoop, "hdfs")


def test_the_articles_line_word_for_word_on_eight_executors(job, azure, records, local_hash):
    home, solver = job / "caffe_on_spark", job / FILES[0]
    solver.write_text(solver.read_text().replace("snapshot: 20", "snapshot: 0"))
    article.lay_out(home, JAR, [job / name for name in FILES])
    article.upload(azure, records / "train_lmdb", records / "test_lmdb")
    done, seconds = article.run(azure, home, 240)
    assert done.returncode == 0, output_and_logs(done, azure)
    expect_all_rows(article.read_rows(azure))
    application = re.search(r"application_\d+_\d+", done.stderr).group()
    containers = azure.container_logs(application)
    assert len(containers) == 9, sorted(containers)  # for eight executors and the driver
    assert sum("8 rank(s) of batch 8 on 8 worker(s)" in log for log in containers.values()) == 1
    for name in FILES:
        shutil.copy(home / "data" / name, job)
    assert fetched_hash(azure, "wasb", "wasb:///mnist.model", job) == local_hash(job, azure, "wasb", 8)


def test_snapshots_beside_a_model_in_the_root_of_the_default_file_system(job, hadoop):
    net = job / FILES[1]
    net.write_text(net.read_text().replace('source: "/', 'source: "file:/'))
    done = submit(
        job,
        "local[1]",
        "-train",
        "-clusterSize",
        1,
        env=hadoop.environment("hdfs"),
        model="hdfs:///root.model",
        timeout=90,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"30.caffemodel", "30.solverstate"} <= set(states(hadoop, "hdfs", "/"))


def test_paths_without_a_scheme_are_the_default_file_systems(job, hadoop, stored):
    """source /data/train_lmdb, -model /plain/m, -output rows: all on HDFS, the last in the user's folder. When only
    a local file of that name exists, the error says so.
    """
    stored(hadoop, "hdfs")
    net = job / FILES[1]
    local = net.read_text()
    environment = hadoop.environment("hdfs")
    refused = submit(job, "local[1]", "-train", "-clusterSize", 1, env=environment, model="/plain/m", timeout=90)
    assert refused.returncode == 1
    assert re.search(
        r"there is nothing at hdfs://\S+/train_lmdb, which source of layer 'data' \(TRAIN\) .* means, as fs.defaultFS "
        r"is hdfs://\S+; on the local disk there is: write file:/\S+/train_lmdb",
        refused.stderr,
    ), refused.stderr[-1500:]
    net.write_text(re.sub(r'source: "\S*/((?:train|test)_lmdb)"', r'source: "/data/\1"', local))
    done = submit(
        job, "local[1]", *TRAIN, "-clusterSize", 1, env=environment, model="/plain/m", output="rows", timeout=90
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "random_seed" not in done.stderr  # the example's solver sets it
    assert {"30.caffemodel", "30.solverstate"} <= set(states(hadoop, "hdfs", "/plain")) and not pathlib.Path(
        "/plain"
    ).exists()
    expect_all_rows(cat_rows(hadoop, "hdfs", f"/user/{environment['HADOOP_USER_NAME']}/rows"))
    net.write_text(local.replace('source: "/', 'source: "file:/'))
    scored = submit(job, "local[1]", "-test", env=environment, model="/plain/m", output="file:result", timeout=90)
    assert scored.returncode == 0 and "accuracy: " in (job / "result").read_text(), scored.stderr[-2000:]
