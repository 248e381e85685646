"""What run() and train() can say about their arguments before anything starts."""

import numbers
import os
import re


def whole(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, not {value!r}")


def run_arguments(sc, map_fun, num_executors, num_ps, input_mode, modes):
    """TypeError or ValueError for what cannot be meant.

    Args:
      modes: {name: value} of InputMode.
    """
    if sc is None:
        raise TypeError("sc is None: TFCluster.run() needs a SparkContext or a SparkSession")
    if not callable(map_fun):
        raise TypeError(f"map_fun must be a function map_fun(args, ctx), not {map_fun!r}")
    whole("num_executors", num_executors)
    whole("num_ps", num_ps)
    if num_ps < 0:
        raise ValueError(f"num_ps is {num_ps}, and cannot be negative")
    if isinstance(input_mode, bool) or input_mode not in modes.values():
        raise ValueError(f"input_mode is InputMode.{' or InputMode.'.join(modes)}, not {input_mode!r}")


def spark_settings(settings):
    """ValueError for a setting of Spark's under which no cluster is whole.

    Args:
      settings: has get(key, default).
    """
    if settings.get("spark.speculation", "false").lower() == "true":
        raise ValueError(
            "spark.speculation is true: Spark would start a second node while a program goes on that is longer than "
            "others, and feed rows twice; set --conf spark.speculation=false"
        )


def slots(master, wanted):
    """ValueError for more nodes than a local master has task slots, whose number does not grow.

    Args:
      master: Spark's, such as "local[2]".
      wanted: nodes, but those on the driver.
    """
    local = re.match(r"local(?:\[(\d+|\*)[],])?", master or "")
    if not local or master.startswith("local-cluster"):
        return
    there = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    if wanted > there:
        raise ValueError(
            f"{wanted} nodes are wanted, and --master {master} has {there} task slot(s), of which each node takes one: "
            f"ask for fewer (num_executors), or take --master local[{wanted}] or more"
        )


def rows(data, what="TFCluster.train()"):
    """TypeError for what Spark does not feed."""
    kinds = ("mapPartitions", "mapInArrow", "foreachRDD", "rdd")
    if data is None or not any(hasattr(type(data), name) for name in kinds):
        raise TypeError(
            f"{what} feeds an RDD, a DataFrame or a DStream, not {type(data).__name__}: sc.parallelize(rows) makes one"
        )
