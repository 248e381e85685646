"""Executors on YARN: as many as are needed or may come, too few, and one that is killed."""

import os
import re
import signal
import subprocess
import time

from conftest import NOT_WHEN_SLOW, wait_until
from disturbed_jobs import marked_executors as executors
from disturbed_jobs import marked_processes
from spark_jobs import (
    FILES,
    command,
    job,  # noqa: F401  a fixture
    submit,
)
from test_daemons import (
    TWO,
    fetched_hash,
    local_hash,  # noqa: F401  a fixture
    output_and_logs,
    point,
    stored,  # noqa: F401  a fixture
)


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


@NOT_WHEN_SLOW
def test_dynamic_allocation_on_yarn_is_taken_with_one_size_and_refused_with_two(job, hadoop, stored, local_hash):
    point(job, stored(hadoop, "hdfs"))
    model = f"{hadoop.url('hdfs')}/dynamic.model"
    done = submit(job, "yarn", "-train", env=hadoop.environment("hdfs"), conf=dynamic(2), model=model)
    assert done.returncode == 0, output_and_logs(done, hadoop)
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
        conf=(
            "spark.executor.instances=40",
            "spark.executor.memory=4g",  # which two of them fill
            "spark.scheduler.maxRegisteredResourcesWaitingTime=20s",
        ),
    )
    assert done.returncode == 1
    assert "actual number of executors is not as expected" in done.stderr and "of 40 after 20 s" in done.stderr, (
        done.stderr[-2000:]
    )


def test_a_killed_executor_on_yarn_ends_the_run_with_its_name_and_leaves_no_child(job, hadoop, stored):
    point(job, stored(hadoop, "hdfs"))
    solver = job / FILES[0]
    solver.write_text(re.sub(r"max_iter: \d+", "max_iter: 1000000", solver.read_text()))
    model = f"{hadoop.url('hdfs')}/killed.model"
    with open(job / "driver.log", "w") as log:
        run = subprocess.Popen(
            command(job, "yarn", "-train", conf=(*TWO, "spark.crema.replacement=fail"), model=model),
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
    assert "crema: error:" in text, text[-3000:]
    error = text[text.rindex("crema: error:") :]  # before it Spark's own log may speak of the stage that it cancelled
    assert re.match(r"crema: error: worker \d \(rank \d, host .*pid \d+\) was lost in step \d+", error), error
    assert re.search(r"worker \d was in executor \d on host \S+, container container_\d+", error), error
    assert "cancelled" not in error, error
    wait_until(lambda: not executors(hadoop) and not marked_processes(hadoop, "/crema "), 20, "the end of all children")
