"""The article's command on real Spark: local, with separate executor processes, on a standalone master; and error
messages.
"""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from conftest import crema, sha256
from spark_jobs import DATA_FILES, ENVIRONMENT, FILES, SPARK, TRAIN, command, job, rows, submit, trained  # noqa: F401 (job is a fixture)
from testbed.standalone import Standalone


def test_spark_runs_on_the_java_that_is_meant():
    said = subprocess.run(
        [str(SPARK / "bin/spark-submit"), "--version"], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
    )
    found = re.search(r"OpenJDK.*?, (\d+)\.", said.stdout + said.stderr)[1]
    assert found == os.environ.get("CREMA_EXPECT_JAVA", "17"), said.stderr


def test_the_articles_line_gives_one_model_and_all_rows_wherever_it_runs(job):
    found = []
    for master in ("local[2]", "local-cluster[2,1,1024]"):
        began = time.monotonic()
        done = submit(job, master, *TRAIN, "-clusterSize", 2, model=f"file:{job}/model")
        whole = time.monotonic() - began
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(trained(job))
        line = re.search(r"^crema: first step done ([\d.]+) s after submit: (.*) s$", done.stderr, re.M)
        parts = {name: float(seconds) for name, seconds in (p.rsplit(" ", 1) for p in line[2].split(", "))}
        assert abs(sum(parts.values()) - float(line[1])) < 0.1, line[0]
        # However fast a machine is: Spark's start is a part, and all of them lie within the command's own time.
        assert parts["Spark"] > 0 and parts["plan and checks"] > 0 and float(line[1]) < whole, line[0]
        got = rows(job / "out")
        assert sorted(r["SampleID"] for r in got) == [f"{i:08d}" for i in range(200)]
        line = next((job / "out").glob("part-*")).read_text().splitlines()[0]
        assert re.fullmatch(
            r'{"SampleID":"\d{8}","accuracy":\[[01]\.\d+\],"loss":\[\d+\.\d+(E-\d+)?\],"label":\[\d\.0\]}', line
        ), line
        found[-1]["rows"] = sorted(map(json.dumps, got))
        for name in list(job.glob("*model*")) + list(job.glob("*state")):
            name.unlink() if name.is_file() else None
        shutil.rmtree(job / "out")
    assert found[0] == found[1]
    assert len([n for n in found[0] if n.endswith(".solverstate")]) == 2, found[0].keys()


def test_eight_ranks_on_two_executors_are_those_of_the_executable_alone(job):
    """And so those of eight executors: examples/article.sh has them (test_daemons.py)."""
    done = submit(job, "local-cluster[2,1,1024]", "-train", "-clusterSize", 8)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "8 rank(s) of batch 8 on 2 worker(s)" in done.stdout + done.stderr
    alone = crema("train", "-solver", FILES[0], "-ranks", 8, "-model", "alone", cwd=job)
    assert alone.code == 0 and sha256(job / "alone") == sha256(job / "model"), alone.err[-2000:]


def test_a_hadoop_file_system_other_than_the_local_one(job, records):
    """viewfs is Hadoop's own file system of mount points and needs no daemon: sources, model and output have another
    scheme.
    """
    (job / "store").mkdir()
    for part in ("train", "test"):
        shutil.copytree(records / f"{part}_lmdb", job / f"store/{part}_lmdb")
    net = job / FILES[1]
    net.write_text(net.read_text().replace(str(records), "viewfs://lake/store"))
    done = submit(
        job,
        "local-cluster[2,1,1024]",
        *[*TRAIN, "-clusterSize", 2],
        model="viewfs://lake/store/m/mnist.model",
        output="viewfs://lake/store/features",
        conf=[f"spark.hadoop.fs.viewfs.mounttable.lake.link./store=file://{job}/store"],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(rows(job / "store/features")) == 200
    written = sorted(p.name for p in (job / "store/m").iterdir() if not p.name.startswith("."))
    assert "mnist.model" in written and len(written) == 5, written
    assert [n.split("_iter_")[1] for n in written if "_iter_" in n] == [
        "20.caffemodel",
        "20.solverstate",
        "30.caffemodel",
        "30.solverstate",
    ]


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    """A master and two workers, each a daemon of its own."""
    cluster = Standalone(tmp_path_factory.mktemp("standalone"), SPARK, ENVIRONMENT)
    yield cluster.up(workers=2, memory="1g")
    assert cluster.down()


def test_a_standalone_master_with_two_workers(job, standalone):
    memory = ["spark.executor.memory=700m"]
    done = submit(job, standalone.url, "-train", "-test", "-clusterSize", 2, output="means", conf=memory)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "on 2 worker(s)" in done.stdout + done.stderr
    # An executor's log carries its rank's lines. A master that hears of the executors' end before that of their
    # application starts others, which have nothing to do.
    logs = [f.read_text() for f in (standalone.folder / "work").glob("worker*/app-*/*/stderr")]
    logs = [log for log in logs if "Iteration" in log]
    assert len(logs) == 2
    for log in logs:
        assert re.search(r"\] Iteration 10 \(.* iter/s, .*s/10 iters\), loss = \d", log) and re.search(
            r"\]     Test net output #0: accuracy = \d", log
        ), log[-2000:]
    means = dict(line.split(": ") for line in (job / "means").read_text().splitlines())
    assert set(means) == {"accuracy", "loss"} and 0 <= float(means["accuracy"]) <= 1
    plain = submit(job, "local[1]", *TRAIN, "-clusterSize", 2, model="other")
    assert plain.returncode == 0 and sha256(job / "other") == sha256(job / "model")
    scored = [r["accuracy"][0] for r in rows(job / "out")]
    assert abs(sum(scored) / len(scored) - float(means["accuracy"])) < 1e-6


def test_data_layers_take_plain_paths_and_uris_alike(job, records):
    """A source that only Hadoop can open: the plan knows the net's blobs from the description alone."""
    net = job / DATA_FILES[1]
    plain = net.read_text()
    mount = [f"spark.hadoop.fs.viewfs.mounttable.lake.link./store=file://{records}"]
    tests = []
    for place in (str(records), f"file:{records}", "viewfs://lake/store"):
        net.write_text(plain.replace(f'"{records}', f'"{place}'))
        does = ("-test",) if place.startswith("file:") else ("-train", "-test")
        done = submit(job, "local[1]", *does, model="model0", output="tested", files=DATA_FILES, conf=mount)
        assert done.returncode == 0, done.stderr[-3000:]
        assert ("431080 parameters" in done.stderr) == (place == str(records)), done.stderr[-3000:]
        tests.append((job / "tested").read_text())
        (job / "tested").unlink()
    assert len(set(tests)) == 1 and tests[0].startswith("accuracy: 0."), tests
    refused(
        job,
        *("-features", "accuracy,nothere"),
        words=["in -features", "has no blob 'nothere'", "(its blobs: accuracy, conv1,"],
        files=DATA_FILES,
        model="model0",
        conf=mount,
    )


def refused(job, *flags, words, master="local[1]", **more):
    done = submit(job, master, *flags, **more)
    assert done.returncode == 1, done.stderr[-2000:]
    message = done.stderr[done.stderr.rfind("crema: error:") :]
    for w in words:
        assert w in message, done.stderr[-3000:]
    return message


def test_what_can_be_seen_to_be_wrong_is_said_before_anything_starts(job, records):
    solver, net = job / FILES[0], job / FILES[1]
    good_solver, good_net = solver.read_text(), net.read_text()
    refused(job, "-train", "-frobnicate", words=["there is no flag -frobnicate", "(-help lists the flags)"])
    refused(job, words=["nothing to do: give -train, -test or -features"])
    solver.write_text(good_solver.replace("solver_mode: CPU", "solver_mode: GPU"))
    refused(job, *TRAIN, words=["Cannot use GPU in CPU-only Caffe: check mode.", "solver_mode: CPU"])
    solver.write_text(good_solver)
    (job / "out").mkdir()
    refused(job, *TRAIN, words=["out exists already", "remove it or name another place"])
    (job / "out").rmdir()
    net.write_text(good_net.replace('type: "ReLU"', 'type: "Rectify"'))
    refused(job, *TRAIN, words=["Unknown layer type: Rectify", "layer 'relu1'", FILES[1]])
    net.write_text(good_net)
    refused(job, "-train", "-features", "accuracy,nothere", words=["nothere", "in -features"])
    data = job / DATA_FILES[1]
    data.write_text(data.read_text().replace(f"{records}/train_lmdb", "no/where"))
    refused(job, "-train", words=["there is no LMDB at no/where, the source of layer 'data'"], files=DATA_FILES)
    data.write_text(data.read_text().replace('"no/where"', '"hdfs://nohost:9000/train"'))
    refused(
        job,
        "-train",
        words=["hdfs://nohost:9000/train cannot be reached: the host nohost is not known"],
        files=DATA_FILES,
    )
    assert not (job / "model").exists() and not (job / "out").exists()


def test_what_the_workers_find_reaches_the_driver(job, records):
    net = job / FILES[1]
    good = net.read_text()
    net.write_text(good.replace(f"{records}/train_lmdb", f"{records}/nope_lmdb"))
    refused(job, "-train", words=["nope_lmdb"])
    net.write_text(good.replace("num_output: 10", "num_output: 5"))
    refused(job, "-train", words=["is not a class: there are 5 classes", "in step"])
    net.write_text(good)
    refused(
        job,
        "-train",
        "-clusterSize",
        1004,
        words=["Insufficient training data. Please adjust hyperparameters or increase dataset.", "clusterSize"],
    )
    refused(job, "-features", "accuracy", words=["there is no model at model"])
    assert not (job / "model").exists()
