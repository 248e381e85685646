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
