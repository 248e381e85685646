"""A function in Spark tasks, one call in each: through RDDs, or through Arrow where Spark Connect has no RDDs."""

import functools
import time

from . import util

SLOT_WAIT = 30  #: seconds without a new executor after which a cluster counts as complete


def run_tasks(sc, function, count, barrier=False, arrow=False):
    """[function(0), ..., function(count - 1)], each called in a task of its own; the results are texts.

    sc: a SparkContext, a session, or a session of Spark Connect. barrier: the tasks start together or not at all.
    arrow (for sessions): in the Python workers that mapInArrow uses, which Spark keeps apart from those of RDDs.
    A cluster with too few slots is a RuntimeError after SLOT_WAIT seconds at the latest; Spark Connect does not say
    how many it has, so there Spark's own check applies (spark.scheduler.barrier.maxConcurrentTasksCheck, ten minutes).
    """
    context = util.context_of(sc)
    if not util.is_connect(context):
        _await_slots(context, count if barrier else 1)
        if not arrow:
            numbers = context.parallelize(range(count), count)
            tasks = numbers.barrier() if barrier else numbers
            return tasks.mapPartitions(functools.partial(_in_rows, function)).collect()
    each = functools.partial(_in_batches, function)
    frame = sc.range(0, count, 1, count).mapInArrow(each, "number long, result string", barrier=barrier)
    return [row.result for row in sorted(frame.collect(), key=lambda row: row.number)]


def _in_rows(function, numbers):
    return [function(number) for number in numbers]


def _in_batches(function, batches):
    import pyarrow as pa

    for batch in batches:
        numbers = batch.column(0).to_pylist()
        if numbers:
            results = [function(number) for number in numbers]
            yield pa.RecordBatch.from_arrays(
                [pa.array(numbers, pa.int64()), pa.array(results, pa.string())], ["number", "result"]
            )


def slots(sc):
    """How many tasks of the default resource profile the executors of this moment can run at once."""
    context = sc._jsc.sc()
    return context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile())


def _await_slots(sc, needed):
    """Returns when `needed` tasks can run at once. Without this Spark waits for ever for a first executor, and ten
    minutes for the slots of a barrier.
    """
    if sc.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # executors come when tasks ask for them; with a barrier Spark refuses that by itself
    most, deadline = -1, 0
    while (now := slots(sc)) < needed:
        if now > most:
            most, deadline = now, time.monotonic() + SLOT_WAIT
        if time.monotonic() > deadline or sc.master.partition("[")[0] == "local":
            raise RuntimeError(
                f"{needed} task(s) must run at the same time and the cluster {sc.master} has slots for {now}; start "
                "more executors (spark.executor.instances, spark.cores.max), give tasks fewer cores (spark.task.cpus), "
                "or ask for fewer instances"
            )
        time.sleep(0.1)
