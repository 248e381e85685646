"""A user's job: the records of an LMDB as a frame on the cluster's file system, a CaffeEstimator of R logical ranks
fitted to it, and its weights.

Arguments: LMDB, folder for the frame, solver, ranks, the model of the same run by `crema train`. Prints two lines: how
many files of the model executors keep after it has scored five times, equal or different, and how many values were
compared.
"""

import pathlib
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
    return {
        (layer.getName(), i): layer.getBlobs(i).toByteArray()
        for layer in net.getLayerList()
        for i in range(layer.getBlobsCount())
    }


ours, theirs = weights(model.modelBytes), weights(open(reference, "rb").read())


def kept(_):
    """Copies of shared models on this executor, whose processes have the container's folder for their working
    folder.
    """
    return [str(path) for path in pathlib.Path.cwd().glob("tmp/crema-work-*/*-transform.caffemodel*")]


scored = [m.transform(data).count() for m in (model, *(model.copy() for _ in range(4)))]
copies = set(sc.parallelize(range(16), 16).flatMap(kept).collect())
print(
    f"{len(copies)} copies of the model in {len({pathlib.Path(c).parent for c in copies})} executors after "
    f"{len(scored)} transformations"
)
print(
    f"weights {'equal' if ours == theirs else 'different'}: {len(ours)} blobs of {sum(map(len, ours.values()))} "
    f"bytes; {scored[0]} rows scored",
    flush=True,
)
spark.stop()
