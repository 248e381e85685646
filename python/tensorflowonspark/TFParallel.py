"""Independent TensorFlow programs side by side on Spark's executors: no cluster, nothing exchanged."""

import functools
import logging
import os

from . import tasks, util

logger = logging.getLogger(__name__)


def run(sc, map_fn, tf_args, num_executors, use_barrier=True):
    """Calls map_fn(tf_args, ctx) in `num_executors` Spark tasks and returns when all have ended.

    sc: SparkContext or session, also one of Spark Connect. ctx has worker_num and executor_id (0 to
    num_executors - 1), num_workers, defaultFS and working_dir; there is no cluster: ctx.mgr is None and
    ctx.cluster_spec {}.
    use_barrier: all instances start together, and those on one host choose different GPUs; too few slots for that are
    a RuntimeError. Without it instances may also run one after the other, and with spark.speculation one of them twice,
    as Spark has such copies of all tasks but those of a barrier. An error in one instance fails the call.
    """
    each = functools.partial(_instance, map_fn, tf_args, num_executors, util.default_fs(sc), os.getcwd(), use_barrier)
    tasks.run_tasks(sc, each, num_executors, barrier=use_barrier)


def _instance(map_fn, tf_args, num_executors, default_fs, working_dir, use_barrier, worker_num):
    from . import TFSparkNode, _hadoop

    nodes = []
    if use_barrier:
        from pyspark import BarrierTaskContext

        nodes = [task.address for task in BarrierTaskContext.get().getTaskInfos()]
    util.single_node_env(num_gpus=util.num_gpus_of(tf_args), worker_index=worker_num, nodes=nodes)
    ctx = TFSparkNode.TFNodeContext()
    ctx.defaultFS, ctx.working_dir = default_fs, working_dir
    ctx.worker_num = ctx.executor_id = worker_num
    ctx.num_workers = num_executors
    try:
        map_fn(tf_args, ctx)
    finally:
        _hadoop.remove_copies()
    return ""
