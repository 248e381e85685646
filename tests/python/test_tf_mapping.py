"""What DataFeed's input_mapping makes of rows with names and without, over the real `crema node`."""

import pytest

pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import TFNode  # noqa: E402
from test_tf_node import feed, mgr  # noqa: E402,F401  fixture


def test_a_mapping_gives_tensors_by_name(mgr):  # noqa: F811
    feed(mgr, [([1.0, 2.0], [0.5]), ([3.0, 4.0], [1.5])])
    data = TFNode.DataFeed(mgr, input_mapping={"col1": "x", "col2": "y_"})
    assert data.next_batch(5) == {"x": [[1.0, 2.0], [3.0, 4.0]], "y_": [[0.5], [1.5]]}


def test_a_mapping_of_another_number_of_fields_is_named(mgr):  # noqa: F811
    feed(mgr, [(1.0, b"")], end=False)
    with pytest.raises(TypeError, match=r"input_mapping names 3 column\(s\), and rows have 2 fields"):
        TFNode.DataFeed(mgr, input_mapping={"a": "x", "b": "y", "c": "z"}).next_batch(1)
    feed(mgr, [(1.0, b"", 2)])
    with pytest.raises(TypeError, match=r"input_mapping names 2 column\(s\), and rows have 3 fields"):
        next(TFNode.DataFeed(mgr, input_mapping={"a": "x", "b": "y"}).arrays(1))


MAPPING = {"image": "x", "label": "y"}


def named_rows(kind):
    rows = [{"label": i, "image": [i + 0.5, i + 0.25], "more": "unused"} for i in range(3)]
    if kind == "dicts":
        return rows
    from pyspark.sql import Row

    return [Row(**row) for row in rows]


@pytest.mark.parametrize("kind", ["dicts", "Rows"])
def test_a_mapping_goes_by_the_names_that_rows_have(mgr, kind):  # noqa: F811
    """In whatever order they are, and whatever there is beside them."""
    if kind == "Rows":
        pytest.importorskip("pyspark")
    feed(mgr, named_rows(kind), end=False)
    feed(mgr, named_rows(kind))
    data = TFNode.DataFeed(mgr, input_mapping=MAPPING)
    assert data.next_batch(3) == {"x": [[0.5, 0.25], [1.5, 1.25], [2.5, 2.25]], "y": [0, 1, 2]}
    ((x, y),) = data.arrays(3)
    assert x.tolist() == [[0.5, 0.25], [1.5, 1.25], [2.5, 2.25]] and y.tolist() == [0, 1, 2]


def test_a_mapping_of_a_column_that_rows_do_not_have_is_named(mgr):  # noqa: F811
    feed(mgr, named_rows("dicts"))
    with pytest.raises(
        TypeError, match="input_mapping names column 'picture', which rows do not have; they have label, i"
    ):
        TFNode.DataFeed(mgr, input_mapping={"picture": "x", "label": "y"}).next_batch(1)
