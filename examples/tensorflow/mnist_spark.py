"""Trains on MNIST that Spark feeds, and predicts the same way (InputMode.SPARK), with the CSV of mnist_data_setup.py.

    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_spark.py \
        --images_labels mnist/train --export_dir model
    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_spark.py \
        --images_labels mnist/test --export_dir model --mode inference --output predictions

Writes lines such as "2026-11-23T12:00:00 Label: 7, Prediction: 7" to OUTPUT.
"""

import argparse
import datetime

from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster


def export(model, args, ctx):
    """Where TensorFlow cannot write, as on HDFS, it is written here and copied; the folder must not be there yet."""
    place = ctx.absolute_path(args.export_dir)
    if place.startswith("file://"):
        model.export(place.removeprefix("file://"))
    else:
        model.export("exported")
        ctx.upload("exported", args.export_dir)


def train(args, ctx):
    """A node that is fed (784 numbers, label)."""
    import tensorflow as tf

    batches = ctx.get_data_feed().dataset(args.batch_size)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((784,)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(batches, verbose=2)  # one pass: the feed has all epochs
    export(model, args, ctx)


def infer(args, ctx):
    """A node that answers each row with a line."""
    import numpy as np

    import tensorflow as tf

    model = tf.saved_model.load(ctx.local_folder(args.export_dir))
    feed = ctx.get_data_feed(train_mode=False)
    for pixels, labels in feed.arrays(args.batch_size):
        digits = np.argmax(model.serve(tf.constant(pixels, tf.float32)), axis=1)
        now = datetime.datetime.now().isoformat(timespec="seconds")
        feed.batch_results([f"{now} Label: {a}, Prediction: {b}" for a, b in zip(labels, digits)])


def parse(line):
    label, *pixels = map(int, line.split(","))
    return pixels, label


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--images_labels", required=True, help="folder of CSV")
    parser.add_argument("--export_dir", required=True, help="folder of the SavedModel")
    parser.add_argument("--mode", choices=["train", "inference"], default="train")
    parser.add_argument(
        "--cluster_size", type=int, default=1, help="nodes; to train, each one trains a model of its own"
    )
    parser.add_argument("--batch_size", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--output", default="predictions")
    args = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext
    rows = sc.textFile(args.images_labels).map(parse)
    program = train if args.mode == "train" else infer
    cluster = TFCluster.run(sc, program, args, args.cluster_size, 0, input_mode=TFCluster.InputMode.SPARK)
    if args.mode == "train":
        cluster.train(rows, args.epochs)
    else:
        cluster.inference(rows).saveAsTextFile(args.output)
    cluster.shutdown()
    spark.stop()
