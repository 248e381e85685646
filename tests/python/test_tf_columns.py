"""Rows that become columns and rows again: every kind that can be fed comes back equal, with its types; what cannot be
fed is refused with a sentence.
"""

import datetime
import random
import sys

import pytest

np = pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import _block, _columns  # noqa: E402


def through(rows):
    """The rows of a block that was written and read."""
    written = _block.of_rows(rows)
    block = _block.Block(written.fd)
    assert block.rows == len(rows) and block.bytes == written.size
    return block


def equal(a, b):
    """Equal with types, arrays included."""
    if isinstance(a, (np.ndarray, np.generic)) or isinstance(b, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return a == b


KINDS = {
    "int": [0, -5, 2**62, -(2**63)],
    "float": [0.5, -1e300, float("inf"), 0.0],
    "bool": [True, False],
    "str": ["", "abc", "Zürich", "\0", "\U0001f600"],
    "bytes": [b"", b"\xff\0", b"x" * 100],
    "bytearray": [bytearray(b"ab"), bytearray()],
    "ints in lists": [[1], [2], [3]],
    "lists of one length": [[1.0, 2.0], [3.0, 4.0]],
    "lists of many lengths": [[1, 2, 3], [], [4]],
    "tuples": [(1, 2), (3, 4)],
    "nested": [[[1, 2], [3]], [[4]], []],
    "words": [["a", "bc"], [], ["d"]],
    "picture and label": [([0, 255, 3], [7]), ([1, 2, 4], [8])],
    "bytes and label": [(b"abc", 7), (b"", -1)],
    "list of fields": [[b"a", 1, "x"], [b"b", 2, "y"]],
    "dict": [{"a": 1, "b": [1.5]}, {"a": 2, "b": [2.5]}],
    "arrays": [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)],
    "arrays of many shapes": [np.zeros((2, 0), np.uint8), np.arange(6, dtype=np.uint8).reshape(2, 3)],
    "numpy scalars": [np.float32(1.5), np.float32(2.5)],
    "complex arrays": [np.array([1 + 2j]), np.array([3j])],
    "None alone": [None, None],
    "None among ints": [None, 1, None, 2],
    "None among fields": [(None, "a"), (1, None), (2, "c")],
    "None among lists": [[1], None, [2, 3]],
    "one field": [(1,), (2,)],
    "no fields": [[], []],
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_back(kind):
    rows = KINDS[kind]
    block = through(rows)
    assert equal(block.column.rows(0, len(rows)), rows)
    for first in range(len(rows) + 1):
        for last in range(first, len(rows) + 1):
            assert equal(block.column.rows(first, last), rows[first:last])


def test_rows_of_spark_come_back_with_their_names():
    Row = pytest.importorskip("pyspark.sql").Row
    rows = [Row(name="a", age=1), Row(name="b", age=2)]
    back = through(rows).column.rows(0, 2)
    assert back == rows and back[1].age == 2


def test_int_beside_float_is_float_where_that_is_exact():
    assert through([1, 2.5, -3]).column.rows(0, 3) == [1.0, 2.5, -3.0]
    with pytest.raises(_columns.RowError, match="an int that no float holds exactly"):
        _columns.encode([2**53 + 1, 0.5])


def test_random_nested_rows_come_back():
    """The property, over shapes that nobody wrote down."""
    rng = random.Random(1)

    def kind(depth):
        plain = [
            lambda: rng.randrange(-9, 9),
            lambda: rng.random(),
            lambda: "x" * rng.randrange(4),
            lambda: rng.random() < 0.5,
        ]
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(plain)
        if rng.random() < 0.5:
            fields = [kind(depth - 1) for _ in range(rng.randrange(2, 5))]
            return lambda: tuple([b"first", *(f() for f in fields)])
        inner = kind(depth - 1)
        return lambda: [inner() for _ in range(rng.randrange(1, 4))]

    tried = 0
    for _ in range(300):
        make = kind(3)
        rows = [make() for _ in range(rng.randrange(1, 9))]
        try:
            block = through(rows)
        except _columns.RowError as e:
            # Lists of tuples whose number differs are fields in the first row and not in another.
            assert "fields in one row" in str(e) or "one row" in str(e)
            continue
        tried += 1
        assert equal(block.column.rows(0, len(rows)), rows)
    assert tried > 200


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([1, "a"], r"a row is int in one row and str in another: .*convert them"),
        ([(1, 2.5, b""), (1, "x", b"")], r"a row\[1\] is float in one row and str in another"),
        ([[1], (1,)], "list in one row and tuple in another"),
        ([datetime.date(2020, 1, 1)], "is of type datetime.date, which cannot be fed; numbers, str"),
        ([{1, 2}], "is of type set, which cannot be fed"),
        ([2**63], "an int of more than 64 bits"),
        ([{"a": 1}, {"b": 1}], "all rows have the same names"),
        ([(b"", 1), (b"", 1, 2)], "a tuple of 2 fields in one row and not in another"),
        ([np.zeros(2), np.zeros(2, np.float32)], "arrays of different dtypes"),
        ([np.array(["a"])], "is an array of <U1, which cannot be fed"),
        ([[1.5], [2**60 + 1]], "int beside float, and an int that no float holds exactly"),
        ([[1, 2], [True, False]], "bool in another"),
        ([(b"", object())], r"a row\[1\] is of type object"),
    ],
)
def test_what_cannot_be_fed_is_named(rows, said):
    with pytest.raises(_columns.RowError, match=said):
        _columns.encode(rows)


def test_numbers_are_aligned_views_of_the_block():
    pictures = [(np.full((28, 28), i, np.float32), i) for i in range(10)]
    block = through(pictures)
    images, labels = (c.array(0, 10) for c in block.column.columns)
    assert images.shape == (10, 28, 28) and images.dtype == np.float32
    assert images.__array_interface__["data"][0] % 64 == 0 and labels.__array_interface__["data"][0] % 64 == 0
    assert images.base is not None and np.shares_memory(images, block.memory)
    assert labels.tolist() == list(range(10))
    lists = through([[1.0, 2.0], [3.0, 4.0]]).column
    assert np.shares_memory(lists.array(0, 2), lists.child.values) and lists.array(1, 2).tolist() == [[3.0, 4.0]]
    nested = through([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]).column.array(0, 2)
    assert nested.shape == (2, 2, 2) and nested[1, 0].tolist() == [5, 6]
    assert through(["a", "ü"]).column.array(0, 2).tolist() == [b"a", "ü".encode()]


def test_an_array_makes_no_object_for_its_elements():
    block = through([(list(map(float, range(500))), i) for i in range(2000)])
    pairs, labels = block.column.columns
    made = []
    for rows in (2, 2000):
        before = sys.getallocatedblocks()
        kept = pairs.array(0, rows), labels.array(0, rows)
        made.append(sys.getallocatedblocks() - before)
        assert kept[0].shape == (rows, 500)
        del kept
    assert max(made) < 100, f"objects for arrays of a thousand and of a million numbers: {made}"


def test_what_is_no_tensor_is_named():
    with pytest.raises(
        TypeError, match="field 'x' of a row is ragged: row 0 has 2 elements and row 1 has 1; .* pad the rows"
    ):
        through([[1, 2], [3]]).column.array(0, 2, "field 'x' of a row")
    with pytest.raises(TypeError, match="has None in it"):
        through([1, None]).column.array(0, 2)
    assert through([1, None, 3]).column.array(2, 3).tolist() == [3]
    with pytest.raises(TypeError, match="is of kind record"):
        through([(1, "a")]).column.array(0, 1)
