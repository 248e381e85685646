"""Trains and predicts as a stage of a Spark ML pipeline, behind one that makes its input (TFEstimator, TFModel).

    spark-submit --jars JAR --py-files tensorflowonspark.zip mnist_pipeline.py \
        --records mnist_records --export_dir pipeline_model --output pipeline_predictions

RECORDS/{train,test} are TFRecords of mnist_data_setup.py --format tfr. EXPORT_DIR must not be there yet. OUTPUT gets
rows of label and prediction.
"""

import argparse

from pyspark.ml import Pipeline
from pyspark.ml.feature import SQLTransformer
from pyspark.sql import SparkSession

from tensorflowonspark import dfutil
from tensorflowonspark.pipeline import TFEstimator


def train(args, ctx):
    """The node, fed with the columns of the input mapping; args has the estimator's params beside its arguments."""
    import tensorflow as tf

    feed = ctx.get_data_feed(input_mapping=args.input_mapping)
    batches = feed.dataset(args.batch_size).map(lambda fed: (fed["x"], fed["y"]))
    hidden = tf.keras.layers.Dense(128, activation="relu")
    model = tf.keras.Sequential([tf.keras.Input((784,), name="x"), hidden, tf.keras.layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    model.fit(batches, verbose=2)

    @tf.function(input_signature=[tf.TensorSpec((None, 784), tf.float32, "x")])
    def digit(x):
        return {"digit": tf.argmax(model(x), axis=1)}

    tf.saved_model.save(model, "exported", signatures=digit)
    ctx.upload("exported", args.export_dir)  # also where TensorFlow cannot write, as on HDFS


def run(spark, args):
    scaled = SQLTransformer(statement="SELECT label, transform(image, p -> float(p / 255)) AS pixels FROM __THIS__")
    estimator = TFEstimator(train, {}).setInputMapping({"pixels": "x", "label": "y"})
    estimator.setEpochs(args.epochs).setBatchSize(100).setExportDir(args.export_dir).setGraceSecs(0)
    fitted = Pipeline(stages=[scaled, estimator]).fit(dfutil.loadTFRecords(spark, f"{args.records}/train"))
    scorer = fitted.stages[-1]
    scorer.setInputMapping({"pixels": "x"}).setOutputMapping({"digit": "prediction"}).setPassThrough(["label"])
    fitted.transform(dfutil.loadTFRecords(spark, f"{args.records}/test")).write.parquet(args.output)


def arguments(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", required=True, help="folder with train and test")
    parser.add_argument("--export_dir", required=True, help="folder of the SavedModel, which is not there yet")
    parser.add_argument("--output", required=True, help="folder of Parquet")
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args(words)


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    run(spark, arguments())
    spark.stop()
