"""Trains on what comes: CSV files of digits that appear in a folder ("label,784 numbers", as mnist_data_setup.py writes
them), fed as a DStream until stop_streaming.py ends it (InputMode.SPARK).

    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_streaming.py --folder incoming --export_dir model
    CREMA_TOKEN=$(cat stream.token) python3 stop_streaming.py HOST PORT            # the driver says which
"""

import argparse
import os
import sys

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

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
    """A node that is fed (784 numbers, label), for as long as there are any."""
    import tensorflow as tf

    layers = [tf.keras.Input((784,)), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    for pixels, labels in ctx.get_data_feed().arrays(args.batch_size):
        model.train_on_batch(pixels, labels)
    export(model, args, ctx)


def parse(line):
    label, *pixels = map(int, line.split(","))
    return pixels, label


def run(sc, args):
    stream = StreamingContext(sc, args.interval)
    cluster = TFCluster.run(sc, train, args, args.cluster_size, 0, input_mode=TFCluster.InputMode.SPARK)
    token = os.open(args.token_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # whoever has it may end the run
    with open(token, "w") as file:
        file.write(cluster.cluster_meta["token"].hex())
    print("stop_streaming.py", *cluster.cluster_meta["server_addr"], "ends the stream", file=sys.stderr)
    cluster.train(stream.textFileStream(args.folder).map(parse), feed_timeout=86400)
    stream.start()
    cluster.shutdown(stream)


def arguments(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True, help="where files appear; they are moved in, not written there")
    parser.add_argument("--export_dir", required=True, help="folder of the SavedModel, written at the end")
    parser.add_argument("--cluster_size", type=int, default=1, help="nodes; each trains a model of its own")
    parser.add_argument("--batch_size", type=int, default=100)
    parser.add_argument("--interval", type=float, default=0.5, help="seconds between two looks into the folder")
    parser.add_argument("--token_file", default="stream.token")
    return parser.parse_args(words)


if __name__ == "__main__":
    run(SparkContext(), arguments())
