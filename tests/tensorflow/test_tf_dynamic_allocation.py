"""Executors that Spark takes away when they are idle, as those of nodes are between two feeds."""

import json
import pathlib

from tensorflow_submit import submit_to_three  # noqa: F401  fixture

import dynamic_allocation_job as job  # isort: skip  needs the path that the one above sets

SETTINGS = (
    "spark.dynamicAllocation.enabled=true",
    "spark.dynamicAllocation.shuffleTracking.enabled=true",
    "spark.dynamicAllocation.executorIdleTimeout=2s",
)


def test_executors_with_a_node_stay(submit_to_three, tmp_path):  # noqa: F811
    said = submit_to_three(pathlib.Path(job.__file__), tmp_path, conf=SETTINGS)
    seen = sorted(x for p in tmp_path.glob("seen-*.json") for x in json.loads(p.read_text()))
    assert seen == list(range(2 * job.ROWS))
    assert json.loads((tmp_path / "executors.json").read_text()) == {
        "started": 3,
        "first": [2, [True, True]],  # that of no node has been taken away, and those of nodes have not
        "second": [2, [True, True]],
        "ended": 0,  # the end of the run lets go of them
    }
    assert "may take executors away" not in said
