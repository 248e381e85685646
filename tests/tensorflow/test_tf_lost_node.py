"""An executor that is lost while nodes are awaited: nothing has been computed, and Spark's next attempt joins."""

import json
import pathlib

from tensorflow_submit import submit_to_three  # noqa: F401  fixture

import lost_node_job as job  # isort: skip  needs the path that the one above sets


def test_a_node_that_is_lost_before_all_are_there_comes_again(submit_to_three, tmp_path):  # noqa: F811
    said = submit_to_three(pathlib.Path(job.__file__), tmp_path)
    attempts = sorted(json.loads(p.read_text()) for p in tmp_path.glob("*.json"))
    assert attempts == [0, 0, 1], "three programs, each once"
    assert "was lost: " in said and "; the next attempt of its task takes its place" in said, said
