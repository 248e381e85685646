"""The contexts that were used last. (CaffeOnSpark stored them among Python's builtins; here they belong to this
module.)
"""

from com.yahoo.ml.caffe._jvm import context

sc = jvm = gateway = sqlContext = None


def registerContext(spark):
    """Remembers a SparkContext, or a session's, and returns it."""
    global sc, jvm, gateway
    sc = context(spark)
    jvm, gateway = sc._jvm, sc._gateway
    return sc


def registerSQLContext(given):
    global sqlContext
    sqlContext = given
