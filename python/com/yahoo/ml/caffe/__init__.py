"""CaffeOnSpark's Python package: a class for each Scala class, over Py4J."""

from com.yahoo.ml.caffe._jvm import CaffeError

__all__ = ["CaffeError"]
