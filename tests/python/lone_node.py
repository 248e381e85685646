"""A node without a cluster, for tests."""

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import TFManager  # isort: skip

TOKEN = b"a token of these tests"


@pytest.fixture
def mgr():
    manager = TFManager.start(TOKEN, ["input", "output", "error"])
    yield manager
    manager.shutdown()
