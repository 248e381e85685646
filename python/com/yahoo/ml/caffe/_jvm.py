"""Shared by the classes of this package: access to Scala's classes, error messages, conversion of the JVM's values
and frames.
"""

import contextlib
import difflib
import re

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

_OURS = re.compile(r"com\.crema\.\w+|java\.lang\.Illegal(Argument|State)Exception")


class CaffeError(RuntimeError):
    """An error of the JVM, with its message; `java_exception` is the throwable, with its stack trace."""

    def __init__(self, message, java_exception=None):
        super().__init__(message)
        self.java_exception = java_exception


def _sentence(throwable):
    """The first cause whose message is meant for users, else the last cause."""
    cause, last = throwable, throwable
    while cause is not None:
        if _OURS.fullmatch(cause.getClass().getName()) and cause.getMessage():
            return cause.getMessage()
        cause, last = cause.getCause(), cause
    return last.getMessage() or last.toString()


@contextlib.contextmanager
def in_words():
    """Errors of the JVM in the body are raised as CaffeErrors."""
    try:
        yield
    except (Py4JError, PySparkException) as e:
        # Py4J gives the throwable as java_exception; PySpark converts some into exceptions of its own, which keep it as
        # _origin.
        throwable = getattr(e, "java_exception", None) or getattr(e, "_origin", None)
        if throwable is None:
            raise
        raise CaffeError(_sentence(throwable), throwable) from None


def context(spark):
    """The SparkContext of a session, or the context itself."""
    return getattr(spark, "sparkContext", spark)


def java_class(sc, name):
    found = sc._jvm
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaPackage):
        raise CaffeError(
            f"Spark's driver does not know {name}; start it with --jars <crema jar>, or with spark.jars set before "
            "the session is made"
        )
    return found


def singleton(sc, name):
    """A Scala object, as a value."""
    return getattr(java_class(sc, name + "$"), "MODULE$")


def strings(sc, values):
    array = sc._gateway.new_array(sc._jvm.java.lang.String, len(values))
    for i, value in enumerate(values):
        array[i] = value
    return array


def frame(jdf):
    return DataFrame(jdf, SparkSession.builder.getOrCreate())


def sql_context(sc):
    return SparkSession(sc)._jsparkSession.sqlContext()


def items(scala):
    """The elements of a Scala collection."""
    each = scala.iterator()
    while each.hasNext():
        yield each.next()


def nearest(name, valid):
    """', did you mean ...?' when something valid is close."""
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5) or [v for v in valid if v.lower() == name.lower()]
    return f"; did you mean '{close[0]}'?" if close else f"; there are {', '.join(sorted(valid))}"
