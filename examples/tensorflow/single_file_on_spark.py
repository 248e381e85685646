"""single_file.py on the nodes of a cluster, each of which computes its part of every batch (InputMode.TENSORFLOW).

    spark-submit --jars JAR --py-files tensorflowonspark.zip --conf spark.executorEnv.TF_USE_LEGACY_KERAS=1 \
        single_file_on_spark.py --raw /data/mnist/raw --model /tmp/digits.keras

Keras 3's Model.fit does not work under a strategy for several nodes; that of tf_keras does, and the setting chooses it:
`pip install --no-deps tf_keras` in the Python of the executors. All nodes save, as the strategy asks for: the chief the
model, others a file in their work folder. Paths are those of the executors.
"""

import argparse
import pathlib

import numpy as np
from pyspark import SparkContext

import tensorflow as tf
from tensorflowonspark import TFCluster


def digits(folder, part):
    """(pixels, labels) of "train" or "t10k"."""
    images, labels = (pathlib.Path(folder, f"{part}-{what}-ubyte") for what in ("images-idx3", "labels-idx1"))
    return np.fromfile(images, np.uint8, offset=16).reshape(-1, 784), np.fromfile(labels, np.uint8, offset=8)


def train(args, ctx):
    tf.distribute.experimental_set_strategy(tf.distribute.MultiWorkerMirroredStrategy())
    data = tf.data.Dataset.from_tensor_slices(digits(args.raw, "train")).shuffle(60000, seed=1).batch(args.batch_size)
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
    model.fit(data, epochs=args.epochs, verbose=2)
    model.save(args.model if ctx.job_name == "chief" else "of_worker.keras")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--raw", required=True, help="folder with the idx files")
    parser.add_argument("--model", required=True, help="file for the model, .keras")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--cluster_size", type=int, default=2)
    args = parser.parse_args()
    TFCluster.run(SparkContext(), train, args, args.cluster_size, 0, master_node="chief").shutdown()
