"""Caffe networks trained and scored inside a Spark job."""

import os
import pathlib

__version__ = "0.1.0"


def jar():
    """Path of the jar for the installed Spark: $CREMA_JAR, or one in this package (jars/), or the one built in this
    source tree.

    Its place in a session: SparkSession.builder.config("spark.jars", crema.jar())
    """
    if os.environ.get("CREMA_JAR"):
        return os.environ["CREMA_JAR"]
    import pyspark

    line = "3.5_2.12" if pyspark.__version__.startswith("3.") else "4_2.13"
    name, here = f"crema-spark-{line}-{__version__}.jar", pathlib.Path(__file__).resolve().parent
    places = [here / "jars" / name, here.parents[1] / "spark/target" / line / name]
    for place in places:
        if place.is_file():
            return str(place)
    raise FileNotFoundError(
        f"no {name} in {' or '.join(str(p.parent) for p in places)}; build it with maven in spark/, or name a jar in "
        "CREMA_JAR"
    )
