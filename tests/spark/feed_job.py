"""What test_tensorflow_yarn.py submits: two nodes answer rows of a file, and say where they have their code from. It
needs no TensorFlow.

    feed_job.py INPUT OUTPUT
"""

import sys

from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster


def answer(args, ctx):
    """Answers number x with "x*x node job package executable"."""
    import os

    import tensorflowonspark
    from tensorflowonspark import _executable

    here = os.getcwd() + "/"
    package, executable = (p.removeprefix(here) for p in (tensorflowonspark.__file__, _executable.local()))
    about = f"{ctx.executor_id} {ctx.job_name} {package} {executable} {ctx.absolute_path('some')}"
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        feed.batch_results([f"{x * x} {about}" for x in feed.next_batch(16)])


if __name__ == "__main__":
    source, target = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext
    cluster = TFCluster.run(
        sc, answer, None, 2, 0, input_mode=TFCluster.InputMode.SPARK, master_node="chief", reservation_timeout=120
    )
    cluster.inference(sc.textFile(source, 6).map(int)).saveAsTextFile(target)
    cluster.shutdown()
    spark.stop()
