"""Trains on MNIST's four idx files in one process: the program before Spark. single_file_on_spark.py is it afterwards.

python3 single_file.py --raw data/mnist/raw --model digits.keras
"""

import argparse
import pathlib

import numpy as np

import tensorflow as tf


def digits(folder, part):
    """(pixels, labels) of "train" or "t10k"."""
    images, labels = (pathlib.Path(folder, f"{part}-{what}-ubyte") for what in ("images-idx3", "labels-idx1"))
    return np.fromfile(images, np.uint8, offset=16).reshape(-1, 784), np.fromfile(labels, np.uint8, offset=8)


def train(args):
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
    model.save(args.model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--raw", required=True, help="folder with the idx files")
    parser.add_argument("--model", required=True, help="file for the model, .keras")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    train(args)
