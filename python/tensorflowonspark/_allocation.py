"""Executors that Spark takes away when they have nothing to do (spark.dynamicAllocation.enabled), with nodes on them.

In InputMode.SPARK the task of a node ends when all are there, so that its slot is free for feeding: to Spark such an
executor is idle between two feeds. It does not take away what has cached data, unless a setting says so: so the tasks
of nodes leave a cached partition behind. (Decided against: a task that stays, which would take the only slot of
executors with one core; the developers' interface for executors, which cluster managers answer differently.)
"""

import sys

from tensorflowonspark import util

_ENABLED = "spark.dynamicAllocation.enabled"
_CACHED = "spark.dynamicAllocation.cachedExecutorIdleTimeout"


def settings(sc):
    """What a SparkContext, or a session of Spark Connect, was given: has get(key, default)."""
    if util.is_connect(sc):
        return sc.conf
    return sc.getConf()


def is_dynamic(sc):
    """Whether Spark takes executors away that have no task."""
    return settings(sc).get(_ENABLED, "false") == "true"


def run_kept(rdd, node_fn):
    """node_fn over each partition of an RDD, in tasks whose executors Spark then keeps; what unpersist() lets go."""
    from pyspark import StorageLevel

    timeout = settings(rdd.context).get(_CACHED, "infinity")
    if timeout != "infinity":
        warn(f"{_CACHED} is {timeout}: leave it unset")

    def run(partition):
        node_fn(partition)
        return [True]

    held = rdd.mapPartitions(run).persist(StorageLevel.MEMORY_AND_DISK)
    held.count()
    return held


def warn(remedy):
    print(
        f"crema: {_ENABLED} is true, and Spark may take executors away between two feeds, which ends the programs of "
        f"their nodes; {remedy}",
        file=sys.stderr,
        flush=True,
    )
