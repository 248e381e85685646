"""What users read of an exception of the program: the traceback, and a remedy where a module is missing."""

import sys

import spark_session  # noqa: F401  puts the package on the path

from tensorflowonspark import _story


def reported(message):
    try:
        raise ValueError(message)
    except ValueError:
        return _story.of_exception("chief")


def test_a_traceback():
    lines = reported("the model exploded").splitlines()
    assert lines[0] == "Exception in chief:" and lines[1].startswith("Traceback")
    assert lines[-1] == "ValueError: the model exploded"


def test_a_module_that_is_missing():
    try:
        import tensorflow_of_nobody  # noqa: F401
    except ImportError:
        text = _story.of_exception("worker")
    assert "ModuleNotFoundError: No module named 'tensorflow_of_nobody'" in text
    last = text.splitlines()[-1]
    assert last.startswith(f"{sys.executable}, the Python of this node, has no module tensorflow_of_nobody: install it")


SPARKS = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 5 in stage 1.0 failed 4 times, most recent \
failure: Lost task 5.3 in stage 1.0 (TID 12) (127.0.0.1 executor 0): """


def test_the_cause_of_a_job():
    """Spark's texts are of Spark 3.5.9, of the jobs in the names."""
    python = f"""{SPARKS}org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "job.py", line 21, in <lambda>
    rows = rows.map(lambda x: x // (x - 70000))
                                ~~^^~~~~~~~~~~~
ZeroDivisionError: integer division or modulo by zero

\tat org.apache.spark.api.python.BasePythonRunner"""
    assert _story.of_job(Exception(python)) == (
        'ZeroDivisionError: integer division or modulo by zero (File "job.py", line 21, in <lambda>)'
    )
    callback = "Traceback (most recent call last):\n  File streaming\npy4j.protocol.Py4JJavaError: An error occurred\n"
    assert _story.of_job(Exception(callback + python)).startswith("ZeroDivisionError: ")
    lost = "ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited with 52"
    assert _story.of_job(Exception(f"{SPARKS}{lost}\nDriver stacktrace:")) == lost
    path = "org.apache.hadoop.mapred.InvalidInputException: Input path does not exist: file:/nowhere"
    assert _story.of_job(Exception(f"{SPARKS.splitlines()[0]}\n: {path}\n\tat org.apache")) == path
    assert _story.of_job(ValueError("anything\nelse")) == "ValueError: anything else"
    ours = (
        'Traceback (most recent call last):\n  File "a.zip/tensorflowonspark/b.py", line 7, in c\nException: no place\n'
    )
    assert _story.of_job(Exception(ours)) == "no place"
    module = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'numpy'\n"
    assert _story.of_job(Exception(module)).startswith("the executors' Python has no module numpy: install it there")
