"""What test_tensorflow_yarn.py submits: a cluster whose program fails, which ends this driver."""

from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster


def fails(args, ctx):
    raise ValueError("the model exploded")


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    try:
        TFCluster.run(spark.sparkContext, fails, None, 2, 0, reservation_timeout=120).shutdown()
    finally:
        spark.stop()
