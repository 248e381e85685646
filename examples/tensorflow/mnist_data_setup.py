"""Converts MNIST's four idx files to rows that Spark reads: CSV ("label,784 numbers") or TFRecords (image, label).

    spark-submit mnist_data_setup.py --raw data/mnist/raw --output mnist
    spark-submit --jars JAR mnist_data_setup.py --raw data/mnist/raw --output mnist_records --format tfr

Writes OUTPUT/{train,test}.
"""

import argparse
import pathlib

from pyspark.sql import Row, SparkSession


def digits(folder, part):
    """(784 bytes, label) of each digit of "train" or "t10k"."""
    images = pathlib.Path(folder, f"{part}-images-idx3-ubyte").read_bytes()
    labels = pathlib.Path(folder, f"{part}-labels-idx1-ubyte").read_bytes()[8:]
    return [(images[16 + 784 * i : 16 + 784 * (i + 1)], label) for i, label in enumerate(labels)]


def csv(digit):
    pixels, label = digit
    return ",".join(map(str, [label, *pixels]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--raw", required=True, help="folder with the idx files, on the driver")
    parser.add_argument("--output", default="data/mnist", help="folder for train and test")
    parser.add_argument("--format", choices=["csv", "tfr"], default="csv")
    parser.add_argument("--num_partitions", type=int, default=10)
    args = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    for name, part in (("train", "train"), ("test", "t10k")):
        rows = spark.sparkContext.parallelize(digits(args.raw, part), args.num_partitions)
        if args.format == "csv":
            rows.map(csv).saveAsTextFile(f"{args.output}/{name}")
        else:
            frame = spark.createDataFrame(rows.map(lambda d: Row(image=list(d[0]), label=d[1])))
            frame.write.format("tfrecord").save(f"{args.output}/{name}")
    spark.stop()
