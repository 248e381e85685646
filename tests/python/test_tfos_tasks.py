"""tensorflowonspark.tasks on a real Spark, and TFParallel's placement; dfutil's errors where there is no jar."""

import time

import pytest

from spark_session import session  # noqa: F401  fixture

from conftest import ROOT
from tensorflowonspark import dfutil, tasks, util


@pytest.fixture(autouse=True)
def package(session):
    """The Python of tasks finds the package too, as it would where it is installed."""
    session.sparkContext.environment["PYTHONPATH"] = str(ROOT / "python")


def test_each_number_in_a_task_of_its_own(session):
    def where(number):
        from pyspark import TaskContext

        return f"{number} {TaskContext.get().partitionId()}"

    for sc in (session, session.sparkContext):
        assert tasks.run_tasks(sc, where, 5) == [f"{i} {i}" for i in range(5)]


def test_tasks_that_start_together(session):
    def peers(number):
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        context.barrier()
        return f"{number} of {len(context.getTaskInfos())}"

    assert tasks.run_tasks(session, peers, 2, barrier=True) == ["0 of 2", "1 of 2"]


def test_too_few_slots_are_an_error_at_once(session):
    start = time.monotonic()
    words = r"3 task\(s\) must run at the same time and the cluster local\[2\] has slots for 2; start more executors"
    with pytest.raises(RuntimeError, match=words):
        tasks.run_tasks(session, str, 3, barrier=True)
    assert time.monotonic() - start < 2
    assert tasks.run_tasks(session, str, 3) == ["0", "1", "2"]  # without a barrier they wait for each other


def test_an_error_in_a_task(session):
    def fails(number):
        raise ValueError(f"number {number} is wrong")

    with pytest.raises(Exception, match="number 0 is wrong"):
        tasks.run_tasks(session, fails, 1)


def test_default_fs(session):
    conf = session.sparkContext._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    try:
        for value, expected in (("file:///", "file://"), ("hdfs://h:8020", "hdfs://h:8020"), ("s3a://b/", "s3a://b/")):
            conf.set("fs.defaultFS", value)
            assert util.default_fs(session) == util.default_fs(session.sparkContext) == expected
    finally:
        conf.set("fs.defaultFS", before)


def test_a_loaded_frame_is_known_as_long_as_it_lives(session):
    frame = session.range(3)
    dfutil.loadedDF[frame] = "/somewhere"
    assert dfutil.isLoadedDF(frame) and not dfutil.isLoadedDF(frame.filter("id > 0"))
    before = len(dfutil.loadedDF)
    del frame
    assert len(dfutil.loadedDF) == before - 1
