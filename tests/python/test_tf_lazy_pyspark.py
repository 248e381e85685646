"""pyspark comes into a program's process when the program uses it, and is then whole."""

import subprocess
import sys

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from conftest import ROOT

pytest.importorskip("pyspark")

BEGIN = """
import pickle, sys
sys.path[:0] = [sys.argv[1]]
from tensorflowonspark._lazy_pyspark import LazyPyspark
LazyPyspark("/the/files").install()
fn, args = pickle.loads(bytes.fromhex(sys.argv[2]))
assert "pyspark.sql" not in sys.modules and args == {"a": 1}
print(fn(2))
"""


def context(x):
    from pyspark import SparkContext, SparkFiles

    return f"{SparkContext.__name__} {SparkFiles.get('a')}"


def files(x):
    import pyspark.files

    return pyspark.files.SparkFiles.getRootDirectory()


def row(x):
    from pyspark.sql import Row

    return Row(a=x).a


def cloudpickle(x):
    import pyspark.cloudpickle

    loaded = pyspark.cloudpickle.loads(pyspark.cloudpickle.dumps(lambda: x))()
    return loaded, "pyspark.sql" in sys.modules


def attribute(x):
    import pyspark

    return pyspark.__version__.count(".") > 0 and pyspark.sql.Row(b=x).b, hasattr(pyspark, "nothing")


@pytest.mark.parametrize(
    "fn, printed",
    [
        (lambda x: x + 1, "3"),
        (context, "SparkContext /the/files/a"),
        (files, "/the/files"),
        (row, "2"),
        (cloudpickle, "(2, False)"),
        (attribute, "(2, False)"),
    ],
)
def test_whatever_of_it_is_used_first(fn, printed):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    payload = cloudpickle.dumps((fn, {"a": 1})).hex()
    run = subprocess.run(
        [sys.executable, "-c", BEGIN, str(ROOT / "python"), payload], capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout.strip()) == (0, printed), run.stderr
