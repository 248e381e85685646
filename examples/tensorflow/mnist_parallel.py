"""Predicts with independent instances, each with a share of the files (TFParallel): no cluster, nothing exchanged.

    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_parallel.py \
        --images_labels mnist/test --export_dir model --output parallel_predictions

Files and model are those of mnist_data_setup.py --format csv and mnist_spark.py; OUTPUT gets a file of each instance,
with a line "label prediction" for each digit.
"""

import argparse

from pyspark.sql import SparkSession

from tensorflowonspark import TFParallel


def infer(args, ctx):
    """One of the instances."""
    import os

    import numpy as np

    import tensorflow as tf

    model = tf.saved_model.load(ctx.local_folder(args.export_dir))
    place = ctx.absolute_path(args.output)
    output = place.removeprefix("file://") if place.startswith("file://") else "predictions"  # copied at the end
    os.makedirs(output, exist_ok=True)
    lines = tf.data.TextLineDataset(ctx.local_files(f"{args.images_labels}/part-*"))
    with open(f"{output}/{ctx.worker_num}.txt", "w") as out:
        for batch in lines.batch(args.batch_size).as_numpy_iterator():
            digits = np.array([line.split(b",") for line in batch], np.int64)
            found = np.argmax(model.serve(tf.constant(digits[:, 1:], tf.float32)), axis=1)
            out.writelines(f"{label} {prediction}\n" for label, prediction in zip(digits[:, 0], found))
    if output == "predictions":
        ctx.upload(out.name, f"{args.output}/{ctx.worker_num}.txt")


def arguments(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--images_labels", required=True, help="folder of CSV")
    parser.add_argument("--export_dir", required=True, help="folder of the SavedModel, which all executors see")
    parser.add_argument("--output", required=True, help="folder, which all executors see; on HDFS it must be there")
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=500)
    return parser.parse_args(words)


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    args = arguments()
    TFParallel.run(spark, infer, args, args.instances, use_barrier=False)
    spark.stop()
