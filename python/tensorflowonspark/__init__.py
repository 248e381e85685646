"""TensorFlow programs as Spark jobs: the API of TensorFlowOnSpark on Crema's runtime.

TensorFlow is the user's own: no module imports it before a function needs it. PySpark is needed by what is called on
the driver; every module can be imported without it.
"""

from crema import __version__  # noqa: F401
