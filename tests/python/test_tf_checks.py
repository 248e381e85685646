"""What TFCluster.run() says of its arguments before anything starts."""

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import _checks


@pytest.mark.parametrize(
    ("master", "nodes"), [("local[2]", 2), ("local[2,4]", 2), ("local-cluster[1,1,1]", 9), ("yarn", 9), (None, 9)]
)
def test_as_many_nodes_as_there_are_slots(master, nodes):
    _checks.slots(master, nodes)


@pytest.mark.parametrize(("master", "nodes", "there"), [("local", 2, 1), ("local[2]", 3, 2), ("local[2,4]", 3, 2)])
def test_more_nodes_than_a_local_master_has_slots(master, nodes, there):
    with pytest.raises(
        ValueError, match=rf"^{nodes} nodes are wanted, and --master .* has {there} task slot"
    ) as refused:
        _checks.slots(master, nodes)
    assert f"take --master local[{nodes}] or more" in str(refused.value)
