"""What DataFeed.arrays() guarantees about types and fields, and batch_results() about numbers of results, over the real
`crema node`: nothing is changed in silence where blocks differ.
"""

import pytest

np = pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import TFNode  # noqa: E402
from test_tf_node import feed, mgr  # noqa: E402,F401  fixture


def taken(mgr, *blocks, size=4):  # noqa: F811
    for block in blocks:
        feed(mgr, block, len(block), end=False)
    mgr.get_queue("input").put(None)
    return list(TFNode.DataFeed(mgr).arrays(size))


def whole(batches, field=0):
    return np.concatenate([b[field] for b in batches])


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (([1, 2], [3.5]), r"a row is float64 from row 2 of this feed on, and was int64; .* float\(x\)"),
        (([1, 2, 3], [4.5, 5.5]), "is float64 from row 3 of this feed on, and was int64"),  # one batch of both
        (([1.5], [2**53 + 1]), "is int64 from row 1 of this feed on, and was float64"),
        (([True], [1]), "is int64 from row 1 of this feed on, and was bool"),
        (([1], ["a"]), "is text or bytes from row 1 of this feed on, and was int64"),
        (([("a", 1)], [("b", 1.5)]), r"field 1 of a row is float64 from row 1"),
        (([[1, 2]], [[1, 2, 3]]), r"has the shape \[3\] from row 1 of this feed on, and had \[2\]; .*pad the rows"),
        (([("a", 1)], [("b", 1, 2)]), r"from row 1 of this feed on rows have 3 field\(s\) \[0, 1, 2\], and had 2"),
        (([{"x": 1}], [{"y": 1}]), r"have 1 field\(s\) \['y'\], and had 1 field\(s\) \['x'\]"),
        (([1], [(1, 2)]), r"rows have 2 field\(s\) \[0, 1\], and had no fields"),
        (([np.float32(1)], [1.1]), "is float64 from row 1 of this feed on, and was float32"),
    ],
)
def test_rows_of_another_type_are_an_error_and_not_another_number(mgr, blocks, said):  # noqa: F811
    with pytest.raises(TypeError, match=said):
        taken(mgr, *blocks)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (([1.5], [2, 3]), [1.5, 2, 3]),
        (([np.int64(1)], [np.int16(2)]), [1, 2]),
        (([np.float64(0.5)], [np.float32(0.25)]), [0.5, 0.25]),
    ],
)
def test_what_the_first_type_holds_exactly_is_taken(mgr, blocks, expected):  # noqa: F811
    values = whole(taken(mgr, *blocks, size=2))
    assert values.tolist() == expected and values.dtype == np.array(blocks[0]).dtype


def test_tuples_have_fields_and_lists_do_not(mgr):  # noqa: F811
    pairs = [(0.5, 1), (1.5, 2), (2.5, 3)]
    numbers = [[float(i)] * 3 for i in range(3)]
    long = [tuple(range(i, i + 17)) for i in range(3)]
    feed(mgr, pairs, end=False)
    batch = next(TFNode.DataFeed(mgr).arrays(3))
    assert [a.tolist() for a in batch] == [[0.5, 1.5, 2.5], [1, 2, 3]] and batch[1].dtype == np.int64
    for rows in (numbers, long):
        feed(mgr, rows, end=False)
        batch = next(TFNode.DataFeed(mgr).arrays(3))
        assert len(batch) == 1 and batch[0].tolist() == [list(r) for r in rows]
    feed(mgr, pairs + [(1, 2)])
    rows = TFNode.DataFeed(mgr).next_batch(4)
    assert rows == [*pairs, (1, 2)] and type(rows[0][1]) is int, "an int beside a float field stays one"


def test_more_results_than_rows_are_refused(mgr):  # noqa: F811
    feed(mgr, list(range(8)))
    data = TFNode.DataFeed(mgr, train_mode=False)
    assert data.next_batch(3) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"got 4 result\(s\), and 3 row\(s\) of next_batch\(\) have none yet"):
        data.batch_results([0, 1, 4, 9])
    data.batch_results([0, 1])  # in parts is fine, as is reading ahead
    data.next_batch(3)
    data.batch_results([4, 9, 16, 25])
    with pytest.raises(ValueError, match=r"got 1 result\(s\), and 0 row"):
        data.batch_results(np.zeros(1))


def test_what_others_may_still_read_cannot_be_written(mgr):  # noqa: F811
    """The node copies a block for later epochs while the program has it already."""
    (batch,) = taken(mgr, [np.arange(3.0), np.arange(3.0)], size=2)
    (values,) = batch
    with pytest.raises(ValueError, match="read-only"):
        values /= 255
    own = values.copy()
    own /= 255
    assert own[1, 2] == 2 / 255
