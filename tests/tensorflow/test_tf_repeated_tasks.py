"""Tasks that Spark runs again: those that feed, and those of nodes."""

import collections
import json
import pathlib

from tensorflow_submit import submit, submit_to_three  # noqa: F401  fixtures

import repeated_tasks_job as job  # isort: skip  needs the path that the one above sets


def check_equal_steps(folder):
    """Two epochs on two nodes: each row once in each, in as many batches on both."""
    nodes = [json.loads(p.read_text()) for p in folder.glob("steps-*.json")]
    assert [len(epochs) for epochs in nodes] == [2, 2]
    for of_one, of_other in zip(*nodes):
        assert len(of_one) == len(of_other) == -(-job.ROWS // 2 // 64)
        assert sorted(x for batch in of_one + of_other for x in batch) == list(range(job.ROWS))


def test_failed_tasks_are_repeated_and_programs_are_not(submit, tmp_path):  # noqa: F811
    submit(pathlib.Path(job.__file__), tmp_path)
    for kind in ("fed", "even", "scored"):
        assert len(list((tmp_path / kind).iterdir())) == job.PARTITIONS, "each partition was read twice"
    seen = collections.Counter(x for p in tmp_path.glob("seen-*.json") for x in json.loads(p.read_text()))
    assert sorted(seen) == list(range(job.ROWS)) and set(seen.values()) <= {1, 2}, "each row at least once"
    check_equal_steps(tmp_path)
    ended = json.loads((tmp_path / "results.json").read_text())
    assert ended["results"] == [x * x for x in range(job.ROWS)], "each row exactly once, in order"
    assert "Exception in worker" in ended["said"] and "ValueError: the model exploded" in ended["said"]
    started = [p.name.split("-")[1] for p in tmp_path.glob("started-*")]
    assert sorted(started) == ["0", "1"], "no program is started twice"


def test_an_executor_that_is_lost_while_it_feeds(submit_to_three, tmp_path):  # noqa: F811
    """Its tasks feed their partitions again, from other executors."""
    submit_to_three(pathlib.Path(job.__file__), tmp_path, "lost")
    assert (tmp_path / "died").exists()
    check_equal_steps(tmp_path)
