"""Those of CaffeOnSpark's conversions that are still needed: classes by name, and Scala's results as Python's
values.
"""

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaObject, is_instance_of

from com.yahoo.ml.caffe import RegisterContext
from com.yahoo.ml.caffe._jvm import frame, items, java_class


def wrapClass(className):
    """The JVM's class of that name, to be called as a constructor or for its static methods."""
    return java_class(RegisterContext.sc, className)


def toPython(obj):
    """Converts Scala's maps, sets, sequences, options and tuples, arrays and data frames, and their elements;
    returns anything else as it is.
    """
    if isinstance(obj, JavaArray):
        return [toPython(x) for x in obj]
    if not isinstance(obj, JavaObject):
        return obj

    def is_a(name):
        return is_instance_of(RegisterContext.gateway, obj, name)

    if is_a("scala.collection.Map"):
        return {toPython(pair._1()): toPython(pair._2()) for pair in items(obj)}
    if is_a("scala.collection.Set"):
        return {toPython(x) for x in items(obj)}
    if is_a("scala.collection.Iterable"):
        return [toPython(x) for x in items(obj)]
    if is_a("scala.Option"):
        return toPython(obj.get()) if obj.isDefined() else None
    if obj.getClass().getName().startswith("scala.Tuple"):
        return tuple(toPython(obj.productElement(i)) for i in range(obj.productArity()))
    if is_a("org.apache.spark.sql.Dataset"):
        return frame(obj)
    return obj
