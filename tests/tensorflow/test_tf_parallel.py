"""TFParallel on two executors: independent instances, at the same time or one after the other."""

import os

import pytest
from tensorflow_session import spark, tf  # noqa: F401  fixture

from tensorflowonspark import TFParallel, tasks

pytest.importorskip("tensorflowonspark.TFSparkNode", reason="the runtime (TFSparkNode) is not in this package")


def note(folder):
    """A program that writes what it knows of itself to a file."""

    def main(args, ctx):
        import json
        import pathlib

        import tensorflow as tf

        three = int(tf.math.add(args["x"], 2))
        known = [ctx.worker_num, ctx.executor_id, ctx.num_workers, ctx.absolute_path("a"), ctx.mgr, three]
        pathlib.Path(folder, str(ctx.worker_num)).write_text(json.dumps(known))

    return main


def notes(folder):
    import json

    return [json.loads(path.read_text()) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("count, barrier", [(2, True), (2, False), (3, False)])
def test_instances_know_their_number(spark, tmp_path, count, barrier):
    TFParallel.run(spark.sparkContext, note(str(tmp_path)), {"x": 1}, count, use_barrier=barrier)
    assert notes(tmp_path) == [[i, i, count, f"file://{os.getcwd()}/a", None, 3] for i in range(count)]


def test_a_session_instead_of_a_context(spark, tmp_path):
    TFParallel.run(spark, note(str(tmp_path)), {"x": 1}, 2)
    assert len(notes(tmp_path)) == 2


def test_more_than_there_are_slots(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "SLOT_WAIT", 0.5)
    with pytest.raises(RuntimeError, match=r"3 task\(s\) must run at the same time .* has slots for 2"):
        TFParallel.run(spark.sparkContext, note(str(tmp_path)), {"x": 1}, 3)
    assert notes(tmp_path) == []


def test_an_error_in_one_instance(spark):
    def main(args, ctx):
        if ctx.worker_num == 1:
            raise ValueError("instance 1 fails")

    with pytest.raises(Exception, match="instance 1 fails"):
        TFParallel.run(spark.sparkContext, main, {}, 2)


def test_files_are_uploaded_where_spark_has_no_configuration_of_hadoop(spark, tmp_path):
    target = str(tmp_path / "uploaded")

    def main(args, ctx):
        import pathlib

        if ctx.worker_num == 0:
            pathlib.Path("made").write_text("by an instance")
            ctx.upload("made", f"file://{target}")
        else:
            try:
                ctx.upload("/etc/hostname", "nowhere://host/x")
            except OSError as e:
                pathlib.Path(args["folder"], "said").write_text(str(e))

    TFParallel.run(spark, main, {"folder": str(tmp_path)}, 2)
    assert (tmp_path / "uploaded").read_text() == "by an instance"
    said = (tmp_path / "said").read_text()
    assert said.startswith("hadoop fs -put -f failed: ") and "nowhere" in said and "\tat " not in said, said
