"""Scala's objects by name."""

from com.yahoo.ml.caffe import RegisterContext
from com.yahoo.ml.caffe._jvm import singleton


def getScalaSingleton(className):
    """The Scala object of that name; a CaffeOnSpark, Config or DataSource, or registerContext(sc), comes first."""
    return singleton(RegisterContext.sc, className.rstrip("$"))
