"""Captions for the pictures of an embedding frame (DFConversions.Image2Embedding or ImageCaption2Embedding), as JSON:
id, prediction.

spark-submit --jars <crema jar> --py-files caffeonsparkpythonapi.zip --conf spark.pythonargs="-input <frame>
  -model <model of lrcn_solver> -imagenet lstm_deploy.prototxt -lstmnet lrcn_word_to_preds.deploy.prototxt
  -vocab <vocabulary> -output <folder>" ImageCaption.py
"""

import argparse

from pyspark.sql import SparkSession

from com.yahoo.ml.caffe.tools.Captioner import Captioner
from com.yahoo.ml.caffe.tools.Vocab import Vocab


def get_predictions(sqlContext, images, model, imagenet, lstmnet, vocab):
    """
    :param sqlContext: SparkSession, SparkContext or SQLContext
    :param images: a frame with id, and data or its fields image, height and width
    :param vocab: path of the vocabulary that the model was trained with
    """
    words = Vocab(images.sparkSession)
    words.load(str(vocab))
    return Captioner(images.sparkSession, model, imagenet, lstmnet).captions(images, words)


def main():
    spark = SparkSession.builder.getOrCreate()
    parser = argparse.ArgumentParser(description="Image to Caption Util")
    for flag, meaning in (
        ("input", "embedding frame (parquet)"),
        ("model", "trained model"),
        ("imagenet", "the picture's net"),
        ("lstmnet", "the sentence's net"),
        ("vocab", "vocabulary, a word a line"),
        ("output", "folder for the JSON"),
    ):
        parser.add_argument("-" + flag, required=True, help=meaning)
    args = parser.parse_args(spark.sparkContext.getConf().get("spark.pythonargs", "").split())
    images = spark.read.parquet(args.input).select("data.image", "data.height", "data.width", "id")
    get_predictions(spark, images, args.model, args.imagenet, args.lstmnet, args.vocab).write.json(args.output)
    spark.stop()


if __name__ == "__main__":
    main()
