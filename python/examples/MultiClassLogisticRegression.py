"""Deep learning and then ordinary learning: trains a net, extracts features over its TEST source, fits a logistic
regression to them.

spark-submit --jars <crema jar> --py-files caffeonsparkpythonapi.zip --files <solver>,<net>
  --conf spark.pythonargs="-conf <solver> -model file:/tmp/lenet.model -features ip1 -label label -clusterSize 1"
  MultiClassLogisticRegression.py
"""

from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
from com.yahoo.ml.caffe.Config import Config
from com.yahoo.ml.caffe.DataSource import DataSource

spark = SparkSession.builder.getOrCreate()
array_to_vector = udf(Vectors.dense, VectorUDT())
cfg = Config(spark, spark.sparkContext.getConf().get("spark.pythonargs"))
cos = CaffeOnSpark(spark)
cos.train(DataSource(spark).getSource(cfg, True))
features = cos.features(DataSource(spark).getSource(cfg, False))

rows = features.select(
    features.label[0].cast("double").alias("label"), array_to_vector(features[cfg.features[0]]).alias("features")
)
model = LogisticRegression(maxIter=10).fit(rows)
predicted = model.transform(rows)
right = predicted.filter("label = prediction").count()
print(f"{right} of {predicted.count()} rows are predicted right by a logistic regression on {cfg.features[0]}")
spark.stop()
