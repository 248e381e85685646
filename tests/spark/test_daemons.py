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

from conftest import sha256, wait_until
from spark_jobs import FILES, JAR, TRAIN, command, job, submit  # noqa: F401 (job is a fixture)
from testbed import article

TWO = ("spark.executor.instances=2",)


@pytest.fixture(scope="module")
def stored(records):
    """store(bed, share): the records as a user has them on that file system, uploaded once; returns the folder."""
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
    """Lets the net read from `where` instead of the local records."""
    net = job / FILES[1]
    net.write_text(re.sub(r'source: "\S*/((?:mnist_)?(?:train|test)_lmdb)"', rf'source: "{where}/\1"', net.read_text()))


@pytest.fixture(scope="module")
def local_hash():
    """of(job, bed, share, ranks): the model that local[2] gives from the same sources (a model's net names them); computed once for each."""
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


def told(done, bed):
    """What a failed or finished job says: spark-submit's own words and the containers' logs."""
    text = done.stdout + done.stderr
    for application in set(re.findall(r"application_\d+_\d+", text)):
        text += "".join(f"\n--- {p.parent.name}\n{log[-2500:]}" for p, log in bed.container_logs(application).items())
    return text


def states(bed, share, folder):
    """The snapshots there, by what follows _iter_."""
    listed = [line.split()[-1] for line in bed.fs(share, "-ls", folder).splitlines() if "_iter_" in line]
    return {path.split("_iter_")[1]: path for path in listed}


def train_and_resume(job, bed, share, stored, local_hash):
    """Sources, model, snapshots and rows on `share`; then from step 20 again, to the same model."""
    point(job, stored(bed, share))
    expected = local_hash(job, bed, share)
    out, environment = f"{bed.url(share)}/{share}_run", bed.environment(share)
    done = submit(job, "yarn", *TRAIN, env=environment, conf=TWO, model=f"{out}/m.model", output=f"{out}/rows")
    assert done.returncode == 0, told(done, bed)
    expect_all_rows(cat_rows(bed, share, f"{out}/rows"))
    assert fetched_hash(bed, share, f"{out}/m.model", job) == expected
    at = states(bed, share, out)
    assert sorted(at) == ["20.caffemodel", "20.solverstate", "30.caffemodel", "30.solverstate"]
    again = submit(
        job,
        "yarn",
        "-train",
        "-snapshot",
        at["20.solverstate"],
        "-weights",
        at["20.caffemodel"],
        env=environment,
        conf=TWO,
        model=f"{out}/again",
    )
    assert again.returncode == 0, told(again, bed)
    assert fetched_hash(bed, share, f"{out}/again", job) == expected


def test_yarn_client_mode_with_everything_on_hdfs(job, hadoop, stored, local_hash):
    train_and_resume(job, hadoop, "hdfs", stored, local_hash)


def test_yarn_client_mode_with_everything_on_s3(job, s3, stored, local_hash):
    train_and_resume(job, s3, "s3a", stored, local_hash)


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
    assert done.returncode == 0, told(done, hadoop)
    expect_all_rows(cat_rows(hadoop, "hdfs", f"{out}/rows"))
    assert fetched_hash(hadoop, "hdfs", f"{out}/m.model", job) == local_hash(job, hadoop, "hdfs")


def test_the_articles_line_word_for_word_on_eight_executors(job, azure, records, local_hash):
    home, solver = job / "caffe_on_spark", job / FILES[0]
    solver.write_text(solver.read_text().replace("snapshot: 20", "snapshot: 0"))
    article.lay_out(home, JAR, [job / name for name in FILES])
    article.upload(azure, records / "train_lmdb", records / "test_lmdb")
    done, seconds = article.run(azure, home, 240)
    assert done.returncode == 0, told(done, azure)
    expect_all_rows(article.read_rows(azure))
    application = re.search(r"application_\d+_\d+", done.stderr).group()
    containers = azure.container_logs(application)
    assert len(containers) == 9, sorted(containers)  # eight executors and the driver's
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
    """source /data/train_lmdb, -model /plain/m, -output rows: all on HDFS, the last in the user's folder; and a local file of that name is told of."""
    stored(hadoop, "hdfs")
    net = job / FILES[1]
    local = net.read_text()
    environment = hadoop.environment("hdfs")
    refused = submit(job, "local[1]", "-train", "-clusterSize", 1, env=environment, model="/plain/m", timeout=90)
    assert refused.returncode == 1
    assert re.search(
        r"there is nothing at hdfs://\S+/train_lmdb, which source of layer 'data' \(TRAIN\) .* means, as fs.defaultFS is hdfs://\S+; on the local disk there is: write file:/\S+/train_lmdb",
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


def dynamic(most):
    return tuple(
        f"spark.dynamicAllocation.{k}={v}"
        for k, v in (
            ("enabled", "true"),
            ("minExecutors", 2),
            ("maxExecutors", most),
            ("shuffleTracking.enabled", "true"),
        )
    )


def test_dynamic_allocation_on_yarn_is_taken_with_one_size_and_refused_with_two(job, hadoop, stored, local_hash):
    point(job, stored(hadoop, "hdfs"))
    model = f"{hadoop.url('hdfs')}/dynamic.model"
    done = submit(job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=dynamic(2), model=model)
    assert done.returncode == 0, told(done, hadoop)
    assert "2 rank(s) of batch 8 on 2 worker(s)" in done.stdout + done.stderr
    assert fetched_hash(hadoop, "hdfs", model, job) == local_hash(job, hadoop, "hdfs")
    refused = submit(job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=dynamic(3), model=model + "2")
    assert refused.returncode == 1
    assert (
        "spark.dynamicAllocation.maxExecutors and spark.dynamicAllocation.minExecutors must be identical"
        in refused.stderr
    )


def test_a_cluster_that_is_too_small_is_told_by_name(job, hadoop, stored):
    point(job, stored(hadoop, "hdfs"))
    done = submit(
        job,
        "yarn",
        "-train",
        env=hadoop.environment("hdfs"),
        model=f"{hadoop.url('hdfs')}/never.model",
        conf=("spark.executor.instances=40", "spark.scheduler.maxRegisteredResourcesWaitingTime=20s"),
    )
    assert done.returncode == 1
    assert "actual number of executors is not as expected" in done.stderr and "of 40 after 20 s" in done.stderr, (
        done.stderr[-2000:]
    )


def marked_processes(bed, what):
    """Processes of the bed's jobs whose command line holds these words."""
    found = []
    for pid in bed.processes.marked():
        try:
            if what in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(pid)
        except OSError:
            pass
    return found


def executors(bed):
    return [
        p
        for p in marked_processes(bed, "YarnCoarseGrainedExecutorBackend")
        if os.path.basename(os.readlink(f"/proc/{p}/exe")) == "java"
    ]


def test_a_killed_executor_on_yarn_ends_the_run_with_its_name_and_leaves_no_child(job, hadoop, stored):
    point(job, stored(hadoop, "hdfs"))
    solver = job / FILES[0]
    solver.write_text(re.sub(r"max_iter: \d+", "max_iter: 1000000", solver.read_text()))
    model = f"{hadoop.url('hdfs')}/killed.model"
    with open(job / "driver.log", "w") as log:
        run = subprocess.Popen(
            command(job, "yarn", "-train", conf=TWO, model=model),
            cwd=job,
            env=hadoop.environment("hdfs"),
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(
            lambda: "iteration" in (job / "driver.log").read_text() or run.poll() is not None, 90, "the first step"
        )
        assert len(executors(hadoop)) == 2, (job / "driver.log").read_text()[-3000:]
        assert len(marked_processes(hadoop, "/crema worker")) == 2
        os.kill(executors(hadoop)[0], signal.SIGKILL)
        start = time.monotonic()
        code = run.wait(60)
        print(f"ended {time.monotonic() - start:.1f} s after the kill")
    finally:
        run.kill()
        run.wait(20)
    text = (job / "driver.log").read_text()
    assert code == 1, text[-3000:]
    assert re.search(r"crema: error: worker \d \(rank \d, host .*pid \d+\) was lost in step \d+", text), text[-3000:]
    assert (
        re.search(r"worker \d was in executor \d on host \S+, container container_\d+", text)
        and "cancelled" not in text
    ), text[-3000:]
    wait_until(lambda: not executors(hadoop) and not marked_processes(hadoop, "/crema "), 20, "the end of all children")
