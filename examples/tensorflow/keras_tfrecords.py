"""Trains a model of Keras 3 on TFRecords, on HDFS or elsewhere, which the nodes read themselves (InputMode.TENSORFLOW).

    spark-submit --master yarn --deploy-mode cluster --jars JAR --py-files tensorflowonspark.zip \
        keras_tfrecords.py --records hdfs:///mnist_records/train --model hdfs:///digits.keras

The records are those of mnist_data_setup.py --format tfr. Every node reads its share of the files; in each step the
nodes add the gradients of their batches, and so keep equal weights. The loop is the program's own, as Keras 3's
Model.fit does not work under this strategy.
"""

import argparse

from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster


def batches(files, args):
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((784,), tf.int64), "label": tf.io.FixedLenFeature((), tf.int64)}

    def parsed(records):
        digits = tf.io.parse_example(records, features)
        return tf.cast(digits["image"], tf.float32), digits["label"]

    data = tf.data.TFRecordDataset(files, num_parallel_reads=2).shuffle(10000).repeat()
    return data.batch(args.batch_size, drop_remainder=True).map(parsed).take(args.steps).prefetch(2)


def train(args, ctx):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    files = ctx.local_files(f"{args.records}/part-*")
    with strategy.scope():
        layers = [tf.keras.Input((784,)), tf.keras.layers.Rescaling(1 / 255)]
        layers += [tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(10)]
        model = tf.keras.Sequential(layers)
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)

    def step(images, labels):
        with tf.GradientTape() as tape:
            each = tf.keras.losses.sparse_categorical_crossentropy(
                labels, model(images, training=True), from_logits=True
            )
            loss = tf.reduce_mean(each) / strategy.num_replicas_in_sync  # gradients are added over the nodes
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def together(batch):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, batch), axis=None)

    for number, batch in enumerate(strategy.distribute_datasets_from_function(lambda _: batches(files, args))):
        loss = together(batch)
        if number % 20 == 0:
            print(f"step {number}, loss {float(loss):.3f}, {len(files)} file(s) of this node", flush=True)
    if ctx.job_name == "chief":
        model.save("model.keras")
        ctx.upload("model.keras", args.model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", required=True, help="folder of TFRecords")
    parser.add_argument("--model", required=True, help="file for the model, .keras")
    parser.add_argument("--cluster_size", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=64, help="of each node")
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    cluster = TFCluster.run(spark.sparkContext, train, args, args.cluster_size, 0, master_node="chief")
    cluster.shutdown()
    spark.stop()
