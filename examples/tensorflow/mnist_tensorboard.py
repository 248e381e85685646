"""Trains on MNIST that Spark feeds, and shows the loss in TensorBoard, which runs on one of the executors.

    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_tensorboard.py \
        --images_labels mnist/train --log_dir logs

The package `tensorboard` must be in the executors' Python (pip install tensorboard), as TensorFlow 2.21 does not bring
it. The driver says where to look, until the run has ended; `tensorboard --logdir logs` shows it afterwards.
"""

import argparse

from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster


def train(args, ctx):
    """A node that is fed (784 numbers, label)."""
    import tensorflow as tf

    layers = [tf.keras.Input((784,)), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    shown = tf.keras.callbacks.TensorBoard(f"{args.log_dir}/{ctx.job_name}-{ctx.task_index}", update_freq=10)
    model.fit(ctx.get_data_feed().dataset(args.batch_size), callbacks=[shown], verbose=0)


def parse(line):
    label, *pixels = map(int, line.split(","))
    return pixels, label


def run(sc, args):
    rows = sc.textFile(args.images_labels).map(parse)
    mode = TFCluster.InputMode.SPARK
    cluster = TFCluster.run(sc, train, args, args.cluster_size, 0, True, mode, log_dir=args.log_dir)
    print("TensorBoard:", cluster.tensorboard_url(), flush=True)
    cluster.train(rows, args.epochs)
    cluster.shutdown()


def arguments(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--images_labels", required=True, help="folder of CSV, of mnist_data_setup.py")
    parser.add_argument("--log_dir", required=True, help="folder for event files, which all executors see")
    parser.add_argument("--cluster_size", type=int, default=1, help="nodes; each trains a model of its own")
    parser.add_argument("--batch_size", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args(words)


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    run(spark.sparkContext, arguments())
    spark.stop()
