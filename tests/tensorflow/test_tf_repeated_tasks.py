"""Tasks that Spark runs again: those that feed, and those of nodes."""

import collections
import json
import pathlib

from tensorflow_submit import submit  # noqa: F401  fixture

import repeated_tasks_job as job  # isort: skip  needs the path that the one above sets


def test_failed_tasks_are_repeated_and_programs_are_not(submit, tmp_path):  # noqa: F811
    submit(pathlib.Path(job.__file__), tmp_path)
    for kind in ("fed", "scored"):
        assert len(list((tmp_path / kind).iterdir())) == job.PARTITIONS, "each partition was read twice"
    seen = collections.Counter(x for p in tmp_path.glob("seen-*.json") for x in json.loads(p.read_text()))
    assert sorted(seen) == list(range(job.ROWS)) and set(seen.values()) <= {1, 2}, "each row at least once"
    ended = json.loads((tmp_path / "results.json").read_text())
    assert ended["results"] == [x * x for x in range(job.ROWS)], "each row exactly once, in order"
    assert "Exception in worker" in ended["said"] and "ValueError: the model exploded" in ended["said"]
    started = [p.name.split("-")[1] for p in tmp_path.glob("started-*")]
    assert sorted(started) == ["0", "1"], "no program is started twice"
