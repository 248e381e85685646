"""A user's job: the records of an LMDB as a frame on the cluster's file system, a CaffeEstimator of R logical ranks fitted to it, and its weights.

Arguments: LMDB, folder for the frame, solver, ranks, the model of the same run by `crema train`. Prints one line: equal or different, and how many
values were compared."""
import sys

from pyspark.sql import SparkSession

from com.yahoo.ml.caffe._jvm import frame, java_class, singleton
from com.yahoo.ml.caffe.Config import Config
from crema.ml import CaffeEstimator

lmdb, folder, solver, ranks, reference = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
tool = "com.yahoo.ml.caffe.tools.LMDB2DataFrame"
rows = java_class(sc, tool)(sc._jsc.sc(), Config(spark, {"imageRoot": lmdb}).config).makeRDD()
frame(spark._jsparkSession.createDataFrame(rows, singleton(sc, tool).schema())).write.parquet(folder)
data = spark.read.parquet(folder).selectExpr("id", "data as image", "cast(label as double) as label")
model = CaffeEstimator(solver=solver, inputCol="image", outputBlobs=["ip2"]).setRanks(int(ranks)).fit(data)


def weights(model_bytes):
    net = sc._jvm.caffe.Caffe.NetParameter.parseFrom(model_bytes)
    return {(layer.getName(), i): layer.getBlobs(i).toByteArray() for layer in net.getLayerList() for i in range(layer.getBlobsCount())}


ours, theirs = weights(model.modelBytes), weights(open(reference, "rb").read())
print(f"weights {'equal' if ours == theirs else 'different'}: {len(ours)} blobs of {sum(map(len, ours.values()))} bytes; {model.transform(data).count()} rows scored", flush=True)
spark.stop()
